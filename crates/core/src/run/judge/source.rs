//! Whose hand changed the source while a run worked on its copy?

use crate::containment::{Containment, ContainmentReport};
use crate::run::rules::Rules;
use crate::task::contract::Label;

/// Does a change of the source fail the run? Not that of a try in which every process was proven to be
/// in a jail: none of them had the repository, so that the hand was its owner's. Wherever a single
/// proof is missing, nobody knows whose hand it was. Rules of before do not ask.
pub fn judges_source(rules: Rules, label: Label, shown: &ContainmentReport) -> Option<bool> {
    let proven = shown.asked != Containment::None && shown.enforced == shown.asked;
    (rules >= Rules::Seven).then_some(!(label == Label::Try && proven))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(asked: Containment, enforced: Containment) -> ContainmentReport {
        let mut report = ContainmentReport::summarise(asked, None, Vec::new(), true);
        report.enforced = enforced;
        report
    }

    #[test]
    fn only_a_try_whose_every_process_was_contained_is_not_judged() {
        use Containment::{Contained, None as Nothing, Strict};
        for label in [Label::Try, Label::Case] {
            for asked in [Nothing, Contained, Strict] {
                for enforced in [Nothing, Contained, Strict] {
                    let shown = shown(asked, enforced);
                    let free = label == Label::Try && asked == enforced && asked != Nothing;
                    for rules in Rules::ALL {
                        let want = (*rules >= Rules::Seven).then_some(!free);
                        assert_eq!(
                            judges_source(*rules, label, &shown),
                            want,
                            "{label:?} {shown:?}"
                        );
                    }
                }
            }
        }
        // A run in which nothing was started has proven nothing.
        let nothing = ContainmentReport::summarise(Strict, None, Vec::new(), false);
        assert_eq!(
            judges_source(Rules::Seven, Label::Try, &nothing),
            Some(true)
        );
    }
}
