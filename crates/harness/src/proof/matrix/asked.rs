//! A row as a request to the run spine.

use std::collections::BTreeMap;
use std::path::Path;

use cto_core::containment::Containment;
use cto_core::engine::manifest::Manifest;
use cto_core::proof::matrix::{Fixture, Lanes, Row, Words};
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::task::source::{SourceClass, SourceRecord};
use cto_core::values::paths::TreePath;

use crate::host::failure::Failure;
use crate::task::cases::{Case, FixtureFile, TaskText};
use crate::task::lane::LaneOptions;
use crate::task::request::{Request, SourceRequest};

/// Who owns a row's source, and who answers in the place of an operator.
pub const VALIDATOR: &str = "cto-matrix";

pub(super) fn files_of(fixture: &Fixture, row: &Row) -> Vec<FixtureFile> {
    let file = |(path, text): (&String, &String)| FixtureFile {
        path: TreePath::new(path.as_str()),
        executable: false,
        bytes: text.clone().into_bytes(),
    };
    fixture.files.iter().chain(&row.files).map(file).collect()
}

/// How a row is played: by the scripted engine, its words put in, or by a program with a model.
#[expect(
    clippy::large_enum_variant,
    reason = "made once for a row and taken apart at once"
)]
pub enum Playing {
    Script(Words),
    Lane(LaneOptions),
}

pub(super) fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::internal("bad_matrix", "a row of the matrix is broken").because(error)
}

/// What a row asks of the run spine. Only the row itself says that it is a validator's.
pub fn request(
    row: &Row,
    fixture: &Fixture,
    manifest: Manifest,
    source: Option<&Path>,
    playing: Playing,
) -> Result<Request, Failure> {
    let on_lane = matches!(playing, Playing::Lane(_));
    let record = || SourceRecord {
        path: None,
        owner: VALIDATOR.into(),
        ownership_evidence: "made for this row".into(),
        class: SourceClass::OwnedLocal,
    };
    let source = source.map(|path| SourceRequest {
        path: path.to_owned(),
        record: record(),
        from_head: false,
    });
    let case = Case {
        id: row.name.parse().map_err(|error| broken(&error))?,
        built_in: false,
        inputs: None,
        label: format!("matrix/{}/case.toml", row.name),
        task: TaskText::File(
            row.case_text(fixture, on_lane)
                .map_err(|error| broken(&error))?
                .into_bytes(),
        ),
        workspace: if source.is_some() {
            Vec::new()
        } else {
            files_of(fixture, row)
        },
        hidden: Vec::new(),
        scripts: BTreeMap::new(),
        beside: fixture
            .beside
            .iter()
            .map(|(name, text)| (name.clone(), text.clone().into_bytes()))
            .collect(),
    };
    let default_stage = match on_lane {
        true => Stage::Two,
        false => manifest.default_stage,
    };
    let request = Request::case(case, manifest)
        .green_start(row.green_start)
        .at_stage(row.stage.unwrap_or(default_stage))
        .contained(row.contain.unwrap_or(Containment::Strict))
        .asked_by(Origin::Validator)
        .copying(source);
    Ok(match playing {
        Playing::Script(words) => {
            let script = row.script_text(&words).map_err(|error| broken(&error))?;
            request
                .opened(matches!(row.lanes, Lanes::Any | Lanes::Opened))
                // Never the exception for scripts of built-in cases: a row without a jail proves nothing.
                .playing(Some(script.into_bytes()), false)
        }
        // What must come of it stands in the row: there is nothing to compare it with.
        Playing::Lane(options) => request.opened(true).in_lane(options).uncompared(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{attack_matrix, built_in};
    use super::*;
    use crate::task::engines;

    #[test]
    fn every_row_has_a_script_the_fake_engine_can_play() {
        let (matrix, kit) = (built_in().unwrap(), attack_matrix().unwrap());
        for row in matrix.rows.iter().chain(&kit.rows) {
            let request = request(
                row,
                &matrix.fixture,
                engines::find("fake").unwrap(),
                None,
                Playing::Script(Words::new()),
            )
            .unwrap();
            let played = crate::task::script::parse(request.script.as_deref().unwrap());
            assert!(played.is_ok(), "{}: {played:?}", row.name);
            assert_eq!(request.origin, Origin::Validator);
            assert!(!request.own_script, "{}", row.name);
        }
    }
}
