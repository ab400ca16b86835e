"""Measures `cto` against its promises and writes docs/performance.md. Called by scripts/bench.

usage: measure.py CTO WORK PAIRS DOCUMENT
       measure.py --starts CTO WORK PAIRS      (used by itself, as another user)
"""

import ctypes
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import batch
import index

CASE = """\
schema_version = 1
task_id = "{name}"
title = "One line"
objective = "Make note.txt say done."
risk_class = "low"
allowed_paths = ["note.txt", "big.txt"]
forbidden_actions = ["push"]
mutation_mode = "copied-fixture"
verification_commands = ["grep -q done note.txt"]
verification_control = {{ patch = "control.patch" }}
success_criteria = ["note.txt says done"]
rollback = "Nothing to roll back."

[limits]
engine_wall_seconds = 600
engine_idle_seconds = 600
verification_wall_seconds = 600
verification_idle_seconds = 600
output_bytes = {keep}
"""
SCRIPT = """\
[[step]]
do = "write"
path = "note.txt"
text = "done\\n"
"""
CONTROL = """\
diff --git a/note.txt b/note.txt
--- a/note.txt
+++ b/note.txt
@@ -1 +1 @@
-done
+gone
"""
# 79 characters and a newline, 6,250,000 times: 500 MB.
BIG = "yes 'a line of text as an engine or a person might write it, 79 characters wide, ok..' | head -n 6250000"
BIG = BIG.replace("ok..", "ok" + "." * (79 - len(BIG.split("'")[1]) + 2))

# The same lines, 1 GB of them.
FLOOD = BIG.replace("| head -n 6250000", "2>/dev/null | head -c 1000000000")
# Nothing else on the machine sleeps for exactly this long.
MARK = f"86399.{os.getpid()}"
LEAVE_BEHIND = f"sleep {MARK} & sleep {MARK} & (setsid sleep {MARK} &) ; exit 0"
STAY = f"sleep {MARK} & (setsid sleep {MARK} &) ; sleep {MARK}"

ENV = {"PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), "LANG": "C.UTF-8"}
NULL = os.open(os.devnull, os.O_RDWR)


def descends(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def make_case(root, name, extra="", keep=1 << 30):
    case = root / name
    (case / "workspace").mkdir(parents=True)
    (case / "scripts").mkdir()
    (case / "case.toml").write_text(CASE.format(name=name, keep=keep))
    (case / "control.patch").write_text(CONTROL)
    (case / "workspace" / "note.txt").write_text("hello\n")
    (case / "scripts" / "oracle.toml").write_text(SCRIPT + extra)
    return case


# Only a case that ships with the binary may run without a jail.
BUILT_IN = "sh-word-count"

class Ran:
    """Wall in ms, CPU in ms of its own (None where the kernel does not say) and of its tree, and standard output."""

    def __init__(self, argv, expect=0):
        argv = [str(arg) for arg in argv]
        read, write = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, NULL, 0), (os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)]
        if expect:
            actions.append((os.POSIX_SPAWN_DUP2, NULL, 2))
        started = time.perf_counter()
        pid = os.posix_spawnp(argv[0], argv, ENV, file_actions=actions)
        # Left as a zombie, so that the kernel still has its accounts.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self.wall = (time.perf_counter() - started) * 1e3
        self.cpu = own_cpu(pid)
        _, status, usage = os.wait4(pid, 0)
        # With every process below it, those it did not wait for included: they became our children.
        self.tree_cpu = (usage.ru_utime + usage.ru_stime) * 1e3
        while True:
            try:
                usage = os.wait4(-1, 0)[2]
            except ChildProcessError:
                break
            self.tree_cpu += (usage.ru_utime + usage.ru_stime) * 1e3
        code = os.waitstatus_to_exitcode(status)
        os.close(write)
        with os.fdopen(read) as pipe:
            self.output = pipe.read()
        if code != expect:
            sys.exit(f"measure.py: {' '.join(argv)}: exit code {code}\n{self.output}")


def bwrap(workspace):
    """Debian's bubblewrap with the namespaces and the view of the system a jail of ours has."""
    links = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]
    return [
        *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", *links, "--proc", "/proc", "--dev", "/dev"),
        *("--tmpfs", "/tmp", "--bind", workspace, workspace, "--chdir", workspace, "true"),
    ]


