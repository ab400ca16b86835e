//! The attack suite as data: what a hostile engine tries, and what the harness must show
//! afterwards.
//!
//! - this file: reads the suite; each attack becomes a row of the matrix and is run like any other
//! - `*.toml` the attacks by target: tree, host, kernel, evidence, protected paths, floods, further
//!   ones, and honest work as control (`benign.toml`)

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Lanes, Matrix, MatrixError, Row, Show, SourceSetup, Tried, built_in};
use crate::containment::Containment;
use crate::task::contract::Stage;
use crate::values::blocker::Code;
use crate::values::verdict::Status;

const PARTS: [&str; 8] = [
    include_str!("host.toml"),
    include_str!("protected.toml"),
    include_str!("kernel.toml"),
    include_str!("tree.toml"),
    include_str!("evidence.toml"),
    include_str!("floods.toml"),
    include_str!("further.toml"),
    include_str!("benign.toml"),
];

/// The theme of what must stay green.
pub const BENIGN: &str = "benign";

/// A kind of attack, or honest work.
#[derive(Clone, Debug)]
pub struct Theme {
    pub name: String,
    pub title: String,
    pub rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    theme: Vec<Told>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    name: String,
    title: String,
    row: Vec<Attempt>,
}

/// One row as it is written: what is tried, and the finding it ends in. Without a finding it ends
/// in a pass, because the engine solves its task afterwards and nothing it tried left a trace.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attempt {
    name: String,
    trigger: String,
    #[serde(default)]
    case: toml::Table,
    #[serde(default)]
    env: BTreeMap<String, String>,
    stage: Option<Stage>,
    contain: Option<Containment>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    source: Option<SourceSetup>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    tries: Vec<Try>,
    #[serde(default)]
    steps: Vec<toml::Table>,
    /// The engine does what it was asked for, after all else.
    #[serde(default = "yes")]
    solves: bool,
    finds: Option<Code>,
    #[serde(default)]
    also: Vec<Code>,
    changed: Option<Vec<String>>,
    /// Lines of the engine's output: the proof that it tried.
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    shows: Vec<Show>,
    #[serde(default)]
    prevented: Vec<String>,
    #[serde(default)]
    reads_back: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Try {
    attack: String,
    #[serde(default)]
    on: Vec<String>,
}

fn yes() -> bool {
    true
}

/// The kit in its themes.
pub fn attack_themes() -> Result<Vec<Theme>, MatrixError> {
    let mut themes = Vec::new();
    for part in PARTS {
        let part: Part =
            toml::from_str(part).map_err(|error| MatrixError::Parse(Box::new(error)))?;
        for told in part.theme {
            let rows = told
                .row
                .into_iter()
                .map(|attempt| attempt.row(&told.name))
                .collect();
            themes.push(Theme {
                name: told.name,
                title: told.title,
                rows,
            });
        }
    }
    Ok(themes)
}

/// The kit as a matrix, on the case every row of the matrix starts from.
pub fn attack_matrix() -> Result<Matrix, MatrixError> {
    let rows = attack_themes()?
        .into_iter()
        .flat_map(|theme| theme.rows)
        .collect();
    Ok(Matrix {
        fixture: built_in()?.fixture,
        rows,
    })
}

