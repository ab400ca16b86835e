"""Times what seeing costs: starts of a program in a jail that is watched (an engine's) and in one that is not.

usage: starts.py CTO WORK [STARTS]      default 5000 starts a round, five rounds in turns; prints both medians

Both jails have the same layers; the loop inside is the same program, timed by its own clock.
"""

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

LOOP = """
import os, time
began = time.monotonic()
for _ in range({starts}):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}), 0)
print("each:", round((time.monotonic() - began) * 1e6 / {starts}, 1))
"""
ROUNDS = 5


def told(text):
    found = [line.split(":")[1] for line in text.splitlines() if line.startswith("each:")]
    if not found:
        sys.exit(f"starts.py: the loop said nothing: {text[-500:]}")
    return float(found[0])


def unwatched(cto, home, work):
    done = subprocess.run([cto, "--home", home, "exec", "--workspace", work / "jail", "--", "python3", "loop.py"], capture_output=True, text=True)
    return told(done.stdout + done.stderr)


def watched(cto, home, work):
    args = ["run", work / "case", "--script", work / "script.toml", "--json"]
    done = subprocess.run([cto, "--home", home, *args], capture_output=True, text=True)
    return told((Path(json.loads(done.stdout)["bundle"]) / "backend/stdout.log").read_text())


def prepare(cto, home, work, starts):
    loop = LOOP.format(starts=starts)
    subprocess.run([cto, "--home", home, "case", "new", "case", "--dir", work, "--lang", "sh"], capture_output=True, check=True)
    (work / "jail").mkdir()
    for place in (work / "jail", work / "case" / "workspace"):
        (place / "loop.py").write_text(loop)
    (work / "script.toml").write_text('[[step]]\ndo = "shell"\ncommand = "python3 loop.py"\n')


def main():
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve() / "starts"
    work.mkdir(parents=True)
    home = work / "home"
    try:
        prepare(cto, home, work, int(sys.argv[3]) if len(sys.argv) == 4 else 5000)
        pairs = [(unwatched(cto, home, work), watched(cto, home, work)) for _ in range(ROUNDS)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    without, seen = (statistics.median(side) for side in zip(*pairs))
    print(f"a start: {without:.1f} us unwatched, {seen:.1f} us watched, {seen - without:.1f} us for being seen")


if __name__ == "__main__":
    main()
