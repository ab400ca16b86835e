//! Between a record and its row: columns in order, a digest of each row, and a filter as SQL.

use cto_core::operator::listing::{
    Again, Filter, Listed, ListedState, Summary, parse_word, spelling_of,
};
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_core::verify::seal::SealedBy;
use rusqlite::Row;
use rusqlite::types::Value;

use super::bundles::Record;
use super::store::{IndexError, damaged};

/// The same question as [`Filter::matches`], for the database. What a column does not hold excludes
/// its row.
pub(super) fn clause(root: i64, filter: &Filter) -> (String, Vec<Value>) {
    let Filter {
        status,
        engine,
        case,
        blocker,
        stage,
        origin,
        since,
        until,
    } = filter;
    let mut clause = "root = ?".to_owned();
    let mut values = vec![Value::Integer(root)];
    let mut and = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            clause.push_str(" AND ");
            clause.push_str(condition);
            values.push(value);
        }
    };
    and(
        "status = ?",
        status.map(|status| Value::Text(status.as_str().to_owned())),
    );
    and(
        "case_id = ?",
        case.as_ref().map(|case| Value::Text(case.to_string())),
    );
    and(
        "engine = ?",
        engine
            .as_ref()
            .map(|engine| Value::Text(engine.to_string())),
    );
    and(
        "stage = ?",
        stage.map(|stage| Value::Integer(stage.number().into())),
    );
    and(
        "origin = ?",
        origin.map(|origin| Value::Text(spelling_of(&origin))),
    );
    and(
        "started >= ?",
        since.map(|since| Value::Integer(since.as_millis())),
    );
    and(
        "started <= ?",
        until.map(|until| Value::Integer(until.as_millis())),
    );
    and(
        "instr(blockers, ?) > 0",
        blocker.map(|code| Value::Text(format!(",{},", code.as_str()))),
    );
    (clause, values)
}

/// The first bytes of a digest over everything the row says.
fn sum(record: &Record) -> Result<i64, IndexError> {
    let bytes = serde_json::to_vec(record).map_err(damaged)?;
    let digest = Digest::of(&bytes).to_hex();
    Ok(u64::from_str_radix(&digest[..16], 16).map_err(damaged)? as i64)
}

/// In the order of [`COLUMNS`].
pub(super) fn encode(record: &Record) -> Result<[Value; 18], IndexError> {
    let listed = &record.listed;
    let text = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    let sealed = listed.summary();
    let (state, reason) = match &listed.state {
        ListedState::Sealed(summary) => (0, summary.failure_reason.clone()),
        ListedState::Broken(why) => (1, Some(why.clone())),
        ListedState::Live => (2, None),
        ListedState::Unsealed => (3, None),
        ListedState::Unreadable(why) => (4, Some(why.clone())),
        ListedState::Foreign => (5, None),
    };
    Ok([
        Value::Text(listed.run_id.sort_key()),
        Value::Integer(record.inode as i64),
        Value::Integer(record.is_own_directory.into()),
        Value::Integer(state),
        text(sealed.map(|run| run.status.as_str().to_owned())),
        Value::Text(listed.case().to_owned()),
        text(sealed.map(|run| run.engine.to_string())),
        number(sealed.map(|run| run.stage.number().into())),
        text(sealed.map(|run| spelling_of(&run.origin))),
        number(listed.started().map(|started| started.as_millis())),
        text(sealed.map(|run| {
            run.blockers.iter().fold(",".to_owned(), |all, code| {
                format!("{all}{},", code.as_str())
            })
        })),
        text(sealed.map(|run| spelling_of(&run.kind))),
        number(sealed.map(|run| run.finished_at.as_millis())),
        text(reason),
        text(record.stamp.clone()),
        text(sealed.and_then(|run| run.sealed_by).map(seal_text)),
        text(sealed.and_then(|run| run.again.as_ref()).map(again_text)),
        Value::Integer(sum(record)?),
    ])
}

/// In the order of [`COLUMNS`].
pub(super) fn decode(row: &Row<'_>) -> Result<Record, IndexError> {
    let text = |at: usize| row.get::<_, Option<String>>(at);
    let state = match row.get::<_, i64>(3)? {
        0 => ListedState::Sealed(Box::new(decode_summary(row)?)),
        1 => ListedState::Broken(text(13)?.unwrap_or_default()),
        2 => ListedState::Live,
        3 => ListedState::Unsealed,
        4 => ListedState::Unreadable(text(13)?.unwrap_or_default()),
        5 => ListedState::Foreign,
        other => return Err(damaged(format!("no state is called {other}"))),
    };
    let record = Record {
        listed: Listed {
            run_id: RunId::from_sort_key(&row.get::<_, String>(0)?).map_err(damaged)?,
            state,
        },
        inode: row.get::<_, i64>(1)? as u64,
        is_own_directory: row.get(2)?,
        stamp: text(14)?,
    };
    match row.get::<_, i64>(17)? == sum(&record)? {
        true => Ok(record),
        false => Err(damaged("a row is not what was written")),
    }
}

fn seal_text(seal: SealedBy) -> String {
    format!("{} {}", seal.key_id, seal.signed_at.as_millis())
}

fn seal_of(text: &str) -> Option<SealedBy> {
    let (key, time) = text.split_once(' ')?;
    Some(SealedBy {
        key_id: key.parse().ok()?,
        signed_at: Utc::from_millis(time.parse().ok()?).ok()?,
    })
}

fn again_text(again: &Again) -> String {
    format!("{} {}", again.run_id, again.differs)
}

fn again_of(text: &str) -> Option<Again> {
    let (run, differs) = text.split_once(' ')?;
    Some(Again {
        run_id: run.parse().ok()?,
        differs: differs.to_owned(),
    })
}

fn decode_summary(row: &Row<'_>) -> Result<Summary, IndexError> {
    let text = |at: usize| row.get::<_, String>(at);
    let time =
        |at: usize| -> Result<Utc, IndexError> { Utc::from_millis(row.get(at)?).map_err(damaged) };
    let codes = text(10)?;
    let codes = codes.split(',').filter(|code| !code.is_empty());
    Ok(Summary {
        status: parse_word(&text(4)?).map_err(damaged)?,
        case_id: text(5)?.parse().map_err(damaged)?,
        engine: text(6)?.parse().map_err(damaged)?,
        stage: row.get::<_, u8>(7)?.try_into().map_err(damaged)?,
        origin: parse_word(&text(8)?).map_err(damaged)?,
        started_at: time(9)?,
        blockers: codes
            .map(parse_word)
            .collect::<Result<_, _>>()
            .map_err(damaged)?,
        kind: parse_word(&text(11)?).map_err(damaged)?,
        finished_at: time(12)?,
        failure_reason: row.get(13)?,
        sealed_by: row
            .get::<_, Option<String>>(15)?
            .map(|text| seal_of(&text).ok_or_else(|| damaged("a seal is not one")))
            .transpose()?,
        again: row
            .get::<_, Option<String>>(16)?
            .map(|text| again_of(&text).ok_or_else(|| damaged("what is judged again is no run")))
            .transpose()?,
    })
}
