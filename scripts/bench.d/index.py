"""Measures the index at 100,000 runs: how fast it is filled, and how fast `cto runs` answers.

usage: index.py CTO WORK [COUNT [TIMES]]      prints a table; WORK must exist and is left as it was

Also used by measure.py, which puts the rows into docs/performance.md. Standard library only.
"""

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import seal

CASES = 40
CODES = {"fail": ["verification_failed", "no_diff"], "blocked": ["timeout", "engine_gate_closed"]}
# Sentences as the program writes them, so that rows are as long as real ones.
REASONS = {"fail": "verification failed in the pristine copy", "blocked": "a time limit was reached"}
ALPHABET = "23456789abcdefghijkmnpqrstuvwxyz"
NULL = subprocess.DEVNULL


def stamp(seconds, shape):
    return time.strftime(shape, time.gmtime(seconds))


def generate(like, root, count):
    """Directories with the report, the sums and the seal of a real bundle, under other ids, one a minute."""
    sealer = seal.Sealer(like.parent.parent, like)
    report = json.loads((like / "report.json").read_text())
    fields = ["run_id", "case_id", "status", "failure_reason", "blockers", "run_started_at", "run_finished_at"]
    report.update((field, f"@{field}@") for field in fields)
    # Filling in a text is much cheaper than writing JSON a hundred thousand times.
    template = json.dumps(report, indent=2)
    sums = (like / "SHA256SUMS").read_bytes()
    chance = random.Random(7)
    root.mkdir()
    for number in range(count):
        began = 1_700_000_000 + number * 60
        case = f"bench-case-{number % CASES}"
        status = ("pass", "fail", "blocked")[number // CASES % 3]
        codes = CODES.get(status, [])[: 1 + number % 2]
        suffix = "".join(chance.choices(ALPHABET, k=8))
        run_id = f"{stamp(began, '%Y%m%dT%H%M%SZ')}-{case}-{suffix}"
        blockers = [{"code": code, "message": code, "event": None} for code in codes]
        times = [stamp(at, "%Y-%m-%dT%H:%M:%S.000Z") for at in (began, began + 9)]
        text = template
        for field, value in zip(fields, [run_id, case, status, REASONS.get(status), blockers, *times]):
            text = text.replace(f'"@{field}@"', json.dumps(value))
        place = f"{root}/{run_id}"
        os.mkdir(place)
        changed = {"run_id": run_id, "case_id": case, "status": status, "blockers": codes}
        changed.update(zip(("run_started_at", "run_finished_at", "signed_at"), [*times, times[1]]))
        signed = sealer.seal(text.encode(), changed)
        for name, content in (("report.json", text.encode()), ("SHA256SUMS", sums), ("attestation.json", signed)):
            file = os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY, 0o600)
            os.write(file, content)
            os.close(file)
    return run_id


def clear(root):
    """In the order of their making: in the order of the directory, a disk seeks for every one."""
    for name in sorted(os.listdir(root)) if root.is_dir() else []:
        shutil.rmtree(root / name, ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)


def timed(argv):
    """Wall and own CPU of one process, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    code = subprocess.run(argv, stdin=NULL, stdout=NULL, stderr=NULL, env={"PATH": os.environ["PATH"]}).returncode
    wall = (time.perf_counter() - started) * 1e3
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code != 0:
        sys.exit(f"index.py: {argv} ended with {code}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu * 1e3


def spread(values, unit, digits=1):
    values = sorted(values)
    tenth = len(values) // 10
    low, high = values[tenth], values[-1 - tenth]
    return f"{statistics.median(values):.{digits}f} {unit} ({low:.{digits}f}–{high:.{digits}f})"


def measure(cto, work, count=100_000, times=30):
    """Rows of what, measured, compared with, target, and whether it is met, as they come."""
    root, home = work / "index-runs", work / "index-home"
    try:
        subprocess.run([cto, "run", "--home", work / "index-one"], stdin=NULL, stdout=NULL, stderr=NULL, check=True)
        like = next((work / "index-one" / "harness-runs").iterdir())
        began = time.perf_counter()
        newest = generate(like, root, count)
        generation = time.perf_counter() - began
        home.mkdir()
        # The same machine: its key is what makes a sealed status one that is shown.
        shutil.copytree(work / "index-one" / "keys", home / "keys")
        place = ["--home", home, "--runs-dir", root]
        runs = [cto, "runs", *place]

        walls = [timed([*runs, "--reindex", "-n", "1"])[0] for _ in range(5)]
        rates = [count / wall * 1e3 for wall in walls]
        size = (home / "cto.db").stat().st_size / 1e6
        yield f"Index of {count:,} bundles filled", spread(rates, "bundles/s", 0), f"made in {generation:.0f} s; {size:.0f} MB", "≥ 10,000 bundles/s", statistics.median(rates) >= 10_000

        # The root's times are believed once they are clearly in the past.
        time.sleep(3)
        timed([*runs, "-n", "1"])
        case = ["--status", "fail", "--case", "bench-case-7", "-n", "20"]
        questions = [
            ("`cto runs --status fail --case X -n 20`", [*runs, *case], "≤ 50 ms"),
            ("`cto runs -n 20`", [*runs, "-n", "20"], "≤ 50 ms"),
            ("`cto runs --blocker timeout --since 2024-01-01`", [*runs, "--blocker", "timeout", "--since", "2024-01-01"], "≤ 50 ms"),
            ("`cto runs --engine nobody`, none matches", [*runs, "--engine", "nobody"], "≤ 50 ms"),
            ("`cto show last`", [cto, "show", "last", *place], "—"),
            ("`cto show PART`", [cto, "show", newest[-8:], *place], "—"),
        ]
        taken = {name: [] for name, _, _ in questions}
        for number in range(times + 1):
            for name, argv, _ in questions:
                sample = timed(argv)
                if number:
                    taken[name].append(sample)
        for name, _, target in questions:
            walls, cpus = zip(*taken[name])
            met = target == "—" or statistics.median(walls) <= 50
            yield f"{name}, wall", spread(walls, "ms"), f"CPU {spread(cpus, 'ms', 0)}", target, met

        # A name came: the next list reads all names once.
        walls, cpus = [], []
        for number in range(max(5, times // 3)):
            (root / f"20300101T0000{number:02}Z-late-aaaa2222").mkdir()
            wall, cpu = timed([*runs, *case])
            walls.append(wall)
            cpus.append(cpu)
        yield "… the first after a run came, wall", spread(walls, "ms"), f"CPU {spread(cpus, 'ms', 0)}", "—", True
    finally:
        clear(root)
        for left in (home, work / "index-one"):
            shutil.rmtree(left, ignore_errors=True)


def main():
    cto, work = Path(sys.argv[1]), Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    times = int(sys.argv[4]) if len(sys.argv) > 4 else 30
    load = os.getloadavg()[0]
    for what, measured, compared, target, met in measure(cto, work, count, times):
        print(f"{what:<52} {measured:<32} {compared:<34} {target:<20} {'' if target == '—' else 'met' if met else 'MISSED'}", flush=True)
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
