//! Proofs of stages that follow from other documents of their bundle: made again, and compared.

use crate::bundle;
use crate::gate::ladder::stage3::Stage3Proof;
use crate::gate::ladder::stage4::Stage4Proof;
use crate::run::facts::Folded;
use crate::task::source::CopiedRepo;
use crate::verify::{Documents, Verifier};

const CHECK: &str = "judgement";

impl Verifier<'_> {
    pub(in crate::verify) fn stage_proofs(&mut self, documents: &Documents, folded: &Folded) {
        if self.found.files.contains_key(bundle::STAGE3_PROOF) {
            self.stage3(documents);
        }
        if self.found.files.contains_key(bundle::STAGE4_PROOF) {
            self.stage4(documents, folded);
        }
    }

    fn stage4(&mut self, documents: &Documents, folded: &Folded) {
        let Some(told) = self.parsed::<Stage4Proof>(bundle::STAGE4_PROOF) else {
            return;
        };
        let shown = documents.contract.valid().and_then(|contract| {
            Stage4Proof::of(contract, &folded.facts, &documents.report.relies_on)
        });
        if shown.as_ref() != Some(&told) {
            self.problem(
                CHECK,
                bundle::STAGE4_PROOF,
                "is not what contract and chain show",
            );
        }
    }

    fn stage3(&mut self, documents: &Documents) {
        let Some(told) = self.parsed::<Stage3Proof>(bundle::STAGE3_PROOF) else {
            return;
        };
        let copied = self
            .found
            .files
            .contains_key(bundle::SOURCE)
            .then(|| self.parsed::<CopiedRepo>(bundle::SOURCE))
            .flatten();
        let shown = documents.contract.valid().zip(copied);
        let shown = shown.and_then(|(contract, copied)| {
            Stage3Proof::of(contract, &copied, &documents.report.relies_on)
        });
        if shown.as_ref() != Some(&told) {
            self.problem(
                CHECK,
                bundle::STAGE3_PROOF,
                "is not what the looks at the source show",
            );
        }
    }
}
