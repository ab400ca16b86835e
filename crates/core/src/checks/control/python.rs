//! The failing tests of Python, as data: every assertion a test is likely to use, on every type it is
//! likely to use it on, in every form a test can have. If any one of them is silenced, it is seen.

use crate::checks::runners::kits::words::{Words, capital};
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

/// One failing test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Test {
    pub form: Form,
    /// Which of its form.
    pub kind: &'static str,
    /// As its function is called, in no other place.
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

/// Values are filled in by chance, as `Words::fill` does.
const CASES: [(&str, &str); 24] = [
    ("equal_int", "self.assertEqual(#1, #2)"),
    ("equal_str", "self.assertEqual('$1', '$2')"),
    ("equal_empty", "self.assertEqual('', '$1')"),
    ("equal_bytes", "self.assertEqual(b'$1', b'$2')"),
    ("equal_list", "self.assertEqual([#1], [#2])"),
    ("equal_tuple", "self.assertEqual((#1,), (#2,))"),
    ("equal_dict", "self.assertEqual({'$1': #1}, {'$1': #2})"),
    ("equal_set", "self.assertEqual({#1}, {#2})"),
    ("equal_none", "self.assertEqual(None, #1)"),
    ("equal_float", "self.assertEqual(#1.5, #2.5)"),
    ("not_equal", "self.assertNotEqual('$1', '$1')"),
    ("almost", "self.assertAlmostEqual(#1.5, #2.5)"),
    ("true", "self.assertTrue(False)"),
    ("false", "self.assertFalse(True)"),
    ("contains", "self.assertIn(#1, [])"),
    ("lacks", "self.assertNotIn('$1', '$1')"),
    ("none", "self.assertIsNone(#1)"),
    ("same", "self.assertIs(#1, '$1')"),
    ("instance", "self.assertIsInstance(#1, str)"),
    ("greater", "self.assertGreater(#1, #2)"),
    ("regex", "self.assertRegex('$1', '$2')"),
    ("raises", "self.assertRaises(ValueError, int, '#1')"),
    ("explicit", "self.fail('$1')"),
    ("raised", "raise AssertionError('$1')"),
];

/// A plain test: name, arguments, the line before it, its body. `PYTEST`, `FIXTURE` and `ARGUMENT` stand for
/// names that no project has.
type Plain = (&'static str, &'static str, &'static str, &'static str);

const PLAIN: [Plain; 20] = [
    ("int", "", "", "assert #1 == #2"),
    ("str", "", "", "assert '$1' == '$2'"),
    ("bytes", "", "", "assert b'$1' == b'$2'"),
    ("list", "", "", "assert [#1] == [#2]"),
    ("dict", "", "", "assert {'$1': #1} == {'$1': #2}"),
    ("set", "", "", "assert {#1} == {#2}"),
    ("none", "", "", "assert None == #1"),
    ("float", "", "", "assert #1.5 == #2.5"),
    ("approx", "", "", "assert #1.5 == PYTEST.approx(#2.5)"),
    (
        "approx_list",
        "",
        "",
        "assert [#1.5] == PYTEST.approx([#2.5])",
    ),
    ("contains", "", "", "assert #1 in []"),
    ("not", "", "", "assert not '$1'"),
    ("less", "", "", "assert #2 < #1"),
    (
        "raises",
        "",
        "",
        "with PYTEST.raises(ValueError): int('#1')",
    ),
    (
        "match",
        "",
        "",
        "with PYTEST.raises(ValueError, match='$2'): raise ValueError('$1')",
    ),
    ("warns", "", "", "with PYTEST.warns(UserWarning): pass"),
    ("explicit", "", "", "PYTEST.fail('$1')"),
    ("raised", "", "", "raise ValueError('$1')"),
    (
        "parameter",
        "ARGUMENT",
        "@PYTEST.mark.parametrize('ARGUMENT', [#1, #2])",
        "assert ARGUMENT == '$1'",
    ),
    ("fixture", "FIXTURE", "", "assert FIXTURE == #1"),
];

/// Plain tests that come in a class as well.
const METHODS: [&str; 6] = ["int", "str", "list", "raises", "parameter", "fixture"];

