//! A log of the same task that was there before: what it says is done is believed, as a real Case does. Whoever gives a task
//! an id that was used before walks into this.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Phases that the logs in a directory say were completed.
pub fn completed_phases(events: &Path) -> Vec<String> {
    let mut done = Vec::new();
    for entry in fs::read_dir(events).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        done.extend(lines.filter_map(|line: Value| {
            let ended = line["event"] == "phase_end" && line["outcome"] == "completed";
            let phase = line["phase"].as_str().filter(|_| ended)?;
            Some(phase.to_owned())
        }));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_completed_is_done() {
        let dir = tempfile::tempdir().unwrap();
        assert!(completed_phases(&dir.path().join("none")).is_empty());
        let log = concat!(
            "{\"event\":\"phase_end\",\"phase\":\"implementer\",\"outcome\":\"completed\"}\n",
            "{\"event\":\"phase_end\",\"phase\":\"verifier\",\"outcome\":\"failed\"}\n",
            "nonsense\n",
        );
        fs::write(dir.path().join("run-1.jsonl"), log).unwrap();
        assert_eq!(completed_phases(dir.path()), ["implementer"]);
    }
}
