"""What an agent's stream costs: memory while it says 100 MB, and how long it waits for the answer to a question.

usage: streams.py CTO WORK [QUESTIONS]      prints a table; WORK must exist, in no repository, and is left as it was

The agent is a script of ours that speaks the Agent Client Protocol, admitted as `acp-opencode`. It takes the time of a
question itself, from its last byte to the answer's. Memory is VmHWM of `cto run`, read at its exit. Standard library only.
"""

import json
import os
import shutil
import statistics
import sys
from pathlib import Path

from lanes import CASE, FIX, Lane, uses
from measure import peak_rss

AGENT = """#!/usr/bin/python3 -I
import json, os, sys, time
def say(message): sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
def hear():
    line = sys.stdin.readline()
    if not line: os._exit(0)
    return json.loads(line)
def answer(result): say({"jsonrpc": "2.0", "id": hear()["id"], "result": result})
def update(text): return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
    "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}
answer({"protocolVersion": 1}); answer({"sessionId": "s"}); prompt = hear()
"""
END = f"""
os.system({FIX!r})
say({{"jsonrpc": "2.0", "id": prompt["id"], "result": {{"stopReason": "end_turn"}}}})
time.sleep(60)
"""
MEGABYTES = 100
FLOOD = f"""
said, line = 0, json.dumps(update("word " * 200)) + "\\n"
while said < {MEGABYTES}_000_000:
    sys.stdout.write(line); said += len(line)
"""
QUESTIONS = """
OPTIONS = [{"optionId": "b", "kind": "allow_once"}, {"optionId": "c", "kind": "reject_once"}]
taken = []
for number in range(QUESTIONS):
    call = {"toolCallId": f"t{number}", "title": "Edit strings.py", "kind": "edit", "locations": [{"path": os.getcwd() + "/strings.py"}]}
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "session/request_permission",
                       "params": {"sessionId": "s", "toolCall": call, "options": OPTIONS}}) + "\\n"
    time.sleep(0.002)
    begun = time.perf_counter_ns()
    sys.stdout.write(line); sys.stdout.flush()
    heard = sys.stdin.readline()
    taken.append((time.perf_counter_ns() - begun) // 1000)
    if json.loads(heard)["result"]["outcome"]["optionId"] != "b": os._exit(9)
sys.stderr.write("microseconds " + json.dumps(taken) + "\\n"); sys.stderr.flush()
"""


def lane(cto, work, name, goes_on):
    """A lane of its own whose program is such a script."""
    program = work / name / "node_modules/agent/agent"
    program.parent.mkdir(parents=True)
    (program.parent / "package.json").write_text('{"version": "1.18.33"}')
    program.write_text(AGENT + goes_on + END)
    program.chmod(0o755)
    home = work / f"{name}-home"
    home.mkdir()
    return Lane(cto, home, "acp-opencode", program, uses("bash", {"command": "true"}))


def memory(one):
    """Megabytes of the one run that hears it all."""
    one.once()
    model = one.model()
    try:
        args = ["run", CASE, "--engine", one.engine, "--stage", "2", "--base-url-file", one.home / "url"]
        return peak_rss([one.cto, *args], one.variables())
    finally:
        model.kill()
        model.wait()


def asked(one):
    """Microseconds of every question of a run."""
    run = one.once()
    report = run.get("report", run)
    log = one.home / "state/harness-runs" / report["run_id"] / "backend/stderr.log"
    for line in log.read_text().splitlines():
        if line.startswith("microseconds "):
            return sorted(json.loads(line.split(" ", 1)[1]))
    sys.exit(f"streams.py: the agent said nothing of its questions: {log}")


def measure(cto, work, questions=1000):
    """Rows of what, measured, compared with, target, and whether it is met."""
    place = work / "streams"
    place.mkdir()
    try:
        peak = memory(lane(cto, place, "flood", FLOOD))
        yield f"Peak RSS at {MEGABYTES} MB of events", f"{peak:.1f} MB", "", "≤ 20 MB", peak <= 20
        times = asked(lane(cto, place, "asks", QUESTIONS.replace("QUESTIONS", str(questions))))
        middle, late = statistics.median(times) / 1000, times[len(times) * 99 // 100] / 1000
        yield "Answer to a permission question, p50", f"{middle:.2f} ms", f"{len(times)} questions; p99 {late:.2f} ms", "≤ 1 ms", middle <= 1
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for what, measured, compared, target, met in measure(cto, work, *map(int, sys.argv[3:])):
        print(f"{what:<40} {measured:<16} {compared:<36} {target:<10} {'met' if met else 'MISSED'}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