def starts(cto, work, pairs):
    """Walls of `cto exec -- true` and of bubblewrap's `true`, in pairs."""
    workspace = work / "workspace"
    workspace.mkdir(exist_ok=True)
    ours = [cto, "exec", "--home", work / "state", "--workspace", workspace, "--", "true"]
    walls = {"cto": [], "bwrap": [], "cto cpu": [], "bwrap cpu": []}
    for number in range(pairs + 3):
        for side in ("cto", "bwrap") if number % 2 else ("bwrap", "cto"):
            ran = Ran(ours if side == "cto" else bwrap(workspace))
            if number >= 3:
                walls[side].append(ran.wall)
                walls[f"{side} cpu"].append(ran.tree_cpu)
    return walls


def starts_as_user(cto, pairs):
    """The same as an ordinary user, with a copy of the program that user can reach; None where that cannot be."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return None
    uid = 54321
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chown(place, uid, uid)
        for source in (cto, Path(__file__)):
            shutil.copy(source, place)
        argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "python3", f"{place}/measure.py", "--starts"]
        ran = subprocess.run([*argv, f"{place}/{cto.name}", place, str(pairs)], capture_output=True, text=True, env=ENV)
        return json.loads(ran.stdout) if ran.returncode == 0 else None


def alive(programs):
    """Processes, zombies aside, of one of these programs or with our mark as an argument."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if (MARK.encode() in line or line[0].decode() in programs) and is_alive(int(entry)):
                    found.add(int(entry))
            except OSError:
                pass
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def own_cpu(pid):
    """Time on a CPU without children, in ms: the scheduler's own nanosecond account of the main thread.

    The threads that bring the files of a bundle to the disk at the seal are not in it; getrusage's own figures come in the same account, but a parent can only
    read them with the children's added.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    except (OSError, IndexError, ValueError):
        return None


def peak_rss(argv, env=None):
    """VmHWM in MB, read while the process stands still at its exit.

    ru_maxrss would not do: it also counts the pages of the program that spawned it, and its children.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    traceme, cont, setoptions, traceexit, exitkill = 0, 7, 0x4200, 0x40, 0x100000
    argv = [str(arg) for arg in argv]
    pid = os.fork()
    if pid == 0:
        os.dup2(NULL, 1)
        libc.ptrace(traceme, 0, None, None)
        try:
            os.execvpe(argv[0], argv, env or ENV)
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    libc.ptrace(setoptions, pid, None, traceexit | exitkill)
    peak, signal = None, 0
    while not (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
        if status >> 8 == (5 | 6 << 8):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            peak = next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))
        elif os.WSTOPSIG(status) != 5:
            signal = os.WSTOPSIG(status)
        libc.ptrace(cont, pid, None, signal or None)
        signal = 0
        _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0 or peak is None:
        sys.exit(f"measure.py: {' '.join(argv)}: could not be traced")
    return peak


class Many:
    def __init__(self, values):
        self.values = sorted(values)
        self.median = statistics.median(self.values)

    def at(self, part):
        return self.values[min(len(self.values) - 1, round(part * (len(self.values) - 1)))]

    def text(self, unit="", digits=1):
        unit = unit and " " + unit
        return f"{self.median:.{digits}f}{unit} ({self.at(0.1):.{digits}f}–{self.at(0.9):.{digits}f})"


