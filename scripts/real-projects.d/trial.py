"""One `cto try`, and the table of all of them."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import time

from changes import BREAK


@dataclasses.dataclass
class Trial:
    project: str
    command: str
    change: str
    verdict: str
    blocker: str
    control: str
    bare: float
    took: float
    again: bool
    detail: str

    @property
    def expected(self):
        return "fail" if self.change == BREAK else "pass"

    @property
    def wrong(self):
        return self.verdict != self.expected

    def line(self):
        mark = "WRONG" if self.wrong else "ok"
        known = "known" if self.again else "first"
        command = self.command if len(self.command) <= 38 else self.command[:37] + "…"
        return (f"{mark:<6}{self.project:<20} {command:<38} {self.change:<12} {self.expected:<5} {self.verdict:<8} "
                f"{self.blocker:<24} {self.control:<8} {self.bare:7.2f} {self.took:7.2f} {self.took / self.bare:6.1f} {known}")


HEAD = (f"{'':<6}{'project':<20} {'command':<38} {'change':<12} {'want':<5} {'verdict':<8} {'blocker':<24} {'control':<8} "
        f"{'bare s':>7} {'try s':>7} {'ratio':>6} baseline")


def of(cto, state, ready, kind, test, patch, bare):
    """Types the command as a user would, in the project's own directory."""
    command = [str(cto), "try", "--task", f"Real projects: {kind}", "--allow", ".", "--test", test,
               "--script", str(patch), "--json"]
    if kind == "new file" or kind in ready.project.get("unseen", ()):
        # No check can notice what nothing uses, and a person says so.
        command += ["--unchecked", "nothing uses it yet"]
    tree = test, ready.git("rev-parse", "HEAD").strip()
    # The state is new in each run of this script, so no baseline is known before the first try of a commit.
    again = tree in ready.tried
    ready.tried.add(tree)
    since = time.monotonic()
    done = subprocess.run(command, cwd=ready.path, env=ready.env | {"CTO_STATE_DIR": str(state)}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)
    took = time.monotonic() - since
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    verdict, blocker, control = answer.get("status") or f"exit {done.returncode}", "", ""
    detail = (done.stdout + done.stderr)[-2000:]
    report = answer.get("report") or {}
    if report:
        ran = report.get("verification_control") or {}
        blocker = next((b.get("code", "") for b in report.get("blockers", [])), "")
        control = "red" if ran.get("red") else "GREEN" if ran.get("ran") else "none"
        detail = said(report, pathlib.Path(answer.get("bundle") or os.devnull))
    return Trial(ready.project["name"], test, kind, verdict, blocker, control, bare, took, again, detail)


def said(report, bundle):
    """What the report and the end of the test log say."""
    lines = [f"{b.get('code')}: {b.get('detail')}" for b in report.get("blockers", [])]
    log = bundle / "test.log"
    if log.is_file():
        lines += log.read_text(errors="replace").splitlines()[-40:]
    return "\n".join(lines)


class Table:
    def __init__(self):
        self.trials = []
        print(HEAD, flush=True)

    def add(self, trial):
        self.trials.append(trial)
        print(trial.line(), flush=True)

    def end(self, missing, unready):
        wrong = [trial for trial in self.trials if trial.wrong]
        for trial in wrong:
            print(f"\n== {trial.project}: {trial.change}: {trial.verdict} {trial.blocker}\n{trial.detail}")
        honest = [trial for trial in self.trials if trial.change != BREAK]
        broken = [trial for trial in self.trials if trial.change == BREAK]
        print()
        for line in missing:
            print(f"left out: {line}")
        for line in unready:
            print(f"not ready: {line}")
        print(f"honest changes failed or blocked: {sum(t.wrong for t in honest)} of {len(honest)}")
        print(f"breaking changes not failed: {sum(t.wrong for t in broken)} of {len(broken)}")
        for known, name in [(False, "first"), (True, "baseline known")]:
            ratios = [t.took / t.bare for t in honest if not t.wrong and t.again == known]
            if ratios:
                print(f"times the bare suite, {name}: median {statistics.median(ratios):.1f}, most {max(ratios):.1f}")
        print(f"projects: {len({t.project for t in self.trials})}, left out: {len(missing)}, not ready: {len(unready)}")
        return 1 if wrong or unready or not self.trials else 0
