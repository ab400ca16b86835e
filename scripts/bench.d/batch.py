"""Times many runs at once: `cto run --all`, one and two at a time in turns, and `cto matrix`.

usage: batch.py CTO WORK [ROUNDS]      default 5 rounds, after one that warms the caches; prints a table

Every number is printed by `cto` itself: the wall is its own clock; the share of `run --all` is what the kernel's accounts
give to the processes it started (RUSAGE_CHILDREN) out of theirs and its own. Also used by measure.py.
"""

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

JOBS = (1, 2)


def ask(cto, home, args):
    done = subprocess.run([cto, "--home", home, *args, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"batch.py: cto {' '.join(args)} ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def spread(values, unit):
    values = sorted(values)
    return f"{statistics.median(values):.0f} {unit} ({values[0]:.0f}–{values[-1]:.0f})"


def measure(cto, work, rounds=5):
    """Rows of (what, measured, compared with, target, is it met)."""
    home = work / "batch-home"
    found = {jobs: [] for jobs in JOBS}
    matrix, cases, lines = [], 0, 0
    try:
        for number in range(rounds + 1):
            for jobs in JOBS:
                answer = ask(cto, home, ["run", "--all", "--jobs", str(jobs)])
                cases = len(answer["runs"])
                if number:
                    found[jobs].append(answer["cost"])
            answer = ask(cto, home, ["matrix"])
            lines = len(answer["rows"])
            if number:
                matrix.append(answer["time"])
    finally:
        shutil.rmtree(home, ignore_errors=True)
    rows = []
    for jobs in JOBS:
        share = spread([cost["children_share_percent"] for cost in found[jobs]], "% of the CPU time in children")
        rows.append((f"`cto run --all --jobs {jobs}`, {cases} cases, wall", spread([cost["wall_ms"] for cost in found[jobs]], "ms"), share, "—", True))
    share = spread([100 * time["children_ms"] / time["wall_ms"] for time in matrix], "% of the wall in engines and checks")
    rows.append((f"`cto matrix`, {lines} rows, wall", spread([time["wall_ms"] for time in matrix], "ms"), share, "—", True))
    return rows


def main():
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    rounds = int(sys.argv[3]) if len(sys.argv) == 4 else 5
    for what, measured, compared, _, _ in measure(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), rounds):
        print(f"{what:<48} {measured:<28} {compared}")


if __name__ == "__main__":
    main()
