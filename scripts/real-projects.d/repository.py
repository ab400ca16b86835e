"""A project on disk: fetched by the registries' own programs, committed, installed, and timed without the harness."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tarfile
import time

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "Author", "GIT_AUTHOR_EMAIL": "author@example.invalid",
       "GIT_COMMITTER_NAME": "Author", "GIT_COMMITTER_EMAIL": "author@example.invalid"}


# What decides how a project lies on disk; the rest of its entry may change without installing it again.
INSTALLED = ["get", "package", "version", "tag", "tools", "env", "ignore", "track", "remove", "files", "install", "path"]


class Unready(Exception):
    """Why a project could not be made ready; no word about the harness."""


def output(*command, cwd=None, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, text=True, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise Unready(f"{shlex.join(map(str, command))} ended with {done.returncode}: {said}")
    return done.stdout


def unpacked(archive, into):
    """An archive without its outermost directory."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            member.name = member.name.partition("/")[2]
            if member.name:
                tar.extract(member, into, filter="tar")


def one(directory):
    files = [file for file in directory.iterdir() if ".orig.tar" in file.name or file.name.endswith((".tgz", ".tar.gz"))]
    if len(files) != 1:
        raise Unready(f"one archive was expected, and there are {len(files)}")
    return files[0]


def from_pip(package, version, into, scratch):
    output("python3", "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(scratch),
           f"{package}=={version}")
    unpacked(one(scratch), into)
    # What only source packages have: build backends take it for the truth about the version.
    for extra in [into / "PKG-INFO", *into.glob("*.egg-info"), *into.glob("src/*.egg-info")]:
        shutil.rmtree(extra) if extra.is_dir() else extra.unlink(missing_ok=True)


def from_npm(package, version, into, scratch):
    output("npm", "pack", "--silent", f"{package}@{version}", cwd=scratch)
    unpacked(one(scratch), into)


def from_cargo(package, version, into, scratch):
    """`package` may name more crates, each with its directory and version: `indoc unindent=unindent@0.2.3`."""
    places, needs = [], ""
    for word in package.split():
        directory, _, crate = word.rpartition("=")
        crate, _, other = crate.partition("@")
        places.append((directory, crate))
        needs += f'{crate} = "={other or version}"\n'
    (scratch / "src").mkdir()
    (scratch / "src/lib.rs").touch()
    (scratch / "Cargo.toml").write_text(f'[package]\nname = "scratch"\nedition = "2021"\n[dependencies]\n{needs}')
    output("cargo", "vendor", "-q", cwd=scratch)
    for directory, crate in places:
        to = into / directory
        shutil.copytree(scratch / "vendor" / crate, to, dirs_exist_ok=True)
        # As its author wrote it, with the workspace that publishing takes out.
        (to / "Cargo.toml.orig").replace(to / "Cargo.toml")
        for extra in [".cargo-checksum.json", ".cargo_vcs_info.json", "Cargo.lock", "rust-toolchain.toml"]:
            (to / extra).unlink(missing_ok=True)