class Bench:
    def __init__(self, cto, work, pairs):
        self.cto, self.work, self.pairs = cto, work, pairs
        self.home = work / "home"
        self.rows = []
        self.notes = []
        self.more_notes = []
        self.load = os.getloadavg()[0]

    def run(self, case):
        return Ran([self.cto, "run", f"{case}/", "--home", self.home])

    def bundle(self, name):
        return max((self.home / "harness-runs").glob(f"*-{name}-*"), key=lambda path: path.stat().st_mtime_ns)

    def row(self, what, measured, compared, target, met):
        self.rows.append((what, measured, compared, target, "met" if met else "**missed**"))
        word = "" if target == "—" else "met" if met else "MISSED"
        print(f"{what:<48} {measured:<28} {compared:<42} {target:<10} {word}", flush=True)

    def cpu(self):
        """First of all, and with nothing in between: see what is said of file systems in the document."""
        case = make_case(self.work, "small")
        cpu = [self.run(case).cpu for _ in range(self.pairs + 3)][3:]
        if None in cpu:
            self.row("`cto run`, own CPU", "not known", "no /proc/PID/schedstat", "≤ 12 ms", False)
        else:
            self.row("`cto run`, own CPU, runs alone", Many(cpu).text("ms"), self.cpu_on_tmpfs(case), "≤ 12 ms", Many(cpu).median <= 12)

    def runs(self):
        case = self.work / "small"
        by_hand = Path(__file__).with_name("by-hand")
        cto, hand, tools, cpu = [], [], [], []
        for number in range(self.pairs + 3):
            # The order changes from pair to pair, so that neither side always comes second.
            for side in ("cto", "hand") if number % 2 else ("hand", "cto"):
                if side == "cto":
                    ran = self.run(case)
                    if number >= 3:
                        cto.append(ran.wall)
                        cpu.append(ran.cpu)
                else:
                    ran = Ran([by_hand, self.cto, case, self.work / "by-hand"])
                    if number >= 3:
                        hand.append(ran.wall)
                        tools.append(int(ran.output) / 1e3)
        ratio = Many(a / b for a, b in zip(cto, hand))
        strict = Many(a / (b - c) for a, b, c in zip(cto, hand, tools))
        self.row("`cto run`, wall", Many(cto).text("ms"), f"by hand {Many(hand).text('ms')}", "—", True)
        self.row("… ratio of each pair", ratio.text("×", 2), "", "≤ 1.5 ×", ratio.median <= 1.5)
        if None not in cpu:
            self.row("… own CPU amid the pairs", Many(cpu).text("ms"), "", "≤ 12 ms", Many(cpu).median <= 12)
        self.notes.append(
            f"`mkdir`, `cp` and `rm` take {Many(tools).text('ms')} of the script's wall, because a shell needs a process for "
            f"what `cto` does itself. Taking them off the script's side, work included, the ratio is {strict.text('×', 2)}."
        )

    def jail_starts(self):
        """`cto exec -- true` against bubblewrap, as who we are and as an ordinary user."""
        self.bwrap_start = None
        for who, walls in (
            ("as root" if os.geteuid() == 0 else "as a user", starts(self.cto, self.subdir("starts"), self.pairs * 2)),
            ("as an ordinary user", starts_as_user(self.cto, self.pairs * 2)),
        ):
            if walls is None:
                self.notes.append(f"`cto exec` {who}: not measured here (needs root, `setpriv` and user namespaces).")
                continue
            ours, theirs = Many(walls["cto"]), Many(walls["bwrap"])
            self.bwrap_start = self.bwrap_start or theirs.median
            ratio = Many(a / b for a, b in zip(walls["cto"], walls["bwrap"]))
            self.row(f"`cto exec -- true` {who}, wall", ours.text("ms"), f"bubblewrap {theirs.text('ms')}", "—", True)
            self.row("… ratio of each pair", ratio.text("×", 2), f"of the 10th percentiles {ours.at(0.1) / theirs.at(0.1):.2f} ×", "≤ 1.2 ×", ratio.median <= 1.2)
            cpu = [Many(walls[f"{side} cpu"]) for side in ("cto", "bwrap")]
            self.row("… CPU of the whole tree", cpu[0].text("ms"), f"bubblewrap {cpu[1].text('ms')}", "—", True)

    def contained_over_bare(self):
        """What the jails of one run (engine, check, hidden check, control) add to it."""
        bare = self.bare_argv()
        if bare is None or not self.bwrap_start:
            self.notes.append("A contained run over the bare one: not measured here (needs root and `setpriv`).")
            return
        case = self.work / "small"
        same = [word.replace("sys_admin", "sys_boot") for word in bare]
        walls = ([], [])
        for number in range(self.pairs + 3):
            for side in (0, 1) if number % 2 else (1, 0):
                home = self.work / ("home", "home-bare")[side]
                ran = Ran([*(bare if side else same), self.cto, "run", BUILT_IN, "--home", home])
                if number >= 3:
                    walls[side].append(ran.wall)
        # A bare run looks for a jail first, in vain; a contained one remembers that it found one.
        vain = [Ran([*bare, self.cto, "exec", "--home", self.home, "--workspace", case, "--", "true"], expect=125).wall for _ in range(self.pairs)]
        none = [Ran([*bare, self.cto, "--version"]).wall for _ in range(self.pairs)]
        search = Many(vain).median - Many(none).median
        added = Many(a - b + search for a, b in zip(*walls))
        self.row(
            "Contained run over the bare one, wall",
            added.text("ms"),
            f"contained {Many(walls[0]).text('ms')}, bare {Many(walls[1]).text('ms')} of which search {search:.1f} ms",
            f"≤ 2 × {self.bwrap_start:.1f} ms",
            added.median <= 2 * self.bwrap_start,
        )

    def bare_argv(self):
        """A way to start `cto` where no jail can be made: then `fake` at stage 2 runs bare, and says so."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            return None
        argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
        home = self.work / "home-bare"
        Ran([*argv, self.cto, "run", BUILT_IN, "--home", home])
        bundle = max((home / "harness-runs").glob(f"*-{BUILT_IN}-*"), key=lambda path: path.stat().st_mtime_ns)
        contained = json.loads((bundle / "containment.json").read_text()).get("enforced")
        return argv if contained == "none" else None

    def flood(self):
        """1 GB of output of a contained engine through `cto run`, against tee and openssl."""
        case = make_case(self.work, "flood", f'\n[[step]]\ndo = "shell"\ncommand = """{FLOOD}"""\n', keep=8 << 20)
        small = self.work / "small"
        theirs = ["sh", "-c", f"{FLOOD} | tee {self.work / 'tee'} | openssl dgst -sha256"]
        walls, own = ([], [], []), []
        for number in range(max(5, self.pairs // 3) + 1):
            for side in (0, 1, 2) if number % 2 else (2, 1, 0):
                ran = (lambda: self.run(case), lambda: Ran(theirs), lambda: self.run(small))[side]()
                if number:
                    walls[side].append(ran.wall)
                    if side == 0:
                        own.append(ran.cpu or 0)
        (self.work / "tee").unlink()
        ratio = Many(a / b for a, b in zip(walls[0], walls[1]))
        self.row("1 GB of output through `cto run`, wall", Many(walls[0]).text("ms", 0), f"tee and openssl {Many(walls[1]).text('ms', 0)}", "—", True)
        self.row("… ratio of each pair", ratio.text("×", 2), f"own CPU {Many(own).text('ms', 0)}", "≤ 1.1 ×", ratio.median <= 1.1)

    def leaks(self):
        """Many contained processes that leave children behind: what is left of them afterwards."""
        place = self.subdir("leaks")
        temp, workspace = place / "tmp", place / "workspace"
        temp.mkdir()
        workspace.mkdir()
        case = make_case(place, "leak", f'\n[[step]]\ndo = "shell"\ncommand = """{LEAVE_BEHIND}"""\n')
        mounts = lambda: len(Path("/proc/self/mountinfo").read_text().splitlines())
        temps = lambda: len(os.listdir(temp)) + len(os.listdir("/tmp"))
        before = (mounts(), temps(), len(os.listdir("/proc/self/fd")))
        env, ENV["TMPDIR"] = dict(ENV), str(temp)
        # Every one of them also says what descriptors it was given: 0, 1, 2 and the directory it reads.
        count = "set -- /proc/self/fd/*; echo $#"
        argv = [self.cto, "exec", "--home", self.home, "--workspace", workspace, "--", "sh", "-c", f"{LEAVE_BEHIND[:-6]} {count}"]
        descriptors = {int(Ran(argv).output) for _ in range(300)}
        started = [
            subprocess.Popen([self.cto, "run", f"{case}/", "--home", place / "home"], env=ENV, stdin=NULL, stdout=NULL, stderr=NULL)
            for _ in range(32)
        ]
        failed = sum(process.wait() != 0 for process in started)
        ENV.clear()
        ENV.update(env)
        left = len(alive([str(self.cto)]))
        after = (mounts(), temps(), len(os.listdir("/proc/self/fd")))
        scratch = sum(1 for path in (place / "home").rglob("*") if path.is_dir() and path.name in ("scratch", "workspace", "verify", "control"))
        self.row("300 `cto exec` in a row and 32 `cto run` at once", f"{left} survivors", f"{failed} of 32 runs failed", "0", left + failed == 0)
        self.row("… mounts, temporary files, working copies left", f"{after[0] - before[0]}, {after[1] - before[1]}, {scratch}", "", "0", (after[0], after[1], scratch) == (before[0], before[1], 0))
        extra = max(descriptors) - 4
        self.row("… descriptors given to a jail beyond 0, 1, 2", str(extra), f"our own {after[2] - before[2]} more", "0", extra <= 0 and after[2] == before[2])

    def killed(self):
        """From SIGKILL of the harness to no process of its run alive."""
        place = self.subdir("killed")
        case = make_case(place, "killed", f'\n[[step]]\ndo = "shell"\ncommand = """{STAY}"""\n')
        times = []
        for _ in range(self.pairs):
            process = subprocess.Popen([self.cto, "run", f"{case}/", "--home", place / "home"], env=ENV, stdin=NULL, stdout=NULL, stderr=NULL)
            while len(alive([])) < 3:
                if process.poll() is not None:
                    sys.exit("measure.py: the run to be killed ended by itself")
                time.sleep(0.005)
            tree = alive(["/engine/cto", "/proc/self/exe"])
            tree = {pid for pid in tree if descends(pid, process.pid)}
            process.send_signal(signal.SIGKILL)
            started = time.perf_counter()
            while any(is_alive(pid) for pid in tree):
                time.sleep(0.0003)
            times.append((time.perf_counter() - started) * 1e3)
            process.wait()
        times = Many(times)
        self.row("SIGKILL of `cto run` to no process of it alive", times.text("ms"), f"worst of {self.pairs}: {times.values[-1]:.1f} ms; {len(tree)} processes", "≤ 50 ms", times.values[-1] <= 50)

    def subdir(self, name):
        path = self.work / name
        path.mkdir()
        return path

    def cpu_on_tmpfs(self, case):
        """The same without a disk's file system: the difference is the kernel making and removing files."""
        if not os.access("/dev/shm", os.W_OK) or file_system("/dev/shm") != "tmpfs":
            return ""
        with tempfile.TemporaryDirectory(dir="/dev/shm") as home:
            argv = [self.cto, "run", f"{case}/", "--home", home]
            return f"state on tmpfs {Many(Ran(argv).cpu for _ in range(self.pairs)).text('ms')}"

    def sync_cost(self):
        """What one fdatasync of a new small file takes here: a run makes about twenty, the script none."""
        walls = []
        for number in range(self.pairs):
            file = os.open(self.work / f"sync-{number}", os.O_CREAT | os.O_WRONLY)
            os.write(file, b"x" * 1500)
            started = time.perf_counter()
            os.fdatasync(file)
            walls.append((time.perf_counter() - started) * 1e3)
            os.close(file)
        self.notes.append(
            f"One `fdatasync` of a new small file takes {Many(walls).text('ms', 2)} here. A run makes about twenty, one after "
            "the other, and the script none, so on a disk that answers more slowly the wall ratio is higher than above."
        )

    def verify_small(self):
        bundle = self.bundle("small")
        argv = [self.cto, "verify", f"{bundle}/", "--home", self.home]
        wall = Many([Ran(argv).wall for _ in range(self.pairs + 3)][3:])
        self.row("`cto verify`, small bundle, wall", wall.text("ms"), "", "≤ 5 ms", wall.median <= 5)

    def rss(self):
        for what, argv in (
            ("run", [self.cto, "run", f"{self.work / 'small'}/", "--home", self.home]),
            ("verify", [self.cto, "verify", f"{self.bundle('small')}/", "--home", self.home]),
        ):
            peak = Many(peak_rss(argv) for _ in range(min(self.pairs, 10)))
            self.row(f"`cto {what}`, peak RSS", peak.text("MB"), "", "≤ 20 MB", peak.median <= 20)

    def verify_large(self, name, what, shell):
        step = f'\n[[step]]\ndo = "shell"\ncommand = """{shell}"""\n'
        self.run(make_case(self.work, name, step))
        bundle = self.bundle(name)
        files = sorted(path for path in bundle.rglob("*") if path.is_file())
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        os.sync()
        argv = [self.cto, "verify", f"{bundle}/", "--home", self.home]
        ours, theirs = [], []
        for number in range(max(5, self.pairs // 2) + 1):
            for side in (0, 1) if number % 2 else (1, 0):
                ran = Ran(argv) if side == 0 else Ran(["openssl", "dgst", "-sha256", *files])
                if number:
                    (ours, theirs)[side].append(ran.wall)
        ratio = Many(b / a for a, b in zip(ours, theirs))
        speed = [Many(megabytes / wall for wall in walls) for walls in (ours, theirs)]
        self.row(
            f"`cto verify`, {megabytes:.0f} MB bundle, {what}",
            speed[0].text("GB/s", 2),
            f"openssl {speed[1].text('GB/s', 2)}",
            "—",
            True,
        )
        self.row("… throughput against openssl", ratio.text("×", 2), "", "≥ 0.9 ×", ratio.median >= 0.9)
        shutil.rmtree(bundle)

    def document(self):
        after = os.getloadavg()[0]
        busy = max(self.load, after) > (os.cpu_count() or 1)
        if busy:
            self.notes.insert(0, "The machine was busy with other work (see the load): walls are several times those of an idle machine, and their ratios are noise more than measure.")
        lines = [
            "# Performance",
            "",
            f"Generated by `scripts/bench {self.pairs}`; do not edit.",
            "",
            f"Machine class: {os.cpu_count()} cores, {platform.machine()}, Linux {platform.release().split('-')[0]}, {file_system(self.work)}; "
            f"{version(['git', '--version'])}, {version(['openssl', 'version'])}, {version(['bwrap', '--version'])}; load {self.load:.1f} before, {after:.1f} after.",
            "Numbers are medians with the 10th to 90th percentile in brackets. Compared numbers were taken in interleaved",
            "pairs on the same file system, page cache warm; ratios are medians of the ratios of pairs.",
            "",
            "| What | Measured | Compared with | Target | |",
            "|---|---|---|---|---|",
            *(f"| {' | '.join(row[:4])} | {row[4] if row[3] != '—' else ''} |" for row in self.rows),
            "",
            *(f"- {note}" for note in self.notes),
            "",
            "## How",
            "",
            "- **`cto run`**: `cto run CASE/ --home DIR` on a case of one file, whose engine is an instant `fake` script, whose check is",
            "  `grep -q done note.txt` and whose must-fail control is a patch. **By hand** is `scripts/bench.d/by-hand`: one bash",
            "  script that starts the same git commands with the same options, the same engine and the same checks, and does",
            "  nothing of what makes a run evidence: no contract, gates, chain, digests, secret scan, judgement, seal or sync.",
            "- **Own CPU** is RUSAGE_SELF without children: after exit the process is held as a zombie",
            "  (`waitid` with `WNOWAIT`) and `/proc/PID/schedstat` read, the account of the main thread in nanoseconds, before it is reaped.",
            "  It includes the kernel's work on its behalf (some fifty files and directories made, most of them removed, all evidence",
            "  synced); the digest of the `cto` executable is remembered. It depends on the file system and its recent past: ext4 without",
            "  a journal looks at every recently freed inode before it takes a fresh one, so the number moves with what else was removed",
            "  on the disk of late. It is given alone (before the pairs), amid the pairs, and with state on tmpfs, that is without a",
            "  disk's file system.",
            "- **`cto exec -- true`** builds every layer, reads each back from the kernel, tries all canaries and counts survivors",
            "  at the end. **bubblewrap** is `bwrap --unshare-all --die-with-parent`, `/usr` read-only, its own `/proc`, `/dev` and `/tmp`,",
            "  the workspace writable, and `true`; no seccomp, Landlock or canary, and it does not wait for its",
            "  first process to be gone. As an ordinary user both run as uid 54321.",
            "- **Contained over bare**: `setpriv` takes CAP_SYS_ADMIN away, so that no jail can be made and the same binary runs `fake`",
            "  bare (the other side loses CAP_SYS_BOOT instead). A run of the built-in `sh-word-count` enters four jails: engine, check, hidden check, control. The bare side looks for a",
            "  jail in vain; that is measured with a `cto exec` that fails and taken off it.",
            "- **1 GB of output**: a contained engine prints text of 80 bytes a line; `cto run` redacts, digests, keeps head and tail, and",
            "  reads each line for events; everything else of a run is in the wall too. **tee and openssl** is the same command",
            "  piped into `tee FILE | openssl dgst -sha256`.",
            "- **Leaks**: each of the 300 and the 32 leaves three sleeping children behind, one in a session of its own. Survivors are",
            "  looked for by a mark in the command line and by program, mounts in `/proc/self/mountinfo`, temporary files in `TMPDIR` and `/tmp`.",
            "- **SIGKILL**: the engine and three sleepers run; the harness is killed; every process below it is looked at until",
            "  none is alive (a zombie is not).",
            "- **`cto verify`**: `cto verify BUNDLE/` against `openssl dgst -sha256` over the same files. The large bundles are real ones:",
            "  an engine that printed 500 MB, and one that added a file of 500 MB.",
            *self.more_notes,
            "- **Peak RSS** is VmHWM, read at the process's exit (`PTRACE_O_TRACEEXIT`).",
            "- **Many runs**: wall and share as `cto run --all` and `cto matrix` print them themselves (`scripts/bench.d/batch.py`).",
            "- **Index**: 100,000 directories with the report and sums of a real bundle under other ids (`scripts/bench.d/index.py`).",
            "  Filled means `cto runs --reindex`, all of it; an answer is one process from start to end, page cache warm. `cto show`",
            "  looks for its run among the names, without the index.",
            "",
        ]
        return "\n".join(lines)


def version(argv):
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return text.split("(")[0].replace(" version", "").strip() if "git" in argv[0] else " ".join(text.split()[:2])


def file_system(path):
    """Its type, by the longest mount point above the path."""
    place = Path(path).resolve()
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(point), kind) for point, kind in mounts if place == Path(point) or Path(point) in place.parents]
    return max(above)[1] if above else "unknown file system"


