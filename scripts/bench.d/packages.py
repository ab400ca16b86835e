"""Times the check of an engine's packages on a run that changes nothing: a tree of 20,000 files, known and unchanged.

usage: packages.py CTO WORK [FILES [TIMES]]      prints a table; WORK must exist and is left as it was

`cto eligibility` asks every gate of records and starts nothing. The same question with a tree of three files is
subtracted, in interleaved pairs. Standard library only.
"""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

NULL = subprocess.DEVNULL
IN_ONE = 20


def put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def plant(root, files):
    """Packages of twenty files each, as npm lays them out; returns the launcher."""
    launcher = root / "pi/dist/cli.js"
    put(launcher, "#!/bin/sh\n", 0o755)
    put(root / "pi/package.json", '{"version": "0.74.2"}')
    for number in range(files - 2):
        put(root / f"package-{number // IN_ONE:04}/lib/file-{number % IN_ONE:02}.js", f"module.exports = {number};\n")
    return launcher


def digest(root):
    """As decision 0062 describes it."""
    entries = [root, *root.rglob("*")]
    listing = hashlib.sha256(b"cto-packages/1\n")
    named = {b"" if entry == root else os.fsencode(entry.relative_to(root)): entry for entry in entries}
    for name, entry in sorted(named.items()):
        mode = entry.lstat().st_mode & 0o7777
        head = f"d {mode:04o} -" if entry.is_dir() else f"f {mode:04o} {hashlib.sha256(entry.read_bytes()).hexdigest()}"
        listing.update(f"{head} {len(name)} ".encode() + name + b"\n")
    return listing.hexdigest()


def house(work, name, files):
    """A state home whose one record admits a program with so many files around it."""
    root = work / name / "node_modules"
    launcher = plant(root, files)
    home = work / f"{name}-home"
    home.mkdir(mode=0o700)
    record = {"engine": "pi", "path": str(launcher), "sha256": hashlib.sha256(launcher.read_bytes()).hexdigest(),
              "identity_output": "pi", "version": "0.74.2", "command_shape": "pi", "approval_source": "the owner",
              "admission_timestamp": "2026-06-01", "review_trigger": "before any change", "packages_sha256": digest(root)}
    put(home / "records/pi/executable.json", json.dumps(record), 0o600)
    return home


def asked(cto, home):
    args = ["eligibility", "r1-string-slugify", "--engine", "pi", "--allow-engine", "pi", "--stage", "2", "--home", home]
    started = time.perf_counter()
    done = subprocess.run([cto, *args], stdin=NULL, capture_output=True, text=True)
    wall = (time.perf_counter() - started) * 1e3
    if done.returncode != 3 or "executable_not_admitted" in done.stdout:
        sys.exit(f"packages.py: the packages are not as they were admitted: {done.stdout}{done.stderr}")
    return wall


def spread(values):
    values = sorted(values)
    tenth = len(values) // 10
    return f"{statistics.median(values):.1f} ms ({values[tenth]:.1f}–{values[-1 - tenth]:.1f})"


def measure(cto, work, files=20_000, times=30):
    """Rows of what, measured, compared with, target, and whether it is met."""
    place = work / "packages"
    place.mkdir()
    try:
        large, small = house(place, "large", files), house(place, "small", 3)
        # What is younger than two seconds is read again.
        time.sleep(4)
        first = asked(cto, large)
        asked(cto, small)
        pairs = [(asked(cto, large), asked(cto, small)) for _ in range(times)]
        added = [with_all - with_few for with_all, with_few in pairs]
        compared = f"all read: {first:.0f} ms; asked with three files: {spread([few for _, few in pairs])}"
        yield f"Check of {files:,} package files, warm", spread(added), compared, "≤ 50 ms", statistics.median(added) <= 50
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for what, measured, compared, target, met in measure(cto, work, *map(int, sys.argv[3:])):
        print(f"{what:<42} {measured:<26} {compared:<70} {target:<10} {'met' if met else 'MISSED'}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
