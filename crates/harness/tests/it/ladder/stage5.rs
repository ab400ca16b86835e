//! Stage 5: an engine's work reaches a repository that somebody owns, once it was approved, verified and accepted.

use std::fs;
use std::path::Path;

use cto_testkit::{Answer, Bundle, Repo};
use serde_json::{Value, json};

use super::approvals::Desk;
use super::stage4;
use super::targets::admission;
use super::{file, repo_of_case};

pub const PROOF: &str = "stage5-owned-repo-proof.json";

/// A lane that is proven at stage 4, an admitted repository, and somebody who may say what becomes of it.
pub struct Owner {
    pub desk: Desk,
    pub repo: Repo,
    pub target: String,
}

impl Owner {
    pub fn new() -> Self {
        let desk = stage4::desk();
        let proven = stage4::approved(&desk, &[]);
        assert_eq!(proven.status(), "pass", "{:?}", proven.codes());
        let repo = repo_of_case(&desk.house, "target");
        let record = admission(repo.path());
        let target = file(&desk.house, "target.json", &record);
        Self { desk, repo, target }
    }

    pub fn request(&self, more: &[&str]) -> Value {
        let args = ["--stage", "5", "--target", &self.target];
        self.desk.request_with(&[&args[..], more].concat())
    }

    /// A green run that waits for a word.
    pub fn waiting(&self, more: &[&str]) -> Bundle {
        let request = self.request(more);
        self.desk.approve(&request);
        let bundle = self.desk.run(&request);
        assert_eq!(bundle.codes(), ["missing_operator_outcome"]);
        bundle
    }

    pub fn cto(&self, words: &[&str]) -> Answer {
        let key = ["--key", self.desk.key.to_str().unwrap(), "--json"];
        self.desk.house.cto(&[words, &key[..]].concat())
    }

