//! The failing tests of Python, as data: every assertion a test is likely to use, on every type it is
//! likely to use it on, in every form a test can have. If any one of them is silenced, it is seen.

use crate::task::contract::Runner;

/// The form of a test: what silences one form may leave the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Form {
    /// A function that stands in the file as people write it, so that its `assert` is rewritten.
    Written,
    /// A function that the file makes when it is loaded. A runner that shows a failure reads and
    /// parses the whole file of the test: with many failures that took longer than the suite.
    Function,
    Method,
    /// Of a `unittest.TestCase`.
    Case,
}

/// One failing test, as it is called after nonce and place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Test {
    pub form: Form,
    pub name: String,
}

/// How much of the kit a file gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    Whole,
    /// One of so many parts.
    Part {
        number: usize,
        of: usize,
    },
}

const CASES: [(&str, &str); 24] = [
    ("equal_int", "self.assertEqual(1, 2)"),
    ("equal_str", "self.assertEqual('a', 'b')"),
    ("equal_empty", "self.assertEqual('', 'b')"),
    ("equal_bytes", "self.assertEqual(b'a', b'b')"),
    ("equal_list", "self.assertEqual([1], [2])"),
    ("equal_tuple", "self.assertEqual((1,), (2,))"),
    ("equal_dict", "self.assertEqual({'a': 1}, {'a': 2})"),
    ("equal_set", "self.assertEqual({1}, {2})"),
    ("equal_none", "self.assertEqual(None, 1)"),
    ("equal_float", "self.assertEqual(1.0, 2.0)"),
    ("not_equal", "self.assertNotEqual('a', 'a')"),
    ("almost", "self.assertAlmostEqual(1.0, 2.0)"),
    ("true", "self.assertTrue(False)"),
    ("false", "self.assertFalse(True)"),
    ("contains", "self.assertIn(1, [])"),
    ("lacks", "self.assertNotIn('a', 'a')"),
    ("none", "self.assertIsNone(1)"),
    ("same", "self.assertIs(1, 'a')"),
    ("instance", "self.assertIsInstance(1, str)"),
    ("greater", "self.assertGreater(1, 2)"),
    ("regex", "self.assertRegex('a', 'b')"),
    ("raises", "self.assertRaises(ValueError, int, '1')"),
    ("explicit", "self.fail('must fail')"),
    ("raised", "raise AssertionError('must fail')"),
];

/// A plain test: name, arguments, the line before it, its body. `PYTEST` and `FIXTURE` stand for
/// names that no project has.
type Plain = (&'static str, &'static str, &'static str, &'static str);

const PLAIN: [Plain; 20] = [
    ("int", "", "", "assert 1 == 2"),
    ("str", "", "", "assert 'a' == 'b'"),
    ("bytes", "", "", "assert b'a' == b'b'"),
    ("list", "", "", "assert [1] == [2]"),
    ("dict", "", "", "assert {'a': 1} == {'a': 2}"),
    ("set", "", "", "assert {1} == {2}"),
    ("none", "", "", "assert None == 1"),
    ("float", "", "", "assert 1.0 == 2.0"),
    ("approx", "", "", "assert 1.0 == PYTEST.approx(2.0)"),
    (
        "approx_list",
        "",
        "",
        "assert [1.0] == PYTEST.approx([2.0])",
    ),
    ("contains", "", "", "assert 1 in []"),
    ("not", "", "", "assert not 'a'"),
    ("less", "", "", "assert 2 < 1"),
    ("raises", "", "", "with PYTEST.raises(ValueError): int('1')"),
    (
        "match",
        "",
        "",
        "with PYTEST.raises(ValueError, match='b'): raise ValueError('a')",
    ),
    ("warns", "", "", "with PYTEST.warns(UserWarning): pass"),
    ("explicit", "", "", "PYTEST.fail('must fail')"),
    ("raised", "", "", "raise ValueError('must fail')"),
    (
        "parameter",
        "cto",
        "@PYTEST.mark.parametrize('cto', [1, 2])",
        "assert cto == 3",
    ),
    ("fixture", "FIXTURE", "", "assert FIXTURE == 3"),
];

/// Plain tests that come in a class as well.
const METHODS: [&str; 6] = ["int", "str", "list", "raises", "parameter", "fixture"];

/// What every name begins with.
pub(super) fn prefix(nonce: &str) -> String {
    format!("test_cto_{nonce}_")
}

