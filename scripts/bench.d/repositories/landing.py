"""Times the landing of five paths in 10,000 files: `cto apply RUN --commit` beside `git merge --ff-only` of the same change.

usage: landing.py CTO WORK [PAIRS]     WORK must exist and is left as it was; at least 30 pairs

Pairs are interleaved, in one repository, with a warm page cache; before each half the repository is put back and its index
refreshed. `cto apply` also verifies the bundle and starts anew, which is measured apart (`--check` of the plain command).
Standard library only.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

FILES, CHANGED, TARGET = 10_000, 5, 2.5


def main():
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve() / "landing-bench"
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    repo, home = work / "repo", work / "home"
    repo.mkdir(parents=True)
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "CTO_STATE_DIR": str(work / "state"), "LC_ALL": "C",
           "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*words):
        since = time.monotonic()
        done = subprocess.run(words, cwd=repo, env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL)
        took = time.monotonic() - since
        if done.returncode != 0:
            sys.exit(f"{words}: {(done.stdout + done.stderr)[-2000:]}")
        return took, done.stdout.strip()

    def git(*words):
        return run("git", *words)

    try:
        git("init", "-q", "-b", "main")
        git("config", "user.name", "bench")
        git("config", "user.email", "bench@example.invalid")
        for number in range(FILES):
            place = repo / f"part{number // 100}" / f"file{number}"
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "-q", "-m", "start")
        start = git("rev-parse", "HEAD")[1]
        script = work / "change.toml"
        paths = [f"part{number}/file{number * 100}" for number in range(CHANGED)]
        script.write_text("".join(f'[[step]]\ndo = "write"\npath = "{path}"\ntext = "changed\\n"\n\n' for path in paths))
        run(str(cto), "try", "--task", "Change five", "--allow", ".", "--test", f"grep -q changed {paths[0]}",
            "--script", str(script), "--json")
        run(str(cto), "apply", "last", "--branch", "same")
        merged, landed, checked = [], [], []

        def again():
            git("reset", "-q", "--hard", start)
            git("status")

        for _ in range(pairs):
            again()
            merged.append(git("merge", "-q", "--ff-only", "same")[0])
            again()
            landed.append(run(str(cto), "apply", "last", "--commit")[0])
            again()
            checked.append(run(str(cto), "apply", "last", "--check")[0])
        ratio = statistics.median(mine / theirs for mine, theirs in zip(landed, merged))
        shown = [f"{1000 * statistics.median(times):.1f} ms" for times in (merged, landed, checked)]
        print(f"git merge --ff-only {shown[0]}; cto apply --commit {shown[1]}; cto apply --check {shown[2]}; {pairs} pairs")
        print(f"ratio {ratio:.2f} x (target {TARGET}): {'met' if ratio <= TARGET else 'missed'}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
