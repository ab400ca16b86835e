//! The must-fail control of a real pytest: it is red in every project that pytest runs, however that
//! is set up, and what silences any form of test is seen.

use crate::checks::pytest_attacks::pytest_bin;
use crate::fixtures::project::{BUG, FIXED, Project};
use crate::house;

const TESTS: &str = "import pytest\n\nfrom app import double\n\n\ndef test_zero():\n    assert double(0) == 0\n\n\ndef test_two():\n    assert double(2) == 4\n";

/// A project with one more file, which says how its tests run.
macro_rules! project {
    ($command:expr, $($path:expr => $text:expr),*) => {
        Project {
            runner: "pytest",
            command: $command,
            extra: "",
            files: &[("app.py", BUG), $(($path, $text)),*],
            fix: ("app.py", FIXED),
        }
    };
}

const PLAIN: Project = project!("pytest", "test_app.py" => TESTS);

const APPROX: Project = project!("pytest", "test_app.py" => "import pytest\n\nfrom app import double\n\n\ndef test_two():\n    assert double(2.0) == pytest.approx(4.0)\n");

const RAISES: Project = project!("pytest", "test_app.py" => "import pytest\n\nfrom app import double\n\n\ndef test_nothing():\n    with pytest.raises(TypeError):\n        double(None)\n");

#[test]
fn an_honest_project_has_an_honest_control() {
    let Some(_) = pytest_bin() else { return };
    for (what, project) in [
        (
            "a fixture with parameters for every test",
            project!("pytest", "test_app.py" => TESTS, "conftest.py" => "import pytest\n\n\n@pytest.fixture(autouse=True, params=[1, 2])\ndef twice(request):\n    return request.param\n"),
        ),
        (
            "a fixture that needs a class",
            project!("pytest", "conftest.py" => "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef size(request):\n    request.cls.size = 2\n", "test_app.py" => "from app import double\n\n\nclass TestDouble:\n    def test_two(self):\n        assert double(self.size) == 4\n"),
        ),
        (
            "everything is strict",
            project!("pytest", "pytest.ini" => "[pytest]\naddopts = --strict-markers --strict-config -W error -ra\nxfail_strict = true\ntestpaths = tests\n", "tests/conftest.py" => "import os, sys\n\nsys.path.insert(0, os.getcwd())\n", "tests/test_app.py" => TESTS),
        ),
        (
            "nothing is said",
            project!("pytest -qq --no-summary", "test_app.py" => TESTS),
        ),
        (
            "other names, and doc tests",
            project!("pytest --doctest-modules", "pytest.ini" => "[pytest]\npython_functions = check_*\npython_classes = Check*\n", "test_app.py" => "from re import compile\n\nfrom app import double\n\n\ndef exec():\n    \"\"\"\n    >>> double(2)\n    4\n    \"\"\"\n\n\ndef check_two():\n    assert double(2) == 4\n"),
        ),
        (
            "single tests of one file, and all of another",
            project!("pytest test_app.py::test_zero test_app.py::test_two sub", "test_app.py" => TESTS, "sub/test_more.py" => "def test_more():\n    pass\n"),
        ),
        (
            "one file is asked for, and another is skipped",
            project!("pytest test_app.py sub", "test_app.py" => TESTS, "sub/test_off.py" => "import pytest\n\npytestmark = pytest.mark.skip\n\n\ndef test_off():\n    assert False\n"),
        ),
    ] {
        project.honest(&house(), what, &[]);
    }
}

#[test]
fn what_silences_a_form_of_test_is_seen() {
    let Some(_) = pytest_bin() else { return };
    for (what, project, patch) in [
        (
            "a function does nothing",
            PLAIN,
            "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n",
        ),
        (
            "another function is called",
            PLAIN,
            "import _pytest.python\n\n_pytest.python.Function.obj = property(lambda self: lambda **words: None)\n",
        ),
        (
            "the hook that calls it answers at once",
            PLAIN,
            "import pluggy\n\ncall = pluggy.HookCaller.__call__\npluggy.HookCaller.__call__ = lambda self, **words: True if self.name == 'pytest_pyfunc_call' else call(self, **words)\n",
        ),
        (
            "about equal is always equal",
            APPROX,
            "from _pytest import python_api\n\nApproxScalar = python_api.ApproxScalar\nApproxScalar.__eq__ = lambda self, other: True\n",
        ),
        (
            "whatever is raised will do",
            RAISES,
            "try:\n    from _pytest.raises import RaisesExc as Raises\nexcept ImportError:\n    from _pytest.python_api import RaisesContext as Raises\nRaises.__exit__ = lambda self, *raised: True\n",
        ),
    ] {
        project.attack(&house(), what, &[("app.py", &format!("{patch}\n\n{BUG}"))]);
    }
}

const SUB: Project = project!("pytest", "conftest.py" => "", "tests/test_top.py" => "def test_top():\n    pass\n", "tests/x/test_app.py" => TESTS);

/// What turns the tests of one directory to passed and leaves the added ones out there: a file whose
/// own tests ran was not left out.
#[test]
fn what_leaves_the_added_tests_of_one_directory_out_is_seen() {
    let Some(_) = pytest_bin() else { return };
    let passed = "import pytest\n\nKNOWN = ('test_zero', 'test_two')\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    done = yield\n    if item.name in KNOWN:\n        done.get_result().outcome = 'passed'\n\n\n";
    for (what, drop) in [
        (
            "dropped",
            "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if '/x/' not in str(item.fspath) or item.name in KNOWN]\n",
        ),
        (
            "skipped",
            "def pytest_runtest_setup(item):\n    if item.name not in KNOWN:\n        pytest.skip('unknown')\n",
        ),
        (
            "never made",
            "def pytest_pycollect_makeitem(collector, name, obj):\n    if name not in KNOWN:\n        return []\n",
        ),
    ] {
        let conftest = format!("{passed}{drop}");
        SUB.attack(&house(), what, &[("tests/x/conftest.py", &conftest)]);
    }
    SUB.honest(&house(), "repaired", &[]);
}