/// The text for one place, and the tests it holds, in an order by chance.
pub(super) fn tests(runner: Runner, share: Share, words: &mut Words) -> (String, Vec<Test>) {
    let is_dealt = |index: usize| match share {
        Share::Whole => true,
        Share::Part { number, of } => index % of == number % of,
    };
    let mut forms: Vec<(Form, &'static str)> = forms(runner)
        .into_iter()
        .enumerate()
        .filter(|(index, (form, _))| *form == Form::Written || is_dealt(*index))
        .map(|(_, form)| form)
        .collect();
    words.shuffle(&mut forms);
    let mut test = |(form, kind)| Test {
        form,
        kind,
        name: format!("test_{}_{}", words.word(), words.word()),
    };
    let tests: Vec<Test> = forms.into_iter().map(&mut test).collect();
    let text = match runner {
        Runner::Pytest => Writer::new(words).pytest(&tests),
        _ => Writer::new(words).cases(&tests),
    };
    (text, tests)
}

/// Every test there is for a runner.
fn forms(runner: Runner) -> Vec<(Form, &'static str)> {
    let mut all = Vec::new();
    if runner == Runner::Pytest {
        all.push((Form::Written, "written"));
        all.extend(PLAIN.map(|(kind, ..)| (Form::Function, kind)));
        all.extend(METHODS.map(|kind| (Form::Method, kind)));
    }
    all.extend(CASES.map(|(kind, _)| (Form::Case, kind)));
    all
}

struct Writer<'a> {
    words: &'a mut Words,
    pytest: String,
    fixture: String,
    argument: String,
}

impl<'a> Writer<'a> {
    fn new(words: &'a mut Words) -> Self {
        let [pytest, fixture, argument] = [words.word(), words.word(), words.word()];
        Self {
            words,
            pytest,
            fixture,
            argument,
        }
    }

    /// What is not written out is made by names that a module cannot have hidden, and keeps its
    /// assertions however Python was started. It is of no file that could be looked for.
    fn pytest(mut self, tests: &[Test]) -> String {
        let (pytest, fixture) = (self.pytest.clone(), self.fixture.clone());
        let value = self.words.fill("'$1'");
        let of = |form| tests.iter().filter(move |test| test.form == form);
        let mut parts: Vec<String> = of(Form::Function)
            .map(|test| self.plain(test, ""))
            .collect();
        let methods: String = of(Form::Method)
            .map(|test| self.plain(test, "    "))
            .collect();
        if !methods.is_empty() {
            let name = capital(&self.words.word());
            parts.push(format!(
                "class Test{name}(object):\n    __test__ = True\n\n{methods}"
            ));
        }
        parts.push(self.cases(tests));
        self.words.shuffle(&mut parts);
        let mut made = format!(
            "import pytest as {pytest}\n\n\n@{pytest}.fixture\ndef {fixture}():\n    return {value}\n\n\n{}",
            parts.concat()
        );
        let [builtins, file] = [self.words.word(), self.words.word()];
        let mut text = format!("import builtins as {builtins}\n");
        for Test { name, .. } in of(Form::Written) {
            let list = self.words.word();
            text.push_str(&self.words.fill(&format!(
                "\n\ndef {name}():\n    {list} = [#1]\n    assert {list} == [#2]\n\n\n"
            )));
            made.push_str(&format!("{name}.__test__ = True\n"));
        }
        text.push_str(&format!(
            "{builtins}.exec({builtins}.compile(r'''{made}''', '{file}', 'exec', 0, True, 0))\n"
        ));
        text
    }

    /// `__test__` makes it a test whatever the configuration calls its own.
    fn plain(&mut self, test: &Test, indent: &str) -> String {
        let Some((_, argument, line, body)) = PLAIN.iter().find(|(kind, ..)| *kind == test.kind)
        else {
            return String::new();
        };
        let name = &test.name;
        let own = if indent.is_empty() { "" } else { "self, " };
        let line = match *line {
            "" => String::new(),
            line => format!("{indent}{line}\n"),
        };
        let arguments = format!("{own}{argument}");
        let arguments = arguments.trim_end_matches([',', ' ']);
        let text = format!(
            "{line}{indent}def {name}({arguments}):\n{indent}    {body}\n{indent}{name}.__test__ = True\n\n\n"
        );
        self.words
            .fill(&text)
            .replace("PYTEST", &self.pytest)
            .replace("FIXTURE", &self.fixture)
            .replace("ARGUMENT", &self.argument)
    }

    fn cases(&mut self, tests: &[Test]) -> String {
        let mut text = String::new();
        for test in tests.iter().filter(|test| test.form == Form::Case) {
            if text.is_empty() {
                let (module, name) = (self.words.word(), capital(&self.words.word()));
                text =
                    format!("import unittest as {module}\n\n\nclass {name}({module}.TestCase):\n");
            }
            if let Some((_, body)) = CASES.iter().find(|(kind, _)| *kind == test.kind) {
                let body = self.words.fill(body);
                text.push_str(&format!("    def {}(self):\n        {body}\n\n", test.name));
            }
        }
        text
    }
}
