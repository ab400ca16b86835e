"""The changes that are tried: each is a few edits, made into a patch in a clone so that the project's own files keep
their times."""

import contextlib
import pathlib

import repository

BREAK = "break"
FIX = "fix"
# In this order: before a fix its owner has run the broken suite, so the caches are those of the mistake.
KINDS = ["comment", "docs", "refactoring", "new file", "new test", BREAK, FIX]
# One that changes nothing, one that adds to the tests, one that breaks.
SHORT = ["comment", "new test", BREAK, FIX]
COMMENT = {".py": "# {}", ".sh": "# {}", ".c": "/* {} */", ".h": "/* {} */"}

# What a new file holds, by what `tests` says about the project. Named by what runs it.
NEW_TEST = {
    "pytest": ("test_added.py", "def test_sum():\n    assert 2 + 2 == 4\n"),
    "unittest": ("test_added.py", "import unittest\n\n\nclass Added(unittest.TestCase):\n    def test_sum(self):\n"
               "        self.assertEqual(2 + 2, 4)\n"),
    "cargo": ("added.rs", "#[test]\nfn added() {\n    assert_eq!(2 + 2, 4);\n}\n"),
    "node": ("added.test.js", "'use strict'\nconst test = require('node:test')\nconst assert = require('node:assert')\n\n"
             "test('added', () => assert.strictEqual(2 + 2, 4))\n"),
    "mocha": ("added.js", "var assert = require('assert')\n\ndescribe('added', function () {\n"
              "  it('adds', function () { assert.strictEqual(2 + 2, 4) })\n})\n"),
    "tests": ("added.test.js", "test('added', () => expect(2 + 2).toBe(4))\n"),
    "vitest": ("added.test.js", "import { expect, test } from 'vitest'\n\ntest('added', () => expect(2 + 2).toBe(4))\n"),
    "jest": ("added.test.ts", "import { describe, expect, it } from '@jest/globals';\n\n"
             "describe('added', () => {\n  it('adds', () => { expect(2 + 2).toBe(4); });\n});\n"),
}
NEW_FILE = {
    ".py": ("added.py", '"""Doubles."""\n\n\ndef twice(number):\n    """Two times a number."""\n    return 2 * number\n'),
    ".rs": ("examples/added.rs", 'fn main() {\n    println!("{}", 2 * 21);\n}\n'),
    ".js": ("examples/added.js", "'use strict'\n\nmodule.exports = (number) => 2 * number\n"),
    ".ts": ("added.ts", "export const twice = (number: number): number => 2 * number;\n"),
    ".go": ("added.go", None),
    ".c": ("added.h", "#ifndef ADDED_H\n#define ADDED_H\n#define TWICE(n) (2 * (n))\n#endif\n"),
    ".h": ("added.h", "#ifndef ADDED_H\n#define ADDED_H\n#define TWICE(n) (2 * (n))\n#endif\n"),
    ".java": ("Added.java", None),
}


def of(project):
    """The kinds of change a project is tried with."""
    kinds = [kind for kind in KINDS if kind not in project.get("without", [])]
    return kinds if "tests" in project or "new_test" in project else [kind for kind in kinds if kind != "new test"]


def replaced(tree, edit):
    file = tree / edit["file"]
    text = file.read_text()
    found = text.count(edit["old"])
    if found != 1:
        raise repository.Unready(f"{edit['file']} holds {edit['old']!r} {found} times, not once")
    file.write_text(text.replace(edit["old"], edit["new"]))


def appended(file, text):
    file.write_text(file.read_text().rstrip("\n") + "\n" + text)


def written(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def new_test(tree, project):
    if "new_test" in project:
        written(tree / project["new_test"]["file"], project["new_test"]["text"])
    elif "tests" in project:
        name, text = NEW_TEST[project["tests"]["runner"]]
        written(tree / project["tests"]["dir"] / name, text)


def new_file(tree, project):
    source = pathlib.PurePath(project["source"])
    name, text = project.get("new_file", {}).get("file"), project.get("new_file", {}).get("text")
    if name is None:
        name, text = NEW_FILE[source.suffix]
        name = name if "/" in name else source.parent / name
    written(tree / name, text)


def edit(tree, project, kind):
    source = tree / project["source"]
    if kind == "comment":
        form = COMMENT.get(source.suffix, "// {}")
        appended(source, form.format("Read again in full; nothing to add.") + "\n")
    elif kind == "docs":
        appended(tree / project["docs"], "\nQuestions are welcome.\n")
    elif kind == "refactoring":
        replaced(tree, project["refactoring"])
    elif kind == "new file":
        new_file(tree, project)
    elif kind == "new test":
        new_test(tree, project)
    elif kind == FIX:
        repository.output("git", "checkout", "-q", "HEAD~1", "--", project["break"]["file"], cwd=tree)
        new_test(tree, project)
    elif kind == BREAK:
        replaced(tree, project["break"])


@contextlib.contextmanager
def made(ready, kind):
    """A patch of this kind. For a fix, the project is broken by its last commit meanwhile, and known to be."""
    before = ready.git("rev-parse", "HEAD").strip()
    try:
        if kind == FIX:
            replaced(ready.path, ready.project["break"])
            ready.git("commit", "-qam", "A mistake")
            if ready.suite()[1] == 0:
                raise repository.Unready("its own suite is green with the change that must break it")
        clone = ready.beside("clone")
        repository.output("git", "clone", "-q", str(ready.path), str(clone))
        edit(clone, ready.project, kind)
        repository.output("git", "add", "-A", "-f", cwd=clone)
        patch = ready.beside("patch", keep=True)
        patch.write_text(repository.output("git", "diff", "--cached", "--binary", cwd=clone))
        yield patch
    finally:
        if kind == FIX:
            ready.git("reset", "-q", "--hard", before)
