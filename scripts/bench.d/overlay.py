"""Measures a workspace over a large repository: how soon it is ready, how soon it is measured.

usage: overlay.py CTO WORK [FILES [REPEATS]]

The numbers are the harness's own, from `trace.jsonl` of each run: `workspace.prepare` and `workspace.measure`.
The first run starts from an empty cache, all others from the checkout the first one made.
CTO must be a release build.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# What the second run must keep to, in milliseconds.
PROMISED = {"workspace.prepare": 50, "workspace.measure": 100}
SCRIPT = """\
[[step]]
do = "write"
path = "note.txt"
text = "done\\n"
"""


def git(repo, *args):
    who = ["-c", "user.name=owner", "-c", "user.email=owner@example.invalid"]
    subprocess.run(["git", *who, *args], cwd=repo, check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"})


def make_repository(repo, files):
    """Directories of a hundred small files, as source trees have them."""
    repo.mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    (repo / "note.txt").write_text("hello\n")
    (repo / ".gitignore").write_text("*.log\n")
    for number in range(files - 2):
        place = repo / f"part{number // 5000:03}" / f"room{number // 100:05}"
        if number % 100 == 0:
            place.mkdir(parents=True, exist_ok=True)
        (place / f"file{number:06}.txt").write_text(f"the text of file {number}\n" * 10)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "start")


def run(cto, state, repo, script):
    """One run; what its trace says of the two steps, in milliseconds."""
    argv = [cto, "try", "--repo", repo, "--task", "say done", "--allow", "note.txt", "--test", "grep -q done note.txt"]
    argv += ["--script", script, "--json"]
    env = {"PATH": os.environ["PATH"], "HOME": str(state), "CTO_STATE_DIR": str(state)}
    ran = subprocess.run([str(arg) for arg in argv], env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"the run did not pass: {ran.stdout}{ran.stderr}")
    lines = (Path(json.loads(ran.stdout)["bundle"]) / "trace.jsonl").read_text().splitlines()
    steps = {line["action"]: line for line in map(json.loads, lines)}
    prepared = steps["workspace.prepare"]["detail"]
    return prepared, {action: steps[action]["duration_ms"] for action in PROMISED}


def spread(values):
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"median {statistics.median(values):.0f} ms, 10th to 90th {low} to {high}, most {ordered[-1]}"


def measure(cto, work, files=50_000, repeats=30):
    repo, state, script = work / "repository", work / "state", work / "script.toml"
    make_repository(repo, files)
    state.mkdir()
    script.write_text(SCRIPT)
    first, second = [], []
    wants = ["overlay, checkout made"] + ["overlay, checkout known"] * repeats
    for wanted in wants:
        prepared, times = run(cto, state, repo, script)
        if prepared != wanted:
            sys.exit(f"expected {wanted!r}, and the trace says {prepared!r}")
        (first if wanted == wants[0] else second).append(times)
    return first, second


def rows(cto, work, repeats, files=50_000):
    """Rows of (what, measured, how, promise, kept)."""
    first, second = measure(cto.resolve(), work, files, repeats)
    out = []
    for action, what in (("workspace.prepare", "workspace ready"), ("workspace.measure", "measured")):
        again, promised = [times[action] for times in second], PROMISED[action]
        how = f"{files} files, {repeats} runs on a known tree; {first[0][action]} ms on the first"
        out.append((f"Second run on a tree: {what}", spread(again), how, f"≤ {promised} ms", statistics.median(again) <= promised))
    return out


def main():
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    files, repeats = (int(text) for text in (sys.argv[3:] + ["50000", "30"][len(sys.argv) - 3 :])[:2])
    for what, measured, how, promise, kept in rows(cto, work, repeats, files):
        print(f"{'ok  ' if kept else 'MISS'} {what}: {measured} ({promise}; {how})")


if __name__ == "__main__":
    main()
