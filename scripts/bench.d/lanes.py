"""Times what the harness adds to a run of a real agent: its own time beyond agent, checks, the one request before the run and
the run of `fake` it is compared with.

usage: lanes.py CTO WORK [TIMES [ENGINE...]]      prints a table; WORK must exist, in no repository, and is left as it was

Agents are those that scripts/agents has linked below target/. The model is the scripted one. Times are those of
`timings` in the report. Standard library only.
"""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NULL = subprocess.DEVNULL
CASE = "r1-string-slugify"
FIX = """printf '%s\\n' 'import re' '' '' 'def slugify(text):' '    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")' > strings.py"""
# engine, its program below target/, the tool that runs a command, and its arguments
LANES = [
    ("pi", "pi-*/node_modules/.bin/pi", "bash", {"command": FIX}),
    ("codex", "codex-*/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex", "exec_command", {"cmd": FIX}),
    ("opencode", "opencode-*/node_modules/opencode-linux-x64/bin/opencode", "bash", {"command": FIX, "description": "work"}),
    ("acp-codex", "acp-codex-*/node_modules/.bin/codex-acp", "exec_command", {"cmd": FIX}),
    ("acp-opencode", "opencode-*/node_modules/opencode-linux-x64/bin/opencode", "bash", {"command": FIX, "description": "work"}),
    ("acp-gemini", "acp-gemini-*/node_modules/.bin/gemini", "run_shell_command", {"command": FIX}),
    ("acp-qwen", "acp-qwen-*/node_modules/.bin/qwen", "run_shell_command", {"command": FIX, "is_background": False}),
    ("acp-pi", "acp-pi-*/node_modules/.bin/pi-acp", "bash", {"command": FIX}),
]
# Their manifests name what runs them, so their records do.
NAMES_ITS_NODE = ("pi", "acp-codex", "acp-gemini", "acp-qwen", "acp-pi")


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def digest(root):
    """As decision 0062 describes it."""
    named = {b"": root}
    for top, dirs, files in os.walk(root):
        for name in [*dirs, *files]:
            path = Path(top, name)
            named[os.fsencode(path.relative_to(root))] = path
    listing = hashlib.sha256(b"cto-packages/1\n")
    for name, path in sorted(named.items()):
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            head = f"l 0000 {hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()}"
        elif path.is_dir():
            head = f"d {mode:04o} -"
        else:
            head = f"f {mode:04o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        listing.update(f"{head} {len(name)} ".encode() + name + b"\n")
    return listing.hexdigest()


def uses(tool, arguments):
    """A turn in which the model uses a tool."""
    return f"[[turn]]\ntool = [{{ name = \"{tool}\", raw = '''{json.dumps(arguments)}''' }}]\n"


