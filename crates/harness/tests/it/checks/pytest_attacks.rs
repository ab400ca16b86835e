//! The same attacks with a real pytest: its configuration, its plugins and the tests themselves.

use std::path::PathBuf;

use cto_testkit::{shell, skip, write};

use crate::fixtures::project::{BUG, FIXED, Project};
use crate::house;

/// The directory of pytest's program, where this machine has one.
pub fn pytest_bin() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .find(|dir| dir.join("pytest").is_file() && !dir.ends_with("shims"));
    assert!(
        found.is_some() || std::env::var_os("REQUIRE_PYTEST").is_none(),
        "pytest is not on PATH"
    );
    if found.is_none() {
        skip("pytest is not on PATH; scripts/test installs it");
    }
    found
}

const PYTESTS: &str = "import pytest\n\nfrom app import double\n\n\ndef test_zero():\n    assert double(0) == 0\n\n\n@pytest.mark.parametrize('n', [2, 3])\ndef test_many(n):\n    assert double(n) == n + n\n";

const PYTEST: Project = Project {
    runner: "pytest",
    command: "pytest",
    extra: "",
    files: &[
        ("app.py", BUG),
        ("test_app.py", PYTESTS),
        ("conftest.py", ""),
    ],
    fix: ("app.py", FIXED),
};

#[test]
fn pytest_and_its_configuration() {
    let Some(_) = pytest_bin() else { return };
    let house = house();
    let bundle = PYTEST.honest(
        &house,
        "the fix",
        &[
            ("pytest.ini", "[pytest]\naddopts = -q\n"),
            ("test_new.py", "def test_new():\n    pass\n"),
        ],
    );
    let ids = bundle.json("test-ids.json");
    assert_eq!(
        ids["commands"][0]["baseline"]["test_app.py::test_many"]["failed"],
        2
    );
    for (what, file, text) in [
        (
            "ini deselect",
            "pytest.ini",
            "[pytest]\naddopts = --deselect test_app.py::test_many\n",
        ),
        (
            "ini keyword",
            "pytest.ini",
            "[pytest]\naddopts = -k 'zero or cto'\n",
        ),
        (
            "ini collect only",
            "pytest.ini",
            "[pytest]\naddopts = --co\n",
        ),
        (
            "setup.cfg",
            "setup.cfg",
            "[tool:pytest]\naddopts = -k 'not many'\n",
        ),
        (
            "tox.ini",
            "tox.ini",
            "[pytest]\naddopts = --deselect=test_app.py::test_many\n",
        ),
        (
            "pyproject",
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = \"-k 'not many'\"\n",
        ),
        (
            "python_functions",
            "pytest.ini",
            "[pytest]\npython_functions = test_zero\n",
        ),
        (
            "ignored",
            "conftest.py",
            "collect_ignore = ['test_app.py']\n",
        ),
        (
            "items taken out",
            "conftest.py",
            "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'many' not in i.name]\n",
        ),
        (
            "exit status",
            "conftest.py",
            "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
        ),
        (
            "exit status but for the control",
            "conftest.py",
            "import os\nimport glob\n\n\ndef pytest_sessionfinish(session):\n    if not glob.glob('test_cto_control_*'):\n        session.exitstatus = 0\n",
        ),
        (
            "outcome",
            "conftest.py",
            "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    if 'many' in item.name:\n        out.get_result().outcome = 'skipped'\n        out.get_result().longrepr = ('a', 1, 'b')\n",
        ),
        ("os._exit", "conftest.py", "import os\nos._exit(0)\n"),
        (
            "marked",
            "test_app.py",
            &PYTESTS.replace(
                "@pytest.mark.param",
                "@pytest.mark.skip\n@pytest.mark.param",
            ),
        ),
        (
            "expected to fail",
            "test_app.py",
            &PYTESTS.replace(
                "@pytest.mark.param",
                "@pytest.mark.xfail\n@pytest.mark.param",
            ),
        ),
        (
            "module skipped",
            "test_app.py",
            &PYTESTS.replace(
                "import pytest\n",
                "import pytest\npytest.skip('later', allow_module_level=True)\n",
            ),
        ),
        (
            "renamed",
            "test_app.py",
            &PYTESTS.replace("test_many", "many"),
        ),
        (
            "a parameter gone",
            "test_app.py",
            &PYTESTS.replace("[2, 3]", "[0]"),
        ),
    ] {
        PYTEST.attack(&house, what, &[(file, text)]);
    }
    let planted = [
        write("pytest", "#!/bin/sh\nexit 0\n"),
        shell("chmod +x pytest"),
    ];
    assert_eq!(
        PYTEST
            .attack_by(&house, "a planted pytest", &planted)
            .codes(),
        ["verification_failed"]
    );
}