/// The text for one place, and the tests it holds.
pub(super) fn tests(
    runner: Runner,
    nonce: &str,
    place: usize,
    share: Share,
) -> (String, Vec<Test>) {
    let all = forms(runner);
    let is_dealt = |index: usize| match share {
        Share::Whole => true,
        Share::Part { number, of } => index % of == number % of,
    };
    let tests: Vec<Test> = all
        .into_iter()
        .enumerate()
        .filter(|(index, test)| test.form == Form::Written || is_dealt(*index))
        .map(|(_, test)| test)
        .collect();
    let writer = Writer {
        before: format!("{}{place}_", prefix(nonce)),
        mark: format!("{nonce}_{place}"),
    };
    let text = match runner {
        Runner::Pytest => writer.pytest(&tests),
        _ => writer.cases(&tests),
    };
    (text, tests)
}

/// Every test there is for a runner.
fn forms(runner: Runner) -> Vec<Test> {
    let test = |form, name: &str| Test {
        form,
        name: name.to_owned(),
    };
    let mut all = Vec::new();
    if runner == Runner::Pytest {
        all.push(test(Form::Written, "written"));
        all.extend(PLAIN.map(|(name, ..)| test(Form::Function, &format!("plain_{name}"))));
        all.extend(METHODS.map(|name| test(Form::Method, &format!("method_{name}"))));
    }
    all.extend(CASES.map(|(name, _)| test(Form::Case, &format!("case_{name}"))));
    all
}

struct Writer {
    before: String,
    mark: String,
}

impl Writer {
    /// What is not written out is made by names that a module cannot have hidden, and keeps its
    /// assertions however Python was started. It is of no file that could be looked for.
    fn pytest(&self, tests: &[Test]) -> String {
        let Self { before, mark } = self;
        let mut made = format!(
            "import pytest as _cto_pytest_{mark}\n\n\n@_cto_pytest_{mark}.fixture\ndef cto_fixture_{mark}():\n    return 1\n\n\n"
        );
        let of = |form| tests.iter().filter(move |test| test.form == form);
        for test in of(Form::Function) {
            made.push_str(&self.plain(test, "plain_", ""));
        }
        if of(Form::Method).next().is_some() {
            made.push_str(&format!(
                "class TestCto_{mark}(object):\n    __test__ = True\n\n"
            ));
        }
        for test in of(Form::Method) {
            made.push_str(&self.plain(test, "method_", "    "));
        }
        made.push_str(&self.cases(tests));
        let mut text = format!("import builtins as _cto_builtins_{mark}\n");
        for test in of(Form::Written) {
            let name = format!("{before}{}", test.name);
            text.push_str(&format!(
                "\n\ndef {name}():\n    cto = [1]\n    assert cto == [2]\n\n\n{name}.__test__ = True\n"
            ));
        }
        text.push_str(&format!(
            "_cto_builtins_{mark}.exec(_cto_builtins_{mark}.compile(r'''{made}''', 'cto_control_{mark}', 'exec', 0, True, 0))\n"
        ));
        text
    }

    /// `__test__` makes it a test whatever the configuration calls its own.
    fn plain(&self, test: &Test, form: &str, indent: &str) -> String {
        let kind = test.name.strip_prefix(form).unwrap_or(&test.name);
        let Some((_, argument, line, body)) = PLAIN.iter().find(|(name, ..)| *name == kind) else {
            return String::new();
        };
        let name = format!("{}{}", self.before, test.name);
        let own = if indent.is_empty() { "" } else { "self, " };
        let line = match *line {
            "" => String::new(),
            line => format!("{indent}{line}\n"),
        };
        let arguments = format!("{own}{argument}");
        let arguments = arguments.trim_end_matches([',', ' ']);
        format!(
            "{line}{indent}def {name}({arguments}):\n{indent}    {body}\n{indent}{name}.__test__ = True\n\n\n"
        )
        .replace("PYTEST", &format!("_cto_pytest_{}", self.mark))
        .replace("FIXTURE", &format!("cto_fixture_{}", self.mark))
    }

    fn cases(&self, tests: &[Test]) -> String {
        let Self { before, mark } = self;
        let mut text = String::new();
        for test in tests.iter().filter(|test| test.form == Form::Case) {
            let kind = test.name.strip_prefix("case_").unwrap_or(&test.name);
            let body = CASES.iter().find(|(name, _)| *name == kind);
            if text.is_empty() {
                text = format!(
                    "import unittest as _cto_{mark}\n\n\nclass CtoControl_{mark}(_cto_{mark}.TestCase):\n"
                );
            }
            if let Some((_, body)) = body {
                text.push_str(&format!(
                    "    def {before}{}(self):\n        {body}\n\n",
                    test.name
                ));
            }
        }
        text
    }
}
