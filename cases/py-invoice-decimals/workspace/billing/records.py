"""Reads the records: one JSON file for each code."""

import functools
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent / "records"
CODE = re.compile(r"[A-Z]{2,3}")


class UnknownCode(KeyError):
    """There is no record with this code."""


@functools.lru_cache(maxsize=None)
def load(kind, code):
    """Return the record `code` among the records of this kind."""
    if not CODE.fullmatch(code):
        raise UnknownCode(code)
    try:
        text = (ROOT / kind / (code.lower() + ".json")).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnknownCode(code) from None
    return json.loads(text)


def codes(kind):
    """Return every code of a kind, in order."""
    return sorted(path.stem.upper() for path in (ROOT / kind).glob("*.json"))