def apt_of(scratch, kind):
    """apt-get with a list of packages or sources (`deb`, `deb-src`) of our own, so that nothing is installed."""
    lists = scratch / "apt"
    for directory in ["lists/partial", "cache/archives/partial", "state", "sources"]:
        (lists / directory).mkdir(parents=True)
    (lists / "status").touch()
    for file in [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").iterdir()]:
        if file.suffix == ".sources":
            text = file.read_text().replace("Types: deb\n", f"Types: {kind}\n")
        elif file.suffix == ".list" and file.exists():
            text = "".join(kind + line[3:] + "\n" for line in file.read_text().splitlines() if line[:4] == "deb ")
        else:
            continue
        (lists / "sources" / file.name).write_text(text)
    apt = ["apt-get", "-qq"]
    for key, value in {"Dir::Etc::sourcelist": os.devnull, "Dir::Etc::sourceparts": lists / "sources",
                       "Dir::State": lists / "state", "Dir::State::lists": lists / "lists",
                       "Dir::State::status": lists / "status", "Dir::Cache": lists / "cache",
                       "APT::Sandbox::User": "root"}.items():
        apt += ["-o", f"{key}={value}"]
    output(*apt, "update")
    return apt


def from_apt(package, version, into, scratch):
    """The upstream archive of a Debian source package."""
    apt = apt_of(scratch, "deb-src")
    # Parts beside the main archive are not needed, and not every mirror has them.
    subprocess.run([*apt, "source", "--download-only", "--tar-only", package], cwd=scratch, capture_output=True)
    archive = one(scratch)
    if version not in archive.name:
        raise Unready(f"{archive.name} is not version {version}")
    unpacked(archive, into)


def from_deb(package, version, into, scratch):
    """The sources that a Debian `-dev` package has in a directory, without installing it: `package directory`."""
    package, directory = package.split()
    output(*apt_of(scratch, "deb"), "download", package, cwd=scratch)
    archives = list(scratch.glob("*.deb"))
    if len(archives) != 1 or version not in archives[0].name:
        raise Unready(f"{[archive.name for archive in archives]} is not version {version}")
    output("dpkg-deb", "-x", str(archives[0]), str(scratch / "laid-out"))
    shutil.copytree(scratch / "laid-out" / directory, into, dirs_exist_ok=True, symlinks=True)


FETCH = {"pip": from_pip, "npm": from_npm, "cargo": from_cargo, "apt": from_apt, "deb": from_deb}


def tool(name, work):
    """A Python tool as pipx installs it: an environment of its own, and a link to its program."""
    link = work / "tools/bin" / name
    if not link.exists():
        place = work / "tools" / name
        output("python3", "-m", "venv", str(place))
        output(str(place / "bin/python"), "-m", "pip", "install", "-q", name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place / "bin" / name)


class Ready:
    """A project that can be tried."""

    def __init__(self, project, place, work):
        self.project, self.place, self.path = project, place, place / project["name"]
        self.tried = set()
        self.env = dict(os.environ) | {name: str(value) for name, value in project.get("env", {}).items()}
        before = [str(self.path / directory) for directory in project.get("path", [])]
        if project.get("tools"):
            before.append(str(work / "tools/bin"))
        self.env["PATH"] = os.pathsep.join([*before, self.env["PATH"]])
        if ".venv/bin" in project.get("path", []):
            self.env["VIRTUAL_ENV"] = str(self.path / ".venv")

    def git(self, *words):
        return output("git", *words, cwd=self.path, env=self.env | GIT)

    def beside(self, name, keep=False):
        """A path next to the project for scratch of one kind; what was there before is gone."""
        path = self.place / name
        if not keep:
            shutil.rmtree(path, ignore_errors=True)
        return path

    def suite(self, command=None):
        """The suite as its owner types it: seconds, exit code, the end of what it said."""
        since = time.monotonic()
        done = subprocess.run(shlex.split(command or self.project["test"]), cwd=self.path, env=self.env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL)
        return time.monotonic() - since, done.returncode, (done.stdout + done.stderr).strip()[-1500:]

    def is_red_with(self, patch):
        """What the suite says with a change, if it is red without the harness as well."""
        self.git("apply", str(patch))
        try:
            _, code, said = self.suite()
        finally:
            self.git("reset", "-q", "--hard")
            self.git("clean", "-qfd")
        return said if code else None

    def bare(self):
        """Seconds of the suite when everything is warm."""
        for command in [*self.project.get("also", []), self.project["test"], self.project["test"]]:
            took, code, said = self.suite(command)
            if code != 0:
                raise Unready(f"its own suite, {command}, ends with {code}: {said}")
        dirt = self.git("status", "--porcelain").strip()
        if dirt:
            raise Unready(f"its suite leaves changes in the work tree: {dirt[:300]}")
        return took


# A registry may be out of breath: seconds to wait before the next try.
PAUSES = [5, 20]


def prepared(project, work):
    """Fetched, committed and installed; what a run before has made is used again."""
    place = work / "projects" / project["name"]
    ready = Ready(project, place, work)
    done, made_of = place / "ready", json.dumps({key: project.get(key) for key in INSTALLED})
    if done.exists() and done.read_text() == made_of:
        return ready
    for pause in [*PAUSES, None]:
        try:
            installed(ready, work)
            break
        except Unready as why:
            if pause is None:
                raise
            print(f"{project['name']}: once more in {pause} s, because {str(why).splitlines()[0]}", flush=True)
            time.sleep(pause)
    done.write_text(made_of)
    return ready


def installed(ready, work):
    """From an empty directory to a project as its owner has it."""
    project, place = ready.project, ready.place
    shutil.rmtree(place, ignore_errors=True)
    scratch = place / "fetched"
    scratch.mkdir(parents=True)
    ready.path.mkdir()
    FETCH[project["get"]](project["package"], project["version"], ready.path, scratch)
    shutil.rmtree(scratch)
    for name, text in project.get("files", {}).items():
        (ready.path / name).write_text(text)
    for name in project.get("remove", []):
        there = ready.path / name
        shutil.rmtree(there) if there.is_dir() else there.unlink()
    ignore = ready.path / ".gitignore"
    if project.get("ignore"):
        ignore.write_text((ignore.read_text() + "\n" if ignore.exists() else "") + "\n".join(project["ignore"]) + "\n")
    ready.git("init", "-q", "-b", "main")
    ready.git("add", "-A")
    # Files that a project has in spite of its own .gitignore.
    if project.get("track"):
        ready.git("add", "-f", *project["track"])
    ready.git("commit", "-qm", "As released")
    ready.git("tag", project.get("tag", f"v{project['version']}"))
    for name in project.get("tools", []):
        tool(name, work)
    for command in project.get("install", []):
        output("sh", "-c", command, cwd=ready.path, env=ready.env)
    dirt = ready.git("status", "--porcelain").strip()
    if dirt:
        raise Unready(f"installing leaves changes in the work tree: {dirt[:300]}")
