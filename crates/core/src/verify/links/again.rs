//! A patch that is judged again: its bundle says of which run, and that bundle is asked. The patch, the task, the
//! tree and the result are that run's, the run may be judged again, and what differs is what is said to differ.

use super::{CHECK, Linked};
use crate::bundle;
use crate::bundle::again::{FirstRun, may_be_judged_again};
use crate::bundle::report::Report;
use crate::run::event::Kind;
use crate::task::again::{ChecksDiffer, other_task};
use crate::values::blocker::Code;
use crate::verify::{Documents, Standing, Verifier};

impl Verifier<'_> {
    pub(in crate::verify) fn judged_again(&mut self, documents: &Documents) {
        let report = &documents.report;
        let again = report.kind == Kind::Reverification;
        let Some(reverifies) = report.reverifies.as_ref().filter(|_| again) else {
            if again {
                let what = "is a reverification and does not say of what";
                self.problem(CHECK, bundle::REPORT, what);
            } else if report.reverifies.is_some() || report.checks_differ.is_some() {
                let what = "judges a patch again without being a reverification";
                self.problem(CHECK, bundle::REPORT, what);
            }
            return;
        };
        let run = &reverifies.run_id;
        let Some(first) = self.links.get(run).cloned() else {
            let what = format!("judges the patch of {run} again, which was not found");
            return self.unknown(CHECK, bundle::REPORT, what);
        };
        if first.sums_sha256 != reverifies.sums_sha256 {
            let what = format!("judges another bundle again than the one called {run}");
            self.problem(CHECK, bundle::REPORT, what);
        }
        match first.standing {
            Standing::Bad => {
                let what = format!("judges the patch of {run} again, which is bad");
                self.problem(CHECK, bundle::REPORT, what);
            }
            Standing::Unknown => {
                let what = format!("judges the patch of {run} again, which is unknown");
                self.unknown(CHECK, bundle::REPORT, what);
            }
            Standing::Good => {}
        }
        for (artifact, what) in self.not_of_first(documents, &first) {
            self.problem(CHECK, artifact, what);
        }
    }

    /// Everything in which a reverification is not one of this run.
    fn not_of_first(&self, documents: &Documents, first: &Linked) -> Vec<(&'static str, String)> {
        let (report, run) = (&documents.report, &first.report.run_id);
        let asked = FirstRun::of(&first.report, first.contract.as_deref());
        let old = match may_be_judged_again(&asked) {
            Ok(contract) => contract,
            Err(why) => {
                let what = format!("{run} may not be judged again: {why}");
                return vec![(bundle::REPORT, what)];
            }
        };
        let mut wrong = Vec::new();
        if report.process_started {
            wrong.push((bundle::REPORT, "says that an engine was started".to_owned()));
        }
        let ours = self.found.files.get(bundle::PATCH);
        let theirs = first.artifacts.get(bundle::PATCH);
        let mut codes = report.blockers.iter().map(|found| found.code);
        let withheld = codes.any(|code| code == Code::SecretLeak);
        // Before it was put in there is none.
        if report.result.is_some() && !withheld && ours.map(|file| &file.sha256) != theirs {
            wrong.push((bundle::PATCH, format!("is not the patch of {run}")));
        }
        let tree = |of: &Report| of.result.as_ref().map(|result| result.tree.clone());
        if report.result.is_some() && tree(report) != tree(&first.report) {
            wrong.push((bundle::REPORT, format!("comes to another tree than {run}")));
        }
        match documents.contract.valid() {
            // A gate may have let nobody look at the tree.
            Some(new) if report.result.is_some() => {
                if let Some(what) = other_task(old, new) {
                    wrong.push((bundle::CONTRACT, format!("{what}, judged against {run}")));
                }
            }
            _ => {}
        }
        let differ = documents
            .contract
            .valid()
            .map(|new| ChecksDiffer::between(old, new));
        if report.checks_differ != differ {
            let what = format!("checks_differ is not what differs from {run}");
            wrong.push((bundle::REPORT, what));
        }
        wrong
    }
}
