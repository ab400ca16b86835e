"""Times what the harness adds to a run of Case, by the double that ships: a pipeline of five phases, an event log of 100 MB,
and one that stays when its work is done.

usage: case.py CTO WORK [TIMES]      prints a table; WORK must exist and is left as it was

The model is the scripted one. Standard library only.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from lanes import CASE, FIX, NULL, Lane, own, spread, uses

FINE = "[[turn]]\ntext = '''<<<AGENT_RESULT\n{\"status\": \"completed\", \"summary\": \"done\"%s}\nAGENT_RESULT>>>'''\n"
# Each phase is a conversation of its own: turns are counted by requests.
HEAD = 'select = "requests"\n'
COMMIT = "git add -A -- ':!.case/' && git commit -qm done"
LINE = '{"event":"status_changed","from":"active","to":"active","sequence":1,"runId":"flood","padding":"' + "x" * 900 + '"}'
FLOOD = "for log in .case/*/events/run-*.jsonl; do yes '" + LINE + "' | head -c %d >> $log; done"


def pipeline(*implementer, last=""):
    """Five phases that go well."""
    return "".join(uses("bash", {"command": command}) for command in implementer) + FINE % "" * 4 + FINE % last


def most_memory(lane):
    """The largest resident set of the harness's own process during a run, in kB."""
    model = lane.model()
    known = {"PATH": os.environ["PATH"], "HOME": str(lane.home), "CTO_STATE_DIR": str(lane.home / "state"), "CTO_HARNESS_ALLOW_CASE": "1"}
    words = [lane.cto, "run", CASE, "--engine", "case", "--stage", "2", "--base-url-file", lane.home / "url", "--json"]
    most = 0
    with open(lane.home / "out", "w+") as out:
        running = subprocess.Popen(words, stdin=NULL, stdout=out, stderr=NULL, env=known)
        while running.poll() is None:
            try:
                status = Path(f"/proc/{running.pid}/status").read_text()
            except OSError:
                break
            seen = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
            most = max([most, *seen])
            time.sleep(0.005)
        running.wait()
        out.seek(0)
        said = out.read()
    model.kill()
    model.wait()
    return most, json.loads(said)


def bundle(lane, document):
    run = document.get("report", document)["run_id"]
    return next((lane.home / "state").glob(f"**/{run}"))


def millis(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def until_ended(lane, document):
    """From the last word of the pipeline to the event that says its tree has ended: a little more than it took."""
    place = bundle(lane, document)
    log = [json.loads(line) for line in (place / "backend/case-events.jsonl").read_text().splitlines()]
    said = next(line["ts"] for line in log if line["event"] == "pipeline_end")
    events = [json.loads(line) for line in (place / "events.normalized.jsonl").read_text().splitlines()]
    ended = next(event for event in events if event["type"] == "engine.ended")
    if ended["data"]["end"].get("because") != "lingered":
        sys.exit(f"case.py: it was not ended early: {ended['data']['end']}")
    return millis(ended["ts"]) - said


def measure(cto, work, times=10):
    """Rows of what, measured, compared with, target, and whether it is met."""
    place = work / "case"
    place.mkdir()
    try:
        program = place / "ca"
        program.write_bytes(Path(cto).read_bytes() + b"\n")
        program.chmod(0o755)
        lane = Lane(cto, place, "case", program, pipeline(FIX, COMMIT), HEAD)
        lane.once()
        taken = [own(lane.once()) for _ in range(times)]
        values = [milliseconds for milliseconds, _ in taken]
        steps = ", ".join(f"{step} {statistics.median(all_of[step] for _, all_of in taken):.0f}" for step in taken[0][1])
        yield "Own time of a run of five phases", spread(values), f"steps: {steps} ms", "≤ 150 ms", statistics.median(values) <= 150

        lane.plays(pipeline(FIX, COMMIT, last=', "double": ["lingers", "restless"]'), HEAD)
        values = [until_ended(lane, lane.once()) for _ in range(times)]
        yield "Last word to end of its tree", spread(values), "with the events in between", "≤ 200 ms", max(values) <= 200

        lane.plays(pipeline(FIX, COMMIT), HEAD)
        small, _ = most_memory(lane)
        lane.plays(pipeline(FIX, COMMIT, FLOOD % 100_000_000), HEAD)
        large, document = most_memory(lane)
        kept = (bundle(lane, document) / "backend/case-events.jsonl").stat().st_size
        more = (large - small) / 1000
        told = f"{large / 1000:.1f} MB in all, {small / 1000:.1f} without; {kept / 1e6:.1f} MB kept"
        yield "An event log of 100 MB", f"{more:.1f} MB more", told, "≤ 20 MB", more <= 20
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for what, measured, compared, target, met in measure(cto, work, *map(int, sys.argv[3:])):
        print(f"{what:<34} {measured:<26} {target:<10} {'met' if met else 'MISSED'}  {compared}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
