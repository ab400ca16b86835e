//! The command for the control run: where the selection looks, and without an early stop.
//!
//! What the command itself says can be cut out of it. What a script says is left out by the preload, which
//! is given the options to drop. Only the control runs so; the check stays as the contract has it.

use crate::checks::runners::recognise::options::{Means, spelled};
use crate::task::runner::{Flag, ForControl, Found, Recognised, Runner};

pub fn for_control(command: &str, recognised: &Recognised) -> ForControl {
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    let mut control = ForControl::default();
    for found in &recognised.found {
        let selection = &found.said.selection;
        let names = selection.names.iter().map(|name| &name.flag);
        for flag in found.said.early_stop.iter().chain(names) {
            neutralise(found, flag, &mut cuts, &mut control);
        }
        // `file::test` becomes `file`: the rest of the word is cut.
        for place in selection
            .places
            .iter()
            .filter(|place| place.inside.is_some())
        {
            let inside = format!("::{}", place.inside.as_deref().unwrap_or_default());
            let at = place.flag.place.and_then(|(start, end)| {
                let at = start + command.get(start..end)?.find(&inside)?;
                Some((at, at + inside.len()))
            });
            match at {
                Some(cut) => cuts.push(cut),
                None => control.left.push(place.flag.clone()),
            }
        }
    }
    control.command = without(command, cuts);
    control.drop.sort_unstable();
    control.drop.dedup();
    control
}

/// A command without some places of its text.
pub fn without(command: &str, mut cuts: Vec<(usize, usize)>) -> String {
    let mut left = command.to_owned();
    cuts.sort_unstable();
    for (start, end) in cuts.into_iter().rev() {
        if left.is_char_boundary(start) && left.is_char_boundary(end) && start <= end {
            left.replace_range(start..end, "");
        }
    }
    left
}

fn neutralise(
    found: &Found,
    flag: &Flag,
    cuts: &mut Vec<(usize, usize)>,
    control: &mut ForControl,
) {
    match flag.place {
        Some(place) => cuts.push(place),
        // Node's own options are read before anything can be loaded.
        None if found.runner.is_javascript() && found.runner != Runner::Node => {
            let word = flag
                .words
                .first()
                .map_or("", |word| word.split('=').next().unwrap_or(word));
            let means = |means| matches!(means, Means::Stop | Means::Name(_));
            let rows = spelled(found.runner, means).into_iter();
            control.drop.extend(
                rows.filter(|row| row.trim_end_matches('=') == word)
                    .map(str::to_owned),
            );
        }
        None => control.left.push(flag.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::runners::recognise::recognise;

    fn control(command: &str) -> ForControl {
        let package = r#"{"scripts": {"test": "mocha -b -g 'a|b'", "one": "pytest -x", "node": "node --test --test-name-pattern x"}}"#;
        let known = recognise(command, &mut |path| {
            (path == "package.json").then(|| package.to_owned())
        });
        for_control(command, &known)
    }

    #[test]
    fn early_stops_and_selections_are_cut() {
        for (command, want) in [
            ("pytest -x -q", "pytest  -q"),
            ("pytest -k sums tests", "pytest  tests"),
            ("pytest -k 'a and not b' tests", "pytest  tests"),
            ("pytest -m slow", "pytest "),
            ("pytest tests/a.py::B::test_c -x", "pytest tests/a.py "),
            ("pytest 'tests/a.py::B::test_c'", "pytest 'tests/a.py'"),
            ("python3 -m unittest -f a.B.test_c", "python3 -m unittest  "),
            ("cargo test --lib sums", "cargo test --lib "),
            ("cargo test -- --exact a::b", "cargo test -- --exact "),
            ("cargo nextest run -E 'test(a)'", "cargo nextest run "),
            ("go test -run TestSums -failfast ./...", "go test   ./..."),
            ("npx mocha --bail -g sums", "npx mocha  "),
            ("npx jest -t 'a b' --bail", "npx jest  "),
            ("timeout 9 pytest -x && true", "timeout 9 pytest  && true"),
        ] {
            let control = control(command);
            assert_eq!(control.command, want, "{command}");
            assert!(
                control.drop.is_empty() && control.left.is_empty(),
                "{command}"
            );
        }
    }

    #[test]
    fn what_a_script_says_is_dropped_by_the_preload_or_named() {
        let scripted = control("npm test");
        assert_eq!(scripted.command, "npm test");
        assert_eq!(scripted.drop, ["-b", "-g="]);
        assert_eq!(control("npm run one").left.len(), 1);
        assert_eq!(control("npm run node").left.len(), 1);
    }
}