class Lane:
    """A state home that admits one program and one scripted model."""

    def __init__(self, cto, work, engine, program, turns, head=""):
        self.cto, self.engine, self.home = cto, engine, work / engine
        self.home.mkdir(mode=0o700)
        self.plays(turns, head)
        put(self.home / "url", "")
        self.admit(Path(program))
        done = self.cto_run("validate", "stage1", "--engine", engine)
        if done.returncode != 0:
            sys.exit(f"lanes.py: stage 1 of {engine} could not be proven: {done.stdout}{done.stderr}")

    def plays(self, turns, head=""):
        """What the model says from now on."""
        put(self.home / "scenario.toml", f'{head}[probe]\ntext = "ready"\n{turns}')

    def admit(self, program):
        common = {"approval_source": "the owner", "review_trigger": "before any change"}
        pair = {"provider": "lab", "model": "scripted", "credential_source_class": "none", "allowed_network_class": "loopback"}
        self.record("model", common | pair | {"status": "admitted", "admission_timestamp": "2026-06-01"})
        self.record("decision", common | pair | {
            "decision_status": "local_provider_required", "provider_class": "local_case_compatible",
            "evidence_sources": ["notes"], "effect": "the scripted model may be used"})
        packages = [above for above in program.parents if above.name == "node_modules"]
        pinned = {"packages_sha256": digest(packages[-1])} | self.node(packages[-1]) if packages else {}
        self.record("executable", common | {
            "engine": self.engine, "path": str(program), "sha256": hashlib.sha256(program.read_bytes()).hexdigest(),
            "identity_output": self.engine, "version": "not said", "command_shape": self.engine,
            "admission_timestamp": "2026-06-01"} | pinned)
        self.record("source", {
            "engine": self.engine, "source_admission_status": "admitted", "source_name": self.engine,
            "source_url": "https://example.com/", "source_type": "npm package", "retrieval_date": "2026-06-01",
            "retrieval_command": "scripts/agents", "integrity_reference": "sha256:" + "0" * 64, "license_note": "its own",
            "license_status": "resolved", "allowed_execution_modes": ["copied-fixture", "copied-repo"],
            "blocked_execution_modes": ["owned-noncritical-repo"], "protected_source_boundary": "its own directory",
            "review_trigger": "before another version", "pinned_tag": "v0"})

    def node(self, packages):
        """The Node beside the packages, or the one on PATH, as a record names it."""
        if self.engine not in NAMES_ITS_NODE:
            return {}
        beside = packages / ".bin/node"
        node = (beside if beside.exists() else Path(shutil.which("node"))).resolve()
        said = subprocess.run([node, "--version"], stdin=NULL, capture_output=True, text=True, check=True).stdout.strip()
        return {"interpreter": "node", "interpreter_path": str(node), "interpreter_version": said,
                "interpreter_sha256": hashlib.sha256(node.read_bytes()).hexdigest()}

    def record(self, kind, value):
        put(self.home / "state/records" / self.engine / f"{kind}.json", json.dumps(value))

    def variables(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "CTO_STATE_DIR": str(self.home / "state"),
                 f"CTO_HARNESS_ALLOW_{self.engine.upper().replace('-', '_')}": "1"}

    def cto_run(self, *args):
        return subprocess.run([self.cto, *args], stdin=NULL, capture_output=True, text=True, env=self.variables())

    def model(self):
        port = self.home / "port"
        port.unlink(missing_ok=True)
        # One for each run: the first request is the one before it.
        model = subprocess.Popen([self.cto, "__model", self.home / "scenario.toml", "--port-file", port], stdin=NULL, stdout=NULL, stderr=NULL)
        while not port.exists():
            time.sleep(0.01)
        put(self.home / "url", f"http://127.0.0.1:{port.read_text()}/v1\n")
        return model

    def once(self):
        model = self.model()
        try:
            done = self.cto_run("run", CASE, "--engine", self.engine, "--stage", "2", "--base-url-file", self.home / "url", "--json")
        finally:
            model.kill()
            model.wait()
        if done.returncode != 0:
            sys.exit(f"lanes.py: {self.engine} did not pass: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)


def own(document):
    """The harness's own milliseconds, without what is excepted."""
    report = document.get("report", document)
    timings = report["timings"]
    steps = {step["step"]: step["wall_ms"] for step in timings["steps"]}
    return timings["own_ms"] - steps.get("fake", 0), steps


def spread(values):
    values = sorted(values)
    tenth = len(values) // 10
    return f"{statistics.median(values):.0f} ms ({values[tenth]:.0f}–{values[-1 - tenth]:.0f})"


def measure(cto, work, times=10, engines=()):
    """Rows of what, measured, compared with, target, and whether it is met."""
    place = work / "lanes"
    place.mkdir()
    try:
        for engine, pattern, tool, arguments in LANES:
            found = sorted(ROOT.glob(f"target/{pattern}"))
            if not found or (engines and engine not in engines):
                continue
            lane = Lane(cto, place, engine, found[0].resolve(), uses(tool, arguments))
            lane.once()
            taken = [own(lane.once()) for _ in range(times)]
            values = [milliseconds for milliseconds, _ in taken]
            steps = ", ".join(f"{step} {statistics.median(all_of[step] for _, all_of in taken):.0f}" for step in taken[0][1])
            met = statistics.median(values) <= 100
            yield f"Own time of a run of {engine}", spread(values), f"steps: {steps} ms", "≤ 100 ms", met
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cto, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for what, measured, compared, target, met in measure(cto, work, *map(int, sys.argv[3:4]), engines=sys.argv[4:]):
        print(f"{what:<28} {measured:<26} {target:<10} {'met' if met else 'MISSED'}  {compared}")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
