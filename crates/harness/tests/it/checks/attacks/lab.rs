//! One row of the table, tried: a repository, a scripted engine, `cto try`, and what came of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use cto_testkit::{Answer, House, Repo, script, shell, skip, write};
use serde_json::json;

use super::table::{Change, Expected, Kit, Row, Scope, Texts};
use crate::checks::pytest_attacks::pytest_bin;
use crate::fixtures::runners::{has_go, install, installed};
use crate::fixtures::rust::with_own_rust;
use crate::{assert_good, house};

/// One kit's house, and the repositories in it. Each thread has its own.
pub struct Lab<'a> {
    kit: &'a Kit,
    house: House,
    repositories: RefCell<BTreeMap<Texts, Repo>>,
}

/// How a try ended.
struct Found {
    status: String,
    codes: Vec<String>,
    detail: String,
    believed: String,
}

impl Found {
    fn words(&self) -> String {
        let Self {
            status,
            codes,
            detail,
            believed,
        } = self;
        format!(
            "{status} {}, believed {believed}: {detail}",
            codes.join(", ")
        )
    }

    /// Why it is not what a row expects.
    fn against(&self, expected: &Expected) -> Option<String> {
        let holds = match expected {
            Expected::Stopped { codes, because, or } => {
                let set = |codes: &[String]| codes.iter().cloned().collect::<BTreeSet<_>>();
                let found = set(&self.codes);
                let early = !found.is_empty() && found.is_subset(&set(or));
                early || (found == set(codes) && self.detail.contains(because))
            }
            // Whatever else came of what it had done until then.
            Expected::Refused(code) => self.codes.contains(code),
            Expected::Lie(_) => self.status == "pass",
            Expected::Pass { believed, .. } => self.status == "pass" && self.believed == *believed,
        };
        (!holds).then(|| format!("wanted {expected:?}, found {}", self.words()))
    }
}

impl<'a> Lab<'a> {
    /// Has this machine such a runner? If not, that is said.
    pub fn is_possible(kit: &Kit) -> bool {
        match kit.program() {
            "pytest" => pytest_bin().is_some(),
            "npm" if !Path::new("/usr/bin/npm").exists() => {
                assert!(std::env::var_os("REQUIRE_NPM").is_none(), "npm is not here");
                skip("there is no /usr/bin/npm");
                false
            }
            "go" => has_go(),
            _ => (kit.packages.as_deref()).is_none_or(|name| installed(name).is_some()),
        }
    }

    pub fn open(kit: &'a Kit) -> Self {
        let mut house = house();
        if kit.rust {
            house = with_own_rust(house);
        }
        if kit.program() == "pytest"
            && let Some(bin) = pytest_bin()
        {
            // First, so that `python3 -m pytest` finds it too.
            let path = std::env::var("PATH").unwrap();
            house = house.with("PATH", &format!("{}:{path}", bin.display()));
        }
        Self {
            kit,
            house,
            repositories: RefCell::default(),
        }
    }

    /// What is wrong with a row.
    pub fn try_row(&self, row: &Row) -> Option<String> {
        let found = self.play(&row.change, row.scope);
        let against = found.against(&row.expected);
        tell(row, &found, against.is_none());
        let id = row.id();
        match (against, &row.open, &row.waits) {
            (None, None, None) => None,
            (Some(_), Some(_), _) => None,
            (None, Some(_), _) => Some(format!("{id}: no longer open")),
            (None, None, Some(_)) => {
                told(&format!("{id}: no longer waits"));
                None
            }
            (Some(why), None, Some(what)) => {
                told(&format!("{id}: waits for {what}: {why}"));
                None
            }
            (Some(why), None, None) => {
                told(&format!("{id}: {why}"));
                Some(format!("{id}: {why}"))
            }
        }
    }

    /// What is wrong with the honest work beside a row.
    pub fn try_twin(&self, name: &str, row: &Row) -> Option<String> {
        let found = self.play(row.twin.as_ref()?, row.scope);
        (found.status != "pass").then(|| format!("{name}: {}", found.words()))
    }

    fn play(&self, change: &Change, scope: Scope) -> Found {
        let repo = self.repository(self.kit.base(change));
        let script = self.house.script("row", &self.steps(change));
        let mut args: Vec<String> = ["try", "--repo", &repo, "--task", "Mend it", "--json"]
            .map(str::to_owned)
            .into();
        args.extend(["--script".to_owned(), script]);
        let more = [
            ("--allow", scope.allowed(self.kit, change)),
            ("--test", self.kit.commands(change)),
            ("--setup", change.setup.clone()),
        ];
        for (flag, values) in more {
            args.extend(
                values
                    .into_iter()
                    .flat_map(|value| [flag.to_owned(), value]),
            );
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = self.house.command(&args).output().unwrap();
        let answer = Answer::of(&output);
        assert!(!answer.panicked(), "{answer:?}");
        let (_, bundle) = answer.with_bundle();
        // A proof tries programs that judge otherwise than whoever reads them here.
        if std::env::var_os("CTO_ATTACKS_REPORT").is_none() {
            assert_good(&bundle);
        }
        let report = bundle.report();
        let blockers = report["blockers"].as_array().unwrap();
        let details = blockers
            .iter()
            .filter_map(|blocker| blocker["detail"].as_str());
        Found {
            status: bundle.status(),
            codes: bundle.codes(),
            detail: details.collect::<Vec<_>>().join("; "),
            believed: report["belief"]["word"].as_str().unwrap_or("absent").into(),
        }
    }

    fn steps(&self, change: &Change) -> String {
        let mut steps: Vec<String> = (self.kit.written(change).iter())
            .map(|(path, text)| write(path, text))
            .collect();
        let quoted = |path: &String| serde_json::to_string(path).unwrap();
        steps.extend(
            (change.remove.iter())
                .map(|path| format!("[[step]]\ndo = \"delete\"\npath = {}\n\n", quoted(path))),
        );
        steps.extend(change.shell.as_deref().map(shell));
        script(&steps)
    }

    /// Rows that begin from the same files share a repository.
    fn repository(&self, files: Texts) -> String {
        let mut known = self.repositories.borrow_mut();
        let number = known.len();
        let repo = known.entry(files).or_insert_with_key(|files| {
            let repo = Repo::new(&self.house, &format!("repository-{number}"));
            for (path, text) in files {
                repo.write(path, text);
            }
            repo.commit("the beginning");
            if let Some(packages) = self.kit.packages.as_deref().and_then(installed) {
                install(&self.house, &repo, &packages);
            }
            repo
        });
        repo.path().to_owned()
    }
}

fn told(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// For whoever asked to be told of each row.
fn tell(row: &Row, found: &Found, holds: bool) {
    let Some(path) = std::env::var_os("CTO_ATTACKS_REPORT") else {
        return;
    };
    let line = json!({"row": row.id(), "holds": holds, "found": found.words()});
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    writeln!(file, "{line}").unwrap();
}
