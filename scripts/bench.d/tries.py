"""Measures `cto try` beside the bare suite of real projects: the first try of a tree, and one whose baseline is known.

usage: tries.py CTO WORK [PAIRS [NAME …]]     NAME is a project, `tracked` or `modules`

The projects are those of scripts/real-projects, fetched and installed below WORK. In each round the suite runs as its
owner types it, warm; then as its owner waits for it after the edit that is tried, a comment, which compilers have to
read; then `cto try` without a known baseline, then once more with it. Own time is what the report says: the whole wall
less the time in which a command ran. `tracked` and `modules` are repositories of 50,000 files, in git or in
node_modules. CTO must be a release build.
"""

import json
import os
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
# Milliseconds in which no command runs.
OWN = 300
FILES = 50_000
LARGE = ("tracked", "modules")


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
    return took


def after_edit(ready, patch):
    """Seconds of the suite after the edit; afterwards all is warm as before."""
    ready.git("apply", str(patch))
    took = ready.suite()[0]
    ready.git("reset", "-q", "--hard")
    ready.suite()
    return took


def measure(cto, work, name, pairs):
    """What each round took: seconds of the suite, of the suite after the edit, of both tries, own milliseconds, and
    whether a baseline was known."""
    ready = repository.prepared(found(name), work)
    ready.bare()
    state = work / f"state-{name}"
    shutil.rmtree(state, ignore_errors=True)
    rounds = []
    with changes.made(ready, "comment") as patch:
        tried(cto, state, ready, patch)
        for _ in range(pairs):
            edited, bare = after_edit(ready, patch), ready.suite()[0]
            first = tried(cto, state, ready, patch, "--fresh-baseline")
            known = tried(cto, state, ready, patch)
            rounds.append((bare, edited, first, known, own(state), (newest(state) / "relied").is_dir()))
    shutil.rmtree(state, ignore_errors=True)
    return rounds


def newest(state):
    """The bundle of the newest run."""
    return max((state / "harness-runs").iterdir(), key=lambda run: run.stat().st_mtime_ns)


def own(state):
    """Milliseconds of the newest run in which no command ran."""
    return json.loads((newest(state) / "report.json").read_text())["timings"]["own_ms"]


def large(cto, work, name, times):
    """Own milliseconds of tries after the first on 50,000 files."""
    repo, state = work / f"large-{name}", work / f"state-{name}"
    shutil.rmtree(state, ignore_errors=True)
    shutil.rmtree(repo, ignore_errors=True)
    files = repo / ("src" if name == "tracked" else "node_modules")
    for number in range(FILES):
        file = files / f"part{number // 100}" / f"file{number}.js"
        if number % 100 == 0:
            file.parent.mkdir(parents=True)
        file.write_text(f"module.exports = {number}\n")
    (repo / "answer.txt").write_text("wrong\n")
    (repo / "package.json").write_text('{"name": "large"}\n')
    (repo / ".gitignore").write_text("node_modules\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "All of it"]):
        subprocess.run(["git", *words], cwd=repo, env=os.environ | repository.GIT, check=True)
    patch = work / "answer.patch"
    patch.write_text("--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-wrong\n+right\n")
    took = []
    for _ in range(times + 1):
        command = [str(cto), "try", "--task", "Say it", "--allow", "answer.txt", "--test", "grep -q right answer.txt", "--script", str(patch)]
        subprocess.run(command, cwd=repo, env=os.environ | {"CTO_STATE_DIR": str(state)}, check=True, capture_output=True)
        took.append(own(state))
    for place in (repo, state):
        shutil.rmtree(place, ignore_errors=True)
    return took[1:]


def spread(values, digits, unit):
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return f"{statistics.median(values):.{digits}f} {unit} ({low:.{digits}f}–{high:.{digits}f})"


def rows(cto, work, pairs, names=(*PROJECTS, *LARGE)):
    """Rows of (what, measured, how, promise, kept)."""
    for name in names:
        if name in LARGE:
            took = large(cto, work, name, pairs)
            yield f"own time of `cto try`, {FILES} files ({name})", spread(took, 0, "ms"), f"{pairs} tries", f"≤ {OWN} ms", statistics.median(took) <= OWN
            continue
        rounds = measure(cto, work, name, pairs)
        bare, edited = (statistics.median(round[which] for round in rounds) for which in (0, 1))
        relied = sum(round[5] for round in rounds)
        how = f"the suite alone {bare:.2f} s, after the edit {edited:.2f} s; {pairs} rounds, a baseline known in {relied}"
        for what, which, promise in zip(("first", "baseline known"), (2, 3), PROMISED[PROJECTS.get(name, False)]):
            for beside, alone in (("", 0), (" after the edit", 1)):
                ratios = [round[which] / round[alone] for round in rounds]
                yield (f"`cto try` on {name}, {what}, over the suite{beside}", spread(ratios, 2, "×"), how, f"≤ {promise} ×",
                       statistics.median(ratios) <= promise)
        took = [round[4] for round in rounds]
        yield f"own time of `cto try` on {name}", spread(took, 0, "ms"), f"{pairs} tries", f"≤ {OWN} ms", statistics.median(took) <= OWN


def main():
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    for what, measured, how, promise, kept in rows(cto, work, pairs, sys.argv[4:] or (*PROJECTS, *LARGE)):
        print(f"{'ok  ' if kept else 'MISS'} {what}: {measured} ({promise}; {how})", flush=True)


if __name__ == "__main__":
    main()