def main():
    # Whatever outlives its parent becomes a child of ours.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if sys.argv[1] == "--starts":
        print(json.dumps(starts(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
        return
    # Not where the part above runs: another user sees a copy of this file alone.
    import gateway
    import lanes
    import overlay
    import packages
    import signed
    import streams
    import strict
    import tries

    cto, work, pairs, document = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    bench = Bench(cto, work, pairs)
    bench.cpu()
    bench.runs()
    bench.jail_starts()
    bench.contained_over_bare()
    bench.flood()
    bench.leaks()
    bench.killed()
    bench.sync_cost()
    bench.verify_small()
    bench.rss()
    signed.all_of_it(bench, Many, Ran)
    bench.more_notes = signed.NOTES
    bench.verify_large("printed", "a log", BIG)
    bench.verify_large("patched", "a patch", f"{BIG} > big.txt")
    for row in [*batch.measure(cto, work), *index.measure(cto, work, times=max(30, pairs)), *gateway.measure(cto, max(30, pairs))]:
        bench.row(*row)
    for row in [*packages.measure(cto, work, times=max(30, pairs)), *lanes.measure(cto, work, times=max(10, pairs // 3))]:
        bench.row(*row)
    for row in streams.measure(cto, work):
        bench.row(*row)
    for row in [*strict.rows(cto, bench.subdir("strict"), max(30, pairs)), *overlay.rows(cto, bench.subdir("overlay"), max(30, pairs))]:
        bench.row(*row)
    for row in tries.rows(cto, cto.parent.parent / "real-projects", max(30, pairs)):
        bench.row(*row)
    document.parent.mkdir(exist_ok=True)
    document.write_text(bench.document())
    print(f"written: {document}")


if __name__ == "__main__":
    main()
