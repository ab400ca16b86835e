"""Measures what strict containment costs over contained, where an allowed file has many siblings.

usage: strict.py CTO WORK [SIBLINGS [PAIRS]]

Interleaved pairs of the same run, once with each; the time of a run is `engine.run` of its trace plus nothing else: entering
the jail, its mounts and their trial, the engine (which writes one file), and the end of the jail. CTO must be a release build.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

CASE = """\
schema_version = 1
task_id = "wide"
title = "Wide"
objective = "Make the answer right"
risk_class = "low"
allowed_paths = ["answer.txt"]
forbidden_paths = [".env"]
forbidden_actions = ["push", "merge", "deploy"]
mutation_mode = "copied-fixture"
verification_commands = ["grep -qx right answer.txt && grep -qx fine control.txt"]
verification_control = { patch = "control.patch" }
success_criteria = ["the answer is right"]
rollback = "discard the copy"
"""
PATCH = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n"
SCRIPT = '[[step]]\ndo = "write"\npath = "answer.txt"\ntext = "right\\n"\n'


def prepare(case, siblings):
    workspace = case / "workspace"
    workspace.mkdir(parents=True)
    (case / "case.toml").write_text(CASE)
    (case / "control.patch").write_text(PATCH)
    (case / "oracle.toml").write_text(SCRIPT)
    (workspace / "answer.txt").write_text("wrong\n")
    (workspace / "control.txt").write_text("fine\n")
    for number in range(siblings):
        (workspace / f"sibling{number:04}.txt").write_text("as it was\n")


def run(cto, state, case, how):
    """Milliseconds of the whole command, and of the engine with its jail."""
    argv = [str(cto), "run", str(case), "--script", str(case / "oracle.toml"), "--contain", how, "--json"]
    env = {"PATH": os.environ["PATH"], "HOME": str(state), "CTO_STATE_DIR": str(state)}
    since = time.perf_counter()
    ran = subprocess.run(argv, env=env, capture_output=True, text=True)
    whole = (time.perf_counter() - since) * 1000
    answer = json.loads(ran.stdout)
    if ran.returncode != 0 or answer["report"]["containment"] != how:
        sys.exit(f"the run did not pass as {how}: {ran.stdout}{ran.stderr}")
    lines = map(json.loads, (Path(answer["bundle"]) / "trace.jsonl").read_text().splitlines())
    return whole, next(line["duration_ms"] for line in lines if line["action"] == "engine.run")


def measure(cto, work, siblings=500, pairs=30):
    case, state = work / "wide", work / "state"
    prepare(case, siblings)
    state.mkdir()
    run(cto, state, case, "strict")
    found = [(run(cto, state, case, "strict"), run(cto, state, case, "contained")) for _ in range(pairs)]
    rows = []
    for what, index in (("the whole run", 0), ("the engine with its jail", 1)):
        over = sorted(strict[index] - contained[index] for strict, contained in found)
        low, high = over[len(over) // 10], over[-1 - len(over) // 10]
        rows.append((what, statistics.median(over), low, high))
    return rows


def rows(cto, work, pairs):
    """Rows of (what, measured, how, promise, kept)."""
    how = f"{pairs} interleaved pairs"
    return [
        (f"Strict over contained, 500 siblings: {what}", f"{median:.1f} ms ({low:.1f} to {high:.1f})", how, "≤ 5 ms", median <= 5)
        for what, median, low, high in measure(cto.resolve(), work, 500, pairs)
    ]


def main():
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    siblings, pairs = (int(text) for text in (sys.argv[3:] + ["500", "30"][len(sys.argv) - 3 :])[:2])
    for what, median, low, high in measure(cto, work, siblings, pairs):
        print(f"strict over contained, {siblings} siblings, {what}: median {median:.1f} ms, 10th to 90th {low:.1f} to {high:.1f}; promised: 5 ms")


if __name__ == "__main__":
    main()