    pub fn head(&self) -> String {
        self.repo.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// What `cto verify` says of it, here.
    pub fn verifies(&self, id: &str) {
        let answer = self.desk.house.cto(&["verify", id, "--json"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }

    pub fn settlement(&self, answer: &Answer) -> Bundle {
        let id = answer.json()["settlement"]["run_id"]
            .as_str()
            .unwrap()
            .to_owned();
        self.verifies(&id);
        Bundle::at(self.desk.house.runs_dir().join(id))
    }
}

#[test]
fn an_accepted_result_lands_and_can_be_taken_back() {
    let owner = Owner::new();
    let (before, old) = (owner.repo.bytes(), owner.head());
    let run = owner.waiting(&[]);
    assert_eq!(owner.repo.bytes(), before, "nothing lands before a word");
    assert!(
        run.anywhere(owner.repo.path()).is_empty(),
        "the path is told"
    );
    owner.verifies(&run.run_id());
    let result = run.report()["result"]["commit"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        run.event("git.diff.checked").unwrap()["result_commit"],
        json!(result)
    );

    let accepted = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert_eq!(accepted.json()["effective"]["status"], "pass");
    assert_eq!(owner.head(), result, "the commit that the run named");
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "");
    assert_eq!(
        owner.repo.git(&["rev-parse", "HEAD^"]).trim(),
        old,
        "on the owner's own HEAD"
    );
    let message = owner.repo.git(&["log", "-1", "--format=%B"]);
    let report = run.report();
    let mut relied = report["relies_on"].as_array().unwrap().iter();
    let approval = relied.find(|on| on["kind"] == "approval").unwrap();
    let approval = approval["id"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&format!("Cto-Run: {}", run.run_id())),
        "{message}"
    );
    assert!(message.contains(&approval), "{message}");
    owner.repo.git(&["fsck", "--strict"]);

    let settlement = owner.settlement(&accepted);
    assert_eq!(settlement.status(), "pass");
    assert_eq!(settlement.report()["kind"], "settlement");
    let proof = settlement.json(PROOF);
    for (field, want) in [
        ("stage", json!(5)),
        ("target_repository_admission_status", json!("admitted")),
        ("target_repository_start_clean", json!(true)),
        ("target_repository_ending_clean", json!(true)),
        ("allowed_paths_passed", json!(true)),
        ("forbidden_paths_passed", json!(true)),
        ("forbidden_actions_attempted", json!(false)),
        ("operator_outcome", json!("accepted")),
        ("outcome_given_ahead", json!(false)),
        ("baseline_commit", json!(old)),
        ("target_commit", json!(result)),
        ("approval_id", json!(approval)),
        ("runtime_default_activation", json!(false)),
        ("core_promotion_status", json!("not-promoted")),
    ] {
        assert_eq!(proof[field], want, "{field}");
    }
    assert_eq!(proof["attempted"]["push_attempted"], json!(false));
    let ladder = owner
        .desk
        .house
        .cto(&["ladder", "--engine", "fake", "--json"]);
    assert_eq!(
        ladder.json()["engines"][0]["rungs"][4]["standing"],
        "proven"
    );
    assert!(settlement.anywhere(owner.repo.path()).is_empty());
    assert_eq!(journals(&owner), 0);

    let shown = owner
        .desk
        .house
        .cto(&["show", &run.run_id(), "--json"])
        .json();
    let closeout = &shown["closeout"];
    assert_eq!(closeout["request"]["request_id"], json!(approval));
    assert_eq!(closeout["approval"]["actor"], "me");
    assert_eq!(closeout["consumed_by_pass_evidence"], true);
    assert_eq!(closeout["execution_allowed"], false);
    assert_eq!(
        closeout["settlements"][0]["landed"]["commit"],
        json!(result)
    );
    let again = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(again.code, Some(3), "said once: {again:?}");
    let back = owner.cto(&["revert", &run.run_id()]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(back.json()["effective"]["standing"], "reverted");
    assert_eq!(owner.repo.git(&["rev-parse", "HEAD^"]).trim(), result);
    assert_eq!(
        owner.repo.git(&["rev-parse", "HEAD^{tree}"]),
        owner.repo.git(&["rev-parse", &format!("{old}^{{tree}}")])
    );
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "");
    let back = owner.settlement(&back);
    assert_eq!(back.status(), "fail");
    let ladder = owner
        .desk
        .house
        .cto(&["ladder", "--engine", "fake", "--json"]);
    assert_eq!(
        ladder.json()["engines"][0]["rungs"][4]["standing"],
        "unproven",
        "what was taken back proves nothing"
    );
    assert_eq!(journals(&owner), 0);
    let nothing = owner.cto(&["revert", &run.run_id()]);
    assert_eq!(nothing.json()["error"]["code"], "nothing_landed");
}

pub fn journals(owner: &Owner) -> usize {
    fs::read_dir(owner.desk.house.state().join("journal")).map_or(0, Iterator::count)
}

#[test]
fn a_rejected_result_leaves_every_byte() {
    let owner = Owner::new();
    let before = owner.repo.bytes();
    let run = owner.waiting(&[]);
    let rejected = owner.cto(&["outcome", &run.run_id(), "reject"]);
    assert_eq!(rejected.code, Some(0), "{rejected:?}");
    let settlement = owner.settlement(&rejected);
    assert_eq!(settlement.codes(), ["operator_rejected"]);
    assert!(!settlement.has(PROOF));
    assert_eq!(owner.repo.bytes(), before);
    let shown = owner.desk.house.cto(&["show", &run.run_id(), "--json"]);
    assert_eq!(shown.json()["effective"]["standing"], "rejected");
    let accepted = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(accepted.code, Some(3), "{accepted:?}");
    assert_eq!(owner.repo.bytes(), before);
}

#[test]
fn an_outcome_given_ahead_lands_at_once_and_says_so() {
    let owner = Owner::new();
    let request = owner.request(&[]);
    owner.desk.approve(&request);
    let id = request["request_id"].as_str().unwrap();
    let answer = owner.cto(&["run", "--request", id, "--outcome", "accept"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let told = answer.json();
    assert_eq!(told["status"], "blocked", "the run itself lacks the word");
    assert_eq!(told["effective"]["status"], "pass");
    let settlement = owner.settlement(&answer);
    assert_eq!(settlement.json(PROOF)["outcome_given_ahead"], json!(true));
    assert_eq!(
        owner.head(),
        settlement.json(PROOF)["target_commit"].as_str().unwrap()
    );
}

#[test]
fn a_variable_gives_the_outcome_ahead() {
    let owner = Owner::new();
    let request = owner.request(&[]);
    owner.desk.approve(&request);
    let id = request["request_id"].as_str().unwrap();
    let name = "CTO_HARNESS_FAKE_STAGE5_OPERATOR_OUTCOME";
    let key = owner.desk.key.to_str().unwrap();
    let words = ["run", "--request", id, "--key", key, "--json"];
    let with = |owner: &Owner, value: &str| {
        let mut command = owner.desk.house.command(&words);
        Answer::of(&command.env(name, value).output().unwrap())
    };
    let bad = with(&owner, "maybe");
    assert_eq!(bad.json()["error"]["code"], "bad_outcome", "{bad:?}");
    let before = owner.repo.bytes();
    let answer = with(&owner, "rejected");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(answer.json()["effective"]["standing"], "rejected");
    assert_eq!(owner.repo.bytes(), before);
}

#[test]
fn a_branch_of_its_own_touches_nothing_else() {
    let owner = Owner::new();
    fs::write(Path::new(owner.repo.path()).join("note.txt"), "mine").unwrap();
    // Untracked work blocks the run, not the landing: it comes afterwards.
    fs::remove_file(Path::new(owner.repo.path()).join("note.txt")).unwrap();
    let run = owner.waiting(&[]);
    fs::write(Path::new(owner.repo.path()).join("note.txt"), "mine").unwrap();
    let old = owner.head();
    let answer = owner.cto(&["outcome", &run.run_id(), "accept", "--land", "branch"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(owner.head(), old);
    let name = format!("cto/{}", run.run_id());
    let result = run.report()["result"]["commit"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(owner.repo.git(&["rev-parse", &name]).trim(), result);
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "?? note.txt");
    let proof = owner.settlement(&answer).json(PROOF);
    assert_eq!(proof["land_mode"], "branch");
    let back = owner.cto(&["revert", &run.run_id()]);
    assert_eq!(back.code, Some(1), "it is in no branch of theirs: {back:?}");
    assert_eq!(owner.head(), old);
}

#[test]
fn what_changed_since_the_approval_lets_nothing_land() {
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (repo, id) = (&owner.repo, run.run_id());
    let refused = |why: &str, says: &str| {
        let before = repo.bytes();
        let answer = owner.cto(&["outcome", &id, "accept"]);
        assert_eq!(answer.code, Some(1), "{why}: {answer:?}");
        let settlement = owner.settlement(&answer);
        assert_eq!(settlement.codes(), ["landing_unsupported"], "{why}");
        let blockers = settlement.report()["blockers"].clone();
        let detail = blockers[0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(says), "{why}: {detail}");
        assert_eq!(repo.bytes(), before, "{why}");
        assert_eq!(answer.json()["effective"]["standing"], "not_landed");
        repo.git(&["fsck", "--strict"]);
    };
    // The admission.
    let record = fs::read(&owner.target).unwrap();
    let mut edited: Value = serde_json::from_slice(&record).unwrap();
    edited["noncritical_rationale"] = json!("another");
    fs::write(&owner.target, serde_json::to_vec(&edited).unwrap()).unwrap();
    refused("another admission", "another one than was approved");
    edited["admission_status"] = json!("not_admitted");
    fs::write(&owner.target, serde_json::to_vec(&edited).unwrap()).unwrap();
    refused("no admission", "not admitted any more");
    fs::write(&owner.target, &record).unwrap();
    // A dirty file, a held index, another branch, a commit.
    repo.write("README.md", "theirs\n");
    refused("dirty", "README.md");
    repo.git(&["checkout", "-q", "README.md"]);
    let lock = Path::new(repo.path()).join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    refused("locked", "index.lock");
    fs::remove_file(&lock).unwrap();
    repo.git(&["checkout", "-q", "-b", "other"]);
    refused("branch", "another branch");
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "-q", "--detach"]);
    refused("detached", "no branch is checked out");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("more.txt", "more\n");
    repo.commit("theirs");
    refused("commit", "HEAD is not the commit");
    repo.git(&["reset", "-q", "--hard", "HEAD^"]);
    let answer = owner.cto(&["outcome", &id, "accept"]);
    assert_eq!(answer.code, Some(0), "said again: {answer:?}");
}

#[test]
fn what_is_no_word_of_its_owner_is_none() {
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (before, id) = (owner.repo.bytes(), run.run_id());
    let nobody = owner.desk.house.cto(&["outcome", &id, "accept", "--json"]);
    assert_eq!(nobody.json()["error"]["code"], "not_typed_by_a_person");
    let stranger = super::approvals::make_key(&owner.desk.house, "stranger");
    let words = ["outcome", &id, "accept", "--json", "--key"];
    let key = stranger.to_str().unwrap().to_owned();
    let answer = owner.desk.house.cto(&[&words[..], &[&key]].concat());
    assert_eq!(answer.json()["error"]["code"], "not_a_signer");
    // A run that lacks more than the word.
    let request = owner.request(&["--script", "nop"]);
    owner.desk.approve(&request);
    let failed = owner.desk.run(&request);
    assert_eq!(failed.codes(), ["no_diff"]);
    let answer = owner.cto(&["outcome", &failed.run_id(), "accept"]);
    assert_eq!(answer.json()["error"]["code"], "not_settled", "{answer:?}");
    // One whose bundle was changed.
    let patch = run.dir.join("patch.diff");
    let text = fs::read_to_string(&patch).unwrap();
    fs::write(&patch, text.replace("+", "+ ")).unwrap();
    let answer = owner.cto(&["outcome", &id, "accept"]);
    assert_eq!(answer.json()["error"]["code"], "not_settled", "{answer:?}");
    assert_eq!(owner.repo.bytes(), before);
}
