"""Lists what a green run hides: tests that skipped themselves, or a part of themselves, and tests that needed a second try.

usage: summary.py JUNIT_FILE
"""

import sys
import xml.etree.ElementTree as xml


def main(path):
    skipped, flaky = [], []
    for case in xml.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        output = "".join(case.findtext(stream) or "" for stream in ("system-out", "system-err"))
        reasons = [line.removeprefix("skipped: ") for line in output.splitlines() if line.startswith("skipped: ")]
        skipped += [f"{name}: {reason}" for reason in dict.fromkeys(reasons)]
        if case.find("flakyFailure") is not None or case.find("flakyError") is not None:
            flaky.append(name)
    for title, lines in (("skipped here, wholly or in part", skipped), ("flaky: passed at the second try", flaky)):
        print(f"{title}: {len(lines)}")
        for line in sorted(lines):
            print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1])
