//! How far a run came that somebody stopped: which step was under way, and what of it is evidence. Said from
//! the chain, so that it is true of what is sealed.

use crate::run::event::ProcessEnd;
use crate::run::facts::Facts;
use crate::values::event_type::EventType;

/// `cut`: the steps that did not come to their end, as whoever did them names them.
pub fn how_far(facts: &Facts, cut: &[String]) -> String {
    let during = match cut {
        [] => String::new(),
        [one] => format!(" during {one}"),
        [first @ .., last] => format!(" during {} and {last}", first.join(", ")),
    };
    format!("cancelled{during}; {}", sealed(facts))
}

/// What the bundle holds of it.
fn sealed(facts: &Facts) -> String {
    if !facts.engine_events.contains(&EventType::EngineStarted) {
        return "no engine was started, and nothing was spent".to_owned();
    }
    let Some(ended) = &facts.engine_ended else {
        return "the engine was started; how it ended is not known".to_owned();
    };
    let engine = match ended.end {
        ProcessEnd::Cancelled => "the engine was stopped",
        _ => "the engine had ended",
    };
    let Some(diff) = &facts.diff else {
        return format!("{engine}, and what it changed was not measured");
    };
    let changed = match diff.changes.len() {
        0 => "it had changed nothing".to_owned(),
        1 => "its change of 1 file is sealed (`cto diff`)".to_owned(),
        files => format!("its change of {files} files is sealed (`cto diff`)"),
    };
    match &facts.verification {
        None => format!("{engine}, {changed}, and no check of it counts"),
        Some(_) => format!("{engine}, {changed}, and so are its checks"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::good;
    use super::*;

    #[test]
    fn it_says_what_is_there_and_no_more() {
        let whole = good();
        let mut facts = Facts::default();
        assert_eq!(
            how_far(&facts, &["setup (make, after 2 s)".to_owned()]),
            "cancelled during setup (make, after 2 s); no engine was started, and nothing was spent"
        );
        facts.engine_events = whole.engine_events.clone();
        assert!(how_far(&facts, &[]).ends_with("how it ended is not known"));
        facts.engine_ended = whole.engine_ended.clone();
        assert!(how_far(&facts, &[]).ends_with("was not measured"));
        facts.diff = whole.diff.clone();
        let unchecked = how_far(&facts, &["check (a)".to_owned(), "control (b)".to_owned()]);
        assert!(
            unchecked
                .starts_with("cancelled during check (a) and control (b); the engine had ended")
        );
        assert!(
            unchecked.ends_with("and no check of it counts"),
            "{unchecked}"
        );
        facts.verification = whole.verification.clone();
        assert!(how_far(&facts, &[]).ends_with("and so are its checks"));
        if let Some(ended) = &mut facts.engine_ended {
            ended.end = ProcessEnd::Cancelled;
        }
        assert!(how_far(&facts, &[]).contains("the engine was stopped"));
    }
}
