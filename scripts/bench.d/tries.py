"""Measures `cto try` beside the bare suite of real projects: the first try of a tree, and one whose baseline is known.

usage: tries.py CTO WORK [PAIRS [NAME …]]

The projects are those of scripts/real-projects, fetched and installed below WORK. In each round the suite runs as its
owner types it, then `cto try` without a known baseline, then once more with it; the change is a comment. Own time is
what `trace.jsonl` does not give to a command: the whole wall less the longest chain of commands.
CTO must be a release build.
"""

import json
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "real-projects.d"
sys.path.insert(0, str(DATA))
sys.dont_write_bytecode = True

import changes  # noqa: E402
import repository  # noqa: E402

# Project: does its suite leave a core free?
PROJECTS = {"click": True, "itsdangerous": True, "itoa": False, "semver": False, "uuid": False, "fastify-error": False}
# What a try may take of the bare suite: at first, and when the baseline is known.
PROMISED = {True: (2.2, 1.6), False: (3.3, 2.3)}


def found(name):
    every = [entry for file in sorted(DATA.glob("*.toml")) for entry in tomllib.loads(file.read_text())["project"]]
    return next(entry for entry in every if entry["name"] == name)


def tried(cto, state, ready, patch, *words):
    """Seconds of one try that passed."""
    command = [str(cto), "try", "--task", "Say it again", "--allow", ".", "--test", ready.project["test"], "--script", str(patch),
               "--json", *words]
    since = time.monotonic()
    done = subprocess.run(command, cwd=ready.path, env=ready.env | {"CTO_STATE_DIR": str(state)}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    took = time.monotonic() - since
    if done.returncode != 0:
        sys.exit(f"{ready.project['name']}: the try did not pass: {(done.stdout + done.stderr)[-2000:]}")
    return took, json.loads(done.stdout)


def measure(cto, work, name, pairs):
    """Ratios of each round: (first, known), and the bare seconds."""
    ready = repository.prepared(found(name), work)
    ready.bare()
    state = work / f"state-{name}"
    shutil.rmtree(state, ignore_errors=True)
    first, known, bare = [], [], []
    with changes.made(ready, "comment") as patch:
        tried(cto, state, ready, patch)
        for _ in range(pairs):
            alone = ready.suite()[0]
            bare.append(alone)
            first.append(tried(cto, state, ready, patch, "--fresh-baseline")[0] / alone)
            known.append(tried(cto, state, ready, patch)[0] / alone)
    shutil.rmtree(state, ignore_errors=True)
    return first, known, bare


def spread(values, digits=2):
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"{statistics.median(values):.{digits}f} × ({low:.{digits}f}–{high:.{digits}f})"


def rows(cto, work, pairs, names=tuple(PROJECTS)):
    """Rows of (what, measured, how, promise, kept)."""
    for name in names:
        first, known, bare = measure(cto, work, name, pairs)
        how = f"the suite alone {statistics.median(bare):.2f} s; {pairs} rounds"
        for what, ratios, promise in zip(("first", "baseline known"), (first, known), PROMISED[PROJECTS.get(name, False)]):
            yield f"`cto try` on {name}, {what}", spread(ratios), how, f"≤ {promise} ×", statistics.median(ratios) <= promise


def main():
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    for what, measured, how, promise, kept in rows(cto, work, pairs, sys.argv[4:] or tuple(PROJECTS)):
        print(f"{'ok  ' if kept else 'MISS'} {what}: {measured} ({promise}; {how})", flush=True)


if __name__ == "__main__":
    main()