impl Attempt {
    fn row(self, theme: &str) -> Row {
        let mut shows: Vec<Show> = self
            .tries
            .iter()
            .map(|tried| Show::Stopped(tried.times()))
            .collect();
        shows.extend(self.says.into_iter().map(Show::Line));
        let alone = self.solves && self.finds.is_none() && !self.case.contains_key("allowed_paths");
        let solved = alone.then(|| vec!["answer.txt".to_owned()]);
        shows.extend(self.changed.or(solved).map(Show::Changed));
        shows.extend(self.shows);
        let mut steps: Vec<toml::Table> = self.tries.into_iter().map(Try::step).collect();
        steps.extend(self.steps);
        if self.solves {
            steps.push(step([
                ("do", "write"),
                ("path", "answer.txt"),
                ("text", "right\n"),
            ]));
        }
        let info = self.finds.map(Code::info);
        let status = info.map_or(Status::Pass, |info| info.status);
        Row {
            name: self.name,
            fixture: None,
            trigger: self.trigger,
            lanes: Lanes::Runnable,
            stage: self.stage,
            case: self.case,
            steps,
            silent: false,
            lane_case: toml::Table::new(),
            lane_steps: None,
            model: None,
            unasked: false,
            not_on_lanes: None,
            env: self.env,
            contain: self.contain,
            files: self.files,
            source: self.source,
            fault: None,
            touches: Vec::new(),
            approval: None,
            target: None,
            word: None,
            green_start: false,
            blocker: self.finds,
            also: self.also,
            event: info.map(|info| info.event),
            status,
            exit: status.exit_code(),
            runs: true,
            shows,
            theme: Some(theme.to_owned()),
            needs: self.needs,
            prevented: self.prevented,
            reads_back: self.reads_back,
        }
    }
}

impl Try {
    fn times(&self) -> Tried {
        Tried {
            attack: self.attack.clone(),
            times: self.on.len().max(1) as u64,
        }
    }

    fn step(self) -> toml::Table {
        let mut step = step([("do", "attack"), ("name", &self.attack)]);
        step.insert("on".into(), self.on.into());
        step
    }
}

fn step<const N: usize>(fields: [(&str, &str); N]) -> toml::Table {
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::matrix::Words;
    use std::collections::BTreeSet;

    #[test]
    fn the_kit_is_large_enough_and_every_row_has_a_name_of_its_own() {
        let (kit, matrix) = (attack_matrix().unwrap(), built_in().unwrap());
        let benign = kit
            .rows
            .iter()
            .filter(|row| row.theme.as_deref() == Some(BENIGN))
            .count();
        assert!(benign >= 15, "{benign} benign rows");
        assert!(
            kit.rows.len() - benign >= 50,
            "{} attacks",
            kit.rows.len() - benign
        );
        let names: BTreeSet<&str> = kit
            .rows
            .iter()
            .chain(&matrix.rows)
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(names.len(), kit.rows.len() + matrix.rows.len());
        for row in &kit.rows {
            assert!(
                row.name.parse::<crate::values::ids::CaseId>().is_ok() && row.name.len() <= 22,
                "{}",
                row.name
            );
            assert!(
                !row.trigger.is_empty() && row.trigger.is_ascii(),
                "{}",
                row.name
            );
        }
    }

    /// A row must prove that something was tried: by an attack that tells, a line of its own, or
    /// what it left.
    #[test]
    fn every_row_proves_that_it_was_tried() {
        let proof = |show: &Show| match show {
            Show::Stopped(_) | Show::Line(_) | Show::Detail(_) | Show::Text(_) | Show::Event(_) => {
                true
            }
            Show::Changed(paths) => paths.len() > 1,
            _ => false,
        };
        for row in attack_matrix().unwrap().rows {
            assert!(row.shows.iter().any(proof), "{}", row.name);
        }
    }

    #[test]
    fn benign_rows_find_nothing_and_every_case_is_valid() {
        let kit = attack_matrix().unwrap();
        for row in &kit.rows {
            assert!(
                row.theme.as_deref() != Some(BENIGN) || row.blocker.is_none(),
                "{}",
                row.name
            );
            let text = row.case_text(&kit.fixture, false).unwrap();
            let parsed = crate::task::case_file::parse_case("case.toml", text.as_bytes());
            assert!(parsed.is_ok(), "{}: {parsed:?}", row.name);
        }
    }

    #[test]
    fn words_are_put_in_everywhere_they_stand() {
        let words = Words::from([("place".to_owned(), "/here".to_owned())]);
        let row = Row {
            steps: vec![step([
                ("do", "say"),
                ("text", "{place}/a {place}/b {other}"),
            ])],
            ..attack_matrix().unwrap().rows.remove(0)
        };
        assert!(
            row.script_text(&words)
                .unwrap()
                .contains("/here/a /here/b {other}")
        );
    }
}
