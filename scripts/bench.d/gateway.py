"""The model gateway against a direct connection: time a request, first byte, stalls, memory.

Used by measure.py (`measure`), or alone: gateway.py CTO [PAIRS]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = "lab-1"
KEY = "bench-key-0123456789"
STREAMS, EVENTS = 64, 2000

ANSWER = f"""\
key = "{KEY}"
after = "last"
[[turn]]
text = "A short answer of some words, as a model gives it."
"""
# One event a millisecond, for two seconds.
STREAM = f"""\
key = "{KEY}"
after = "last"
[[turn]]
text = "word"
repeat = {EVENTS}
latency_ms = 1
"""
HUGE = f"""\
key = "{KEY}"
after = "last"
[[turn]]
text = "word"
huge_line = 100000000
"""


class Stand:
    """A scripted model and the gateway before it; both end with the `with` block."""

    def __init__(self, cto, scenario):
        self.cto, self.scenario = cto, scenario

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory()
        here = Path(self.dir.name)
        (here / "scenario.toml").write_text(self.scenario)
        self.model = subprocess.Popen([self.cto, "__model", here / "scenario.toml"], stdout=subprocess.PIPE, text=True)
        address = self.model.stdout.readline().strip()
        self.direct = int(address.rsplit(":", 1)[1])
        (here / "url").write_text(f"{address}/v1")
        self.gateway = subprocess.Popen(
            [self.cto, "__gateway", "--protocol", "openai-chat", "--base-url-file", here / "url", "--key-env", "BENCH_KEY",
             "--model", MODEL, "--calls", "100000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "BENCH_KEY": KEY},
        )
        opened = json.loads(self.gateway.stdout.readline())
        self.through, self.token = opened["port"], opened["token"]
        return self

    def __exit__(self, *_):
        self.gateway.stdin.close()
        self.report = json.loads(self.gateway.stdout.readline())
        self.gateway.wait()
        self.model.kill()
        self.model.wait()
        self.dir.cleanup()

    def ask(self, through, *more):
        port, token = (self.through, self.token) if through else (self.direct, KEY)
        ran = subprocess.run(
            [self.cto, "__ask", str(port), "--token-env", "BENCH_TOKEN", "--model", MODEL, *map(str, more)],
            stdout=subprocess.PIPE, env={**os.environ, "BENCH_TOKEN": token}, check=True,
        )
        return json.loads(ran.stdout)

    def peak_mb(self):
        status = Path(f"/proc/{self.gateway.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1000


def requests(cto, pairs):
    """Interleaved pairs of many requests on one connection; the difference of their medians, for each pair."""
    total, first = [], []
    with Stand(cto, ANSWER) as stand:
        for number in range(pairs + 2):
            order = [True, False] if number % 2 else [False, True]
            asked = {through: stand.ask(through, "--requests", 50) for through in order}
            if number < 2:
                continue
            for name, into in (("total_us", total), ("first_us", first)):
                median = {through: statistics.median(one[name] for one in all) for through, all in asked.items()}
                into.append((median[True] - median[False]) / 1000)
    return total, first


def streams(cto, rounds=3):
    """The longest gap between two reads of any stream, direct and through the gateway; the peak of its memory."""
    direct, through = [], []
    with Stand(cto, STREAM) as stand:
        for _ in range(rounds):
            for way, into in ((False, direct), (True, through)):
                into.append(max(one["longest_gap_us"] for one in stand.ask(way, "--streams", STREAMS)) / 1000)
        return direct, through, stand.peak_mb()


def huge_line(cto):
    with Stand(cto, HUGE) as stand:
        stand.ask(True)
        return stand.peak_mb()


def measure(cto, pairs=30):
    """Rows of (what, measured, how, promise, kept)."""
    total, first = requests(cto, pairs)
    direct, through, peak = streams(cto)
    stall = min(through) - min(direct)
    huge = huge_line(cto)
    how = f"{pairs} interleaved pairs of 50 requests, against a direct connection"
    spread = lambda many: f"{statistics.median(many):.3f} ms ({min(many):.3f} to {max(many):.3f})"
    return [
        ("Gateway: added to a request, p50", spread(total), how, "≤ 0.3 ms", statistics.median(total) <= 0.3),
        ("Gateway: added to the first byte, p50", spread(first), how, "≤ 0.5 ms", statistics.median(first) <= 0.5),
        (f"Gateway: {STREAMS} streams × 1,000 events/s, added stall", f"{stall:.1f} ms",
         f"longest gap {min(through):.1f} ms, direct {min(direct):.1f} ms, best of 3 each", "≤ 5 ms", stall <= 5),
        ("Gateway: memory with those streams", f"{peak:.1f} MB", "peak of its process", "≤ 20 MB", peak <= 20),
        ("Gateway: memory with a line of 100 MB", f"{huge:.1f} MB", "peak of its process", "≤ 20 MB", huge <= 20),
    ]


if __name__ == "__main__":
    for what, measured, how, promise, kept in measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30):
        print(f"{'ok  ' if kept else 'MISS'} {what}: {measured} ({promise}; {how})")
