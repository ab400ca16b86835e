//! Did the added tests fail? Read from what a runner says of single tests where it says that, else from
//! its counts. What is read can turn a pass into a failure, never the reverse.

use std::collections::{BTreeMap, BTreeSet};

use super::cargo::{IN_CRATE, is_at};
use super::python::{Form, Test};
use super::{Edit, Kit, Place};
use crate::checks::runner_output::Heard;
use crate::checks::test_ids::Tally;
use crate::task::contract::Runner;

/// How many failures an honest runner reports, and how many were reported, if any was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    pub expected: u64,
    pub reported: Option<u64>,
    /// Nothing of its runner came at all.
    pub silent: bool,
}

/// Does some command use its runner and another one?
pub type SharesACommand = bool;

/// What became of one added test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    tally: Tally,
    /// Of the failed ones, those that never came to the test itself.
    errored: u64,
}

impl Seen {
    fn is_red(self) -> bool {
        self.tally.failed > 0 && self.tally.passed == 0
    }

    /// It failed in itself, and not in what stands before every test of a project.
    fn is_proof(self) -> bool {
        self.is_red() && self.tally.failed > self.errored
    }
}

type Named = BTreeMap<(usize, String), Seen>;

impl Count {
    /// Several kits in one run: none may be silent, but for one whose runner shares a command with
    /// another: `node --test && jest` never comes to jest where node's tests are red.
    pub fn sum(counts: impl IntoIterator<Item = (Self, SharesACommand)>) -> Option<Self> {
        let (all, due): (Vec<Self>, Vec<Self>) = {
            let all: Vec<(Self, SharesACommand)> = counts.into_iter().collect();
            let due = all
                .iter()
                .filter(|(count, shares)| !(count.silent && *shares));
            let due = due.map(|(count, _)| *count).collect();
            (all.into_iter().map(|(count, _)| count).collect(), due)
        };
        let counted = if due.is_empty() { all } else { due };
        counted.into_iter().reduce(|one, other| Self {
            expected: one.expected + other.expected,
            reported: one.reported.zip(other.reported).map(|(a, b)| a + b),
            silent: one.silent && other.silent,
        })
    }
}

impl Kit {
    /// What the runner made of this kit. `heard` is what it said beside its output, for each
    /// command.
    pub fn count(&self, heard: &[Heard], output: &str) -> Count {
        match &self.reported {
            Some(kit) => kit.count(heard),
            None if self.runner.is_python() => self.python(heard, output),
            None => Count {
                expected: self.each * self.cargo_targets(output).max(1),
                reported: cargo_count(output),
                silent: false,
            },
        }
    }

    fn python(&self, heard: &[Heard], output: &str) -> Count {
        let named = self.heard(heard);
        if !named.is_empty() {
            let (expected, red) = self.weigh(&named, &self.passed_over(heard, &named));
            return Count {
                expected,
                reported: Some(red),
                silent: false,
            };
        }
        // A runner that cannot be heard still names its failures, and counts them.
        let (expected, red) = self.weigh(&self.printed(output), &BTreeSet::new());
        Count {
            expected,
            reported: python_count(self.runner, output).map(|count| count.min(red)),
            silent: false,
        }
    }

    /// How many tests were due, and how many of them were red.
    ///
    /// A place where nothing of ours came was not run: a selection, a directory that is not
    /// searched. But one that found the file at the top has searched that directory, and so must
    /// have found every test file beside it; and a file whose other tests ran was not left out. Where
    /// something came, all of it must be red. A fixture of the project may keep a test from running
    /// at all: that is red as well, if somewhere all functions, or all methods, failed in
    /// themselves.
    fn weigh(&self, named: &Named, passed_over: &BTreeSet<usize>) -> (u64, u64) {
        let seen = |place: usize, test: &Test| {
            let name = (place, test.name.clone());
            named.get(&name).copied().unwrap_or_default()
        };
        let came = |place: &usize| self.came(named, *place);
        let own_ran = (0..self.places.len()).any(|at| self.places[at].is_own && came(&at));
        // Switched off in pytest altogether: then no test of the project is of that form.
        let has_cases = self.runner == Runner::Unittest
            || self.any(Form::Case, |at, test| seen(at, test) != Seen::default());
        let proven = self.runner == Runner::Unittest
            || (0..self.places.len()).any(|at| {
                [Form::Function, Form::Method].iter().any(|form| {
                    let mut tests = self.places[at].tests.iter().filter(|t| t.form == *form);
                    let first = tests.next();
                    first
                        .into_iter()
                        .chain(tests)
                        .all(|test| seen(at, test).is_proof())
                        && first.is_some()
                })
            });
        let (mut expected, mut red) = (0, 0);
        for (at, place) in self.places.iter().enumerate() {
            let is_due = came(&at) || (own_ran && place.is_beside) || passed_over.contains(&at);
            if !is_due {
                continue;
            }
            for test in due(place, has_cases) {
                expected += 1;
                let seen = seen(at, test);
                red += u64::from(if proven {
                    seen.is_red()
                } else {
                    seen.is_proof()
                });
            }
        }
        if expected == 0 {
            let most = self.places.iter().map(|place| place.tests.len()).max();
            return (most.unwrap_or(1) as u64, 0);
        }
        (expected, red)
    }

