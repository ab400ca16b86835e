//! A compiled module beside its source comes along while nothing changed that it may be made of. By
//! its presence alone: what it says is not asked here.

use cto_testkit::{shell, write};

use super::*;

const MODULE: &str = "calc.cpython-311-x86_64-linux-gnu.so";

fn built(house: &House) -> Repo {
    let repo = Repo::new(house, "compiled");
    for (path, text) in [
        (".gitignore", "*.so\n"),
        ("calc.py", "def add(a, b): return a + b\n"),
        ("calc.c", "#include \"op.inl\"\n"),
        ("op.inl", "#define ADD(x, y) (x)+(y)\n"),
        ("plain.py", "from calc import add\n"),
        ("pkg/__init__.py", ""),
        ("CMakeLists.txt", "project(calc)\n"),
        ("tools/write_c.py", "print('int x;')\n"),
        ("answer.txt", "right\n"),
    ] {
        repo.write(path, text);
    }
    repo.commit("a module");
    repo.write(MODULE, "compiled\n");
    repo
}

#[test]
fn a_module_stays_at_home_where_it_may_be_made_of_what_changed() {
    let house = house_with("copy");
    let repo = built(&house);
    let gone = format!("test ! -e {MODULE}");
    for (what, path) in [
        ("Python of its name", "calc.py"),
        ("what its source includes", "op.inl"),
        ("an ending nobody listed", "kernel.cu"),
        ("what builds it", "CMakeLists.txt"),
        ("what writes its source", "tools/write_c.py"),
    ] {
        let steps = [write(path, "changed\n")];
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", &gone]);
        assert_passed(&answer, &bundle, what);
        let notes = bundle.report()["environment_notes"].to_string();
        let said = format!("{MODULE} is not there: {path} changed");
        assert!(notes.contains(&said), "{what}: {notes}");
    }
    let steps = [shell("rm op.inl")];
    let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", &gone]);
    assert_passed(&answer, &bundle, "a deletion");
    // It was made of what is not committed.
    repo.write("calc.c", "int repaired;\n");
    let more = ["--from-head", "--test", &gone];
    let steps = [write("plain.py", "import calc\n")];
    let (answer, bundle) = attempt(&house, &repo, &steps, &more);
    assert_passed(&answer, &bundle, "a commit that is not checked out");
}

#[test]
fn an_honest_change_keeps_the_module() {
    let house = house_with("copy");
    let repo = built(&house);
    let there = format!("test -e {MODULE}");
    for path in [
        "plain.py",
        "pkg/new.py",
        "tests/test_calc.py",
        "tests/data.json",
        "docs/index.rst",
        "README.md",
    ] {
        let steps = [write(path, "changed = 1\n")];
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", &there]);
        assert_passed(&answer, &bundle, path);
    }
}
