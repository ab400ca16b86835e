//! The gates and the page that rules 2 ask for, pinned.

use super::*;
use crate::bundle::report_md::{self, Renderer};
use crate::gate::GATES;
use crate::task::contract::Label;
use crate::values::blocker::BLOCKERS;

/// A gate that goes, moves or changes its phase would make bundles bad that were good.
#[test]
fn the_gates_of_rules_2_are_asked_in_that_order() {
    let mut asked = GATES.iter();
    for (id, phase) in GATES_OF_RULES_2 {
        assert!(
            asked.any(|gate| gate.id == id && gate.phase == phase),
            "{id} is no longer asked where rules 2 look for it: add rules 3"
        );
    }
}

/// `report.md` quotes blockers: sentence and hint of each are words of a renderer.
#[test]
fn words_of_renderer_2_stay_as_they_are() {
    let pinned = include_str!("renderer2-blockers.txt");
    for lines in pinned.split_terminator("\n\n") {
        let name = lines.split('`').nth(1).unwrap();
        let code = BLOCKERS.iter().find(|info| info.name == name);
        let code = code.unwrap_or_else(|| panic!("{name} is gone")).code;
        let now = report_md::blocker_lines(
            Renderer::Two,
            (Label::Case, &"fake".parse().unwrap()),
            &Blocker::new(code, None),
        );
        assert_eq!(now.trim_end(), lines.trim_end(), "add a renderer");
    }
}
