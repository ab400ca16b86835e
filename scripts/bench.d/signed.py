"""Signing and verifying: what the seal costs, many small bundles, many big files. Used by measure.py."""

import hashlib
import os
import shutil
import time
from pathlib import Path

SMALL = 1000
BIG_FILES, BIG_BYTES = 8, 64 << 20


def seal(bench, Many, Ran):
    """A whole blocked run does little but open, seal and sign a bundle: an upper bound for the last two.

    What it does besides is in `cto contract` of the same case (start, parse, digest, print), taken off in pairs.
    What a disk adds is in the state on tmpfs.
    """
    place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else bench.work
    home = place / f"cto-bench-{os.getpid()}"
    try:
        walls = []
        for number in range(bench.pairs * 2 + 3):
            run = Ran([bench.cto, "run", "--engine", "pi", "--home", home], expect=3)
            rest = Ran([bench.cto, "contract", "--engine", "pi", "--home", home])
            if number >= 3:
                walls.append(run.wall - rest.wall)
        added = Many(walls)
        bench.row("A bundle opened, sealed and signed, wall", added.text("ms"), f"in {place}", "—", True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    walls = []
    for number in range(bench.pairs + 3):
        run = Ran([bench.cto, "run", "--engine", "pi", "--home", bench.home], expect=3)
        if number >= 3:
            walls.append(sealing_ms(bench))
    sealing = Many(walls)
    bench.row("… sealed and signed, by file times", sealing.text("ms"), "on the disk, with its syncs", "≤ 5 ms", sealing.median <= 5)


def sealing_ms(bench):
    """From the first file of the seal to the directory's last change: writing, signing, syncing, renaming."""
    bundle = max((bench.home / "harness-runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return (bundle.stat().st_mtime_ns - (bundle / "report.md").stat().st_mtime_ns) / 1e6


def many_small(bench, Many, Ran, name):
    """One command over a thousand copies of a real bundle of a pass."""
    bundle = bench.bundle(name)
    shelf = bench.subdir("shelf")
    for number in range(SMALL):
        shutil.copytree(bundle, shelf / f"copy-{number}")
    argv = [bench.cto, "verify", "--json", "--home", bench.home, *sorted(shelf.iterdir())]
    walls, cpu = [], []
    for number in range(max(5, bench.pairs // 3) + 1):
        ran = Ran_large(argv)
        if number:
            walls.append(ran[0])
            cpu.append(ran[1])
    bench.row(
        f"`cto verify`, {SMALL} small bundles, wall",
        Many(walls).text("s", 2),
        f"CPU {Many(cpu).text('s', 2)}; {len(list(bundle.rglob('*')))} files each",
        "≤ 0.6 s",
        Many(walls).median <= 0.6,
    )
    shutil.rmtree(shelf)


def Ran_large(argv):
    """Wall and CPU in seconds; the output is long, so it goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    started = time.perf_counter()
    pid = os.posix_spawnp(str(argv[0]), [str(word) for word in argv], dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"signed.py: {argv[:4]}: exit code {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime


def many_big(bench, Many, Ran, name):
    """A bundle with eight files of 64 MiB more, listed but not signed for: everything is hashed, and then refused."""
    bundle = bench.subdir("big") / bench.bundle(name).name
    shutil.copytree(bench.bundle(name), bundle)
    chunk = os.urandom(1 << 20)
    lines = (bundle / "SHA256SUMS").read_text().splitlines()
    for number in range(BIG_FILES):
        path = bundle / "backend" / f"big-{number}.log"
        hasher = hashlib.sha256()
        with open(path, "wb") as file:
            for _ in range(BIG_BYTES >> 20):
                file.write(chunk)
                hasher.update(chunk)
        lines.append(f"{hasher.hexdigest()}  backend/{path.name}")
    (bundle / "SHA256SUMS").write_text("\n".join(sorted(lines, key=lambda line: line[66:])) + "\n")
    os.sync()
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    ours, theirs = [], []
    for number in range(max(5, bench.pairs // 3) + 1):
        for side in (0, 1) if number % 2 else (1, 0):
            wall = Ran_large([bench.cto, "verify", f"{bundle}/", "--home", bench.home] if side == 0 else ["openssl", "dgst", "-sha256", *files])[0]
            if number:
                (ours, theirs)[side].append(wall)
    ratio = Many(b / a for a, b in zip(ours, theirs))
    megabytes = BIG_FILES * BIG_BYTES / 1e6
    bench.row(
        f"`cto verify`, {BIG_FILES} files of {BIG_BYTES >> 20} MiB",
        Many(megabytes / 1e3 / wall for wall in ours).text("GB/s", 2),
        f"openssl on one core {Many(megabytes / 1e3 / wall for wall in theirs).text('GB/s', 2)}",
        "—",
        True,
    )
    bench.row("… throughput against openssl", ratio.text("×", 2), "", "≥ 1.6 ×", ratio.median >= 1.6)
    shutil.rmtree(bundle)


def all_of_it(bench, Many, Ran):
    seal(bench, Many, Ran)
    many_small(bench, Many, Ran, "small")
    many_big(bench, Many, Ran, "small")


NOTES = [
    "- **A bundle opened, sealed and signed** is `cto run --engine pi`, which is blocked before anything is copied or started, less",
    "  `cto contract --engine pi` of the same case. **Sealed and signed** is the part of it from writing `report.md` to the last change",
    "  of the directory, by the times of the files: all digests, three signatures (statement, provenance, test result), each verified",
    "  before it is written, every sync and the rename.",
    "- **1,000 small bundles**: one `cto verify` over copies of a passed run's bundle. **Many big files**: a bundle of eight files",
    "  of 64 MiB, against `openssl dgst -sha256` over all of its files on one core.",
]