    /// Test files of pytest in which the project's own tests ran and none of ours did, although some
    /// of ours ran elsewhere. Where a command chooses single tests, that is what it asked for.
    fn passed_over(&self, heard: &[Heard], named: &Named) -> BTreeSet<usize> {
        let mut over = BTreeSet::new();
        if self.runner != Runner::Pytest {
            return over;
        }
        for command in heard {
            let ran = command
                .ids
                .iter()
                .filter(|(_, tally)| tally.passed + tally.failed > 0);
            let (mut roots, mut files) = (BTreeSet::new(), BTreeSet::new());
            for (id, _) in ran {
                let Some((file, test)) = id.split_once("::") else {
                    continue;
                };
                match self.own_name(id) {
                    // Ids are written from wherever pytest has its root.
                    Some((at, _)) => {
                        let path = self.places.get(at).map(|place| &place.path);
                        roots.extend(path.and_then(|path| path.strip_suffix(file)));
                    }
                    // A doc test has a dotted name, and may run where no other is looked for.
                    None if !test.contains('.') => drop(files.insert(file)),
                    None => {}
                }
            }
            for file in files {
                let may_be = |(at, place): (usize, &Place)| {
                    let root = place.path.strip_suffix(file)?;
                    roots.contains(root).then_some(at)
                };
                let places: Vec<usize> = (self.places.iter().enumerate())
                    .filter_map(may_be)
                    .collect();
                if !places.iter().any(|at| self.came(named, *at)) {
                    over.extend(
                        places
                            .iter()
                            .filter(|at| !self.places[**at].may_be_left_out),
                    );
                }
            }
        }
        over
    }

    fn any(&self, form: Form, is: impl Fn(usize, &Test) -> bool) -> bool {
        let places = self.places.iter().enumerate();
        let mut tests = places.flat_map(|(at, place)| place.tests.iter().map(move |t| (at, t)));
        tests.any(|(at, test)| test.form == form && is(at, test))
    }

    /// Did anything of a place come, and not only to be skipped with the rest of its file?
    fn came(&self, named: &Named, place: usize) -> bool {
        let of_it = named.range((place, String::new())..(place + 1, String::new()));
        let mut ran = of_it.filter(|(_, seen)| seen.tally.passed + seen.tally.failed > 0);
        ran.next().is_some()
    }

    /// Our tests among those a runner named beside its output.
    fn heard(&self, heard: &[Heard]) -> Named {
        let mut named = Named::new();
        for command in heard {
            for (id, tally) in &command.ids {
                if let Some(name) = self.own_name(id) {
                    let seen = named.entry(name).or_default();
                    seen.tally.merge(*tally);
                    seen.errored += command.errored.get(id).copied().unwrap_or(0);
                }
            }
        }
        named
    }

    /// Our tests among the failures a runner printed.
    fn printed(&self, output: &str) -> Named {
        let words: [(&str, u64); 2] = match self.runner {
            Runner::Pytest => [("FAILED ", 0), ("ERROR ", 1)],
            _ => [("FAIL: ", 0), ("ERROR: ", 0)],
        };
        let mut named = Named::new();
        for line in output.lines() {
            for (word, errored) in words {
                let id = line
                    .strip_prefix(word)
                    .and_then(|id| id.split(" - ").next());
                if let Some(name) = id.and_then(|id| self.own_name(id)) {
                    let seen = named.entry(name).or_default();
                    seen.tally.failed += 1;
                    seen.errored += errored;
                }
            }
        }
        named
    }

    /// The place and the test that an id is about, if it is one of ours. A runner puts files and classes
    /// around a name, and parameters behind it.
    fn own_name(&self, id: &str) -> Option<(usize, String)> {
        let mut words = id.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.find_map(|word| Some((*self.names.get(word)?, word.to_owned())))
    }

    /// Test programs cargo announced that hold failing tests of ours.
    fn cargo_targets(&self, output: &str) -> u64 {
        let there = |name: &str| {
            self.edits.iter().any(
                |edit| matches!(edit, Edit::Append { path, .. } if is_at(&path.to_string(), name)),
            )
        };
        let is_own = |program: &str| {
            self.edits
                .iter()
                .any(|edit| matches!(edit, Edit::Create { path, .. } if is_at(path, program)))
        };
        let holds_ours = |line: &&str| {
            let Some(target) = line.trim_start().strip_prefix("Running ") else {
                return false;
            };
            let in_crate = IN_CRATE
                .iter()
                .any(|name| target.starts_with(&format!("unittests {name} ")) && there(name));
            let program = target.split_once(' ').map_or(target, |(file, _)| file);
            let named = program.starts_with("tests/") && there(program);
            in_crate || named || is_own(program)
        };
        output.lines().filter(holds_ours).count() as u64
    }
}

fn due(place: &Place, has_cases: bool) -> impl Iterator<Item = &Test> {
    let is_due = move |test: &&Test| has_cases || test.form != Form::Case;
    place.tests.iter().filter(is_due)
}

/// The failures a Python runner counted in its last summary.
fn python_count(runner: Runner, output: &str) -> Option<u64> {
    output.lines().rev().find_map(|line| match runner {
        Runner::Unittest => {
            let inner = line.trim().strip_prefix("FAILED (")?.strip_suffix(')')?;
            let count = |key: &str| {
                inner
                    .split(", ")
                    .find_map(|part| part.strip_prefix(key)?.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            Some(count("failures=") + count("errors="))
        }
        _ => {
            let line = line.trim_matches(['=', ' ']);
            let errors = number_before(line, " error");
            let failed = number_before(line, " failed");
            // A message may end like this; a summary says how long it took.
            let is_summary = line.contains(" in ") && (failed.is_some() || errors.is_some());
            is_summary.then(|| failed.unwrap_or(0) + errors.unwrap_or(0))
        }
    })
}

fn cargo_count(output: &str) -> Option<u64> {
    let is_summary = |line: &&str| {
        ["test result:", "Summary ["]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    let counts: Vec<u64> = output
        .lines()
        .filter(is_summary)
        .filter_map(|line| number_before(line, " failed"))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = &line[..line.find(word)?];
    head.rsplit(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}
