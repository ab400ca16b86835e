//! Landings in real repositories: killed at every step, changed by their owners meanwhile, refused.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use super::*;
use crate::host::Env;
use cto_core::workspace::landing::refusal::Reason;

const STOP: &str = "CTO_LANDING_TEST_STOP";
const PLACE: &str = "CTO_LANDING_TEST_PLACE";

/// Where a test said so, the process is gone as if by SIGKILL.
pub fn passed(step: &'static str) {
    if std::env::var(STOP).is_ok_and(|stop| stop == step) {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    }
}

const RUN: &str = "20260102T030405Z-case-23abcdef";

/// A repository, a state home, and a patch that changes, adds, removes, links and turns a file into a
/// directory.
struct Lab {
    dir: PathBuf,
    _held: Option<tempfile::TempDir>,
}

fn git_in(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "owner");
        command.env(format!("GIT_{who}_EMAIL"), "owner@example.invalid");
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {error}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

impl Lab {
    fn new() -> Self {
        Self::with(&["-b", "main"])
    }

    fn with(init: &[&str]) -> Self {
        let held = tempfile::tempdir().unwrap();
        let lab = Self {
            dir: held.path().canonicalize().unwrap(),
            _held: Some(held),
        };
        fs::create_dir(lab.repo()).unwrap();
        lab.git(&[&["init", "-q"], init].concat());
        for (name, text) in [
            ("a", "old\n"),
            ("gone", "x\n"),
            ("src/deep/b", "b\n"),
            ("turns", "t\n"),
            ("other", "o\n"),
        ] {
            lab.write(name, text);
        }
        fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "start"]);
        lab.change();
        let patch = lab.git(&[
            "diff",
            "--cached",
            "--full-index",
            "--binary",
            "--no-renames",
        ]);
        fs::write(lab.dir.join("patch"), patch + "\n").unwrap();
        lab.git(&["reset", "-q", "--hard"]);
        lab.git(&["clean", "-qfd"]);
        fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(lab.dir.join("tree"), lab.git(&["rev-parse", "HEAD^{tree}"])).unwrap();
        lab
    }

    fn change(&self) {
        self.write("a", "new\n");
        self.write("new/dir/c", "c\n");
        for gone in ["gone", "turns"] {
            fs::remove_file(self.repo().join(gone)).unwrap();
        }
        self.write("turns/into", "a directory\n");
        symlink("a", self.repo().join("link")).unwrap();
        let tool = self.repo().join("src/deep/b");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        self.git(&["add", "-A"]);
    }

    fn repo(&self) -> PathBuf {
        self.dir.join("repo")
    }

    fn home(&self) -> Home {
        Home {
            root: self.dir.join("state"),
            runs: self.dir.join("runs"),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let place = self.repo().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repo().join(name)).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.repo(), args)
    }

    /// Every file with its bytes, `.git` too.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut pending) = (BTreeMap::new(), vec![self.repo()]);
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).unwrap().flatten() {
                let meta = fs::symlink_metadata(entry.path()).unwrap();
                if meta.is_dir() {
                    pending.push(entry.path());
                } else if meta.is_symlink() {
                    let text = fs::read_link(entry.path()).unwrap();
                    found.insert(entry.path(), text.as_os_str().as_bytes().to_vec());
                } else {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        found
    }

    fn work_bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut bytes = self.bytes();
        bytes.retain(|path, _| !path.starts_with(self.repo().join(".git")));
        bytes
    }

    fn with_order<T>(
        &self,
        make: impl FnOnce(&mut Order<'_>),
        then: impl FnOnce(&Order<'_>) -> T,
    ) -> T {
        let (home, run) = (self.home(), RUN.parse().unwrap());
        home.create().unwrap();
        let git = host::programs::git(&Env::default(), &home).unwrap();
        let (repo, aside) = (self.repo(), self.dir.join("aside"));
        host::make_private_dir(&aside).unwrap();
        let bytes = fs::read(self.dir.join("patch")).unwrap();
        let tree = fs::read_to_string(self.dir.join("tree")).unwrap();
        let paths = [
            "a",
            "gone",
            "link",
            "new/dir/c",
            "src/deep/b",
            "turns",
            "turns/into",
        ];
        let mut order = Order {
            git: &git,
            home: &home,
            repository: &repo,
            only: None,
            users_home: None,
            way: Way::Merge,
            change: Change::Patch {
                tree: &tree,
                bytes: &bytes,
                paths: paths.map(TreePath::new).into(),
            },
            branch: None,
            head: None,
            clean: Clean::Paths,
            run: &run,
            approval: None,
            words: "Make it right",
            author: Who::harness(),
            committer: Who::harness(),
            when: Utc::from_millis(1_700_000_000_000).unwrap(),
            awaits_settlement: false,
            aside: &aside,
        };
        make(&mut order);
        then(&order)
    }

    fn prepare(&self) -> Result<Ready, LandingError> {
        self.with_order(|_| {}, |order| prepare(order))
    }

    fn land(&self) -> Result<Landed, LandingError> {
        self.land_as(|_| {})
    }

    fn land_as(&self, make: impl FnOnce(&mut Order<'_>)) -> Result<Landed, LandingError> {
        self.with_order(make, |order| land(order, &Cancel::never().unwrap()))
    }

    fn recover(&self) -> Vec<recover::Recovered> {
        recover::landings(&self.home(), &Env::default())
    }

    /// Nothing of ours is left, and git finds nothing wrong.
    fn assert_tidy(&self, when: &str) {
        for path in self.bytes().keys() {
            let name = path.display().to_string();
            assert!(
                !name.contains("cto-") && !name.ends_with(".keep") && !name.ends_with(".lock"),
                "{when}: {name}"
            );
        }
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let journals = fs::read_dir(self.home().journal())
            .into_iter()
            .flatten()
            .count();
        assert_eq!(journals, 0, "{when}");
    }

    fn assert_landed(&self, when: &str) {
        assert_eq!(self.git(&["status", "--porcelain"]), "", "{when}");
        assert_eq!(self.read("a"), "new\n", "{when}");
        assert_eq!(self.read("turns/into"), "a directory\n", "{when}");
        assert!(!self.repo().join("gone").exists(), "{when}");
        assert_eq!(
            self.git(&["log", "-1", "--format=%s"]),
            "Make it right",
            "{when}"
        );
        self.assert_tidy(when);
    }
}

#[test]
fn a_commit_lands_with_its_files_and_is_told_by_trailers() {
    let lab = Lab::new();
    lab.write("untracked", "mine\n");
    let head = lab.git(&["rev-parse", "HEAD"]);
    let landed = lab
        .land_as(|order| order.approval = Some("request-1"))
        .unwrap();
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), landed.commit);
    assert_eq!(lab.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!(lab.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let body = lab.git(&["log", "-1", "--format=%an <%ae> %at%n%(trailers)"]);
    let want = format!(
        "CTO Harness <harness@cto.invalid> 1700000000\nCto-Run: {RUN}\nCto-Approval: request-1"
    );
    assert_eq!(body.trim_end(), want);
    assert!(lab.git(&["reflog", "-1", "main"]).contains("cto: land"));
    let mode = |name: &str| fs::metadata(lab.repo().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("a"), mode("src/deep/b") & 0o100), (0o640, 0o100));
    assert_eq!(
        fs::read_dir(lab.home().journal()).unwrap().count(),
        1,
        "not settled yet"
    );
    landed.settled().unwrap();
    fs::remove_file(lab.repo().join("untracked")).unwrap();
    lab.assert_landed("landed");
}

#[test]
fn the_same_order_makes_the_same_commit_and_looking_changes_nothing() {
    let lab = Lab::new();
    let before = lab.bytes();
    let name = || lab.prepare().unwrap().commit;
    let one = name();
    let two = name();
    assert_eq!(one, two);
    assert_eq!(lab.bytes(), before);
    assert_eq!(lab.land().unwrap().commit, one);
}

#[test]
fn a_branch_is_one_ref_and_nothing_else() {
    let lab = Lab::new();
    lab.write("a", "my own work\n");
    lab.git(&["checkout", "-q", "--detach"]);
    let (work, index) = (
        lab.work_bytes(),
        fs::read(lab.repo().join(".git/index")).unwrap(),
    );
    let branch = |order: &mut Order<'_>| order.way = Way::Branch;
    let landed = lab.land_as(branch).unwrap();
    let name = format!("refs/heads/cto/{RUN}");
    assert_eq!(landed.branch, name);
    assert_eq!(lab.git(&["rev-parse", &name]), landed.commit);
    assert_eq!(lab.git(&["show", &format!("{name}:a")]), "new");
    landed.settled().unwrap();
    assert_eq!(lab.work_bytes(), work);
    assert_eq!(fs::read(lab.repo().join(".git/index")).unwrap(), index);
    lab.assert_tidy("branch");
    let again = lab.with_order(branch, |order| prepare(order)).unwrap();
    assert!(again.is_landed, "the same again is there already");
    drop(again);
    let other = lab.land_as(|order| {
        branch(order);
        order.words = "Something else";
    });
    assert!(refused(other).contains(&Reason::BranchTaken));
}

fn refused(result: Result<Landed, LandingError>) -> Vec<Reason> {
    match result {
        Err(LandingError::Refused(all)) => all.into_iter().map(|refusal| refusal.reason).collect(),
        Err(other) => panic!("{other}: {other:?}"),
        Ok(landed) => panic!("{landed:?}"),
    }
}

type Make = fn(&Lab);

/// Not one byte of the repository is another.
#[test]
fn what_is_not_safe_is_refused_with_its_reason() {
    let rows: [(Reason, Make); 19] = [
        (Reason::HeadDetached, |lab| {
            drop(lab.git(&["checkout", "-q", "--detach"]))
        }),
        (Reason::Unfinished, |lab| lab.write(".git/MERGE_HEAD", "x")),
        (Reason::Unfinished, |lab| {
            fs::create_dir(lab.repo().join(".git/rebase-merge")).unwrap()
        }),
        (Reason::Locked, |lab| lab.write(".git/index.lock", "")),
        (Reason::Maintenance, |lab| {
            lab.write(".git/gc.pid", "1 elsewhere")
        }),
        (Reason::Maintenance, |lab| {
            lab.write(".git/objects/maintenance.lock", "")
        }),
        (Reason::Dirty, |lab| lab.write("a", "mine\n")),
        (Reason::Dirty, |lab| lab.write("new/dir/c", "in the way\n")),
        (Reason::Dirty, |lab| {
            lab.write("a", "staged\n");
            lab.git(&["add", "a"]);
            lab.write("a", "old\n");
        }),
        (Reason::Dirty, |lab| {
            lab.git(&["update-index", "--assume-unchanged", "a"]);
            lab.write("a", "hidden\n");
        }),
        (Reason::Link, |lab| {
            fs::rename(lab.repo().join("src"), lab.repo().join("real")).unwrap();
            symlink("real", lab.repo().join("src")).unwrap();
        }),
        (Reason::Filter, |lab| {
            lab.write(".git/info/attributes", "a filter=evil\n");
            lab.git(&["config", "filter.evil.clean", "touch ran; cat"]);
            lab.git(&["config", "filter.evil.smudge", "touch ran; cat"]);
        }),
        (Reason::Filter, |lab| {
            lab.write(".git/info/attributes", "a filter=lfs diff=lfs -text\n")
        }),
        (Reason::Encoding, |lab| {
            lab.write(".git/info/attributes", "a working-tree-encoding=UTF-16\n")
        }),
        (Reason::Keywords, |lab| {
            lab.write(".git/info/attributes", "a ident\n")
        }),
        (Reason::Sparse, |lab| {
            drop(lab.git(&["config", "core.sparseCheckout", "true"]))
        }),
        (Reason::PartialClone, |lab| {
            drop(lab.git(&["config", "remote.origin.promisor", "true"]))
        }),
        (Reason::SharedBranch, |lab| {
            lab.git(&["worktree", "add", "-q", "-f", "../linked", "main"]);
        }),
        (Reason::CaseClash, |lab| {
            lab.git(&["config", "core.ignoreCase", "true"]);
            lab.write("LINK", "x\n");
            lab.git(&["add", "LINK"]);
        }),
    ];
    for (number, (reason, make)) in rows.into_iter().enumerate() {
        let lab = Lab::new();
        make(&lab);
        let before = lab.bytes();
        let found = refused(lab.land());
        assert!(found.contains(&reason), "{number} {reason:?}: {found:?}");
        assert_eq!(lab.bytes(), before, "{number} {reason:?}");
        assert!(lab.recover().is_empty(), "{number}");
    }
}

#[test]
fn only_the_commit_and_the_branch_that_were_meant() {
    let lab = Lab::new();
    let head: &'static str = lab.git(&["rev-parse", "HEAD"]).leak();
    lab.write("later", "x\n");
    lab.git(&["add", "later"]);
    lab.git(&["commit", "-q", "-m", "later"]);
    let before = lab.bytes();
    assert_eq!(
        refused(lab.land_as(|order| order.head = Some(head))),
        [Reason::HeadMoved]
    );
    assert_eq!(
        refused(lab.land_as(|order| order.branch = Some("work"))),
        [Reason::OtherBranch]
    );
    assert_eq!(lab.bytes(), before);
    // A later commit that left the paths alone is no hindrance where none is named.
    lab.land().unwrap().settled().unwrap();
    lab.assert_landed("on a later commit");
    let lab = Lab::new();
    lab.write("a", "committed since\n");
    lab.git(&["commit", "-q", "-a", "-m", "since"]);
    assert!(matches!(lab.land(), Err(LandingError::Changed(_))));
    let lab = Lab::new();
    lab.write("untracked", "x\n");
    assert_eq!(
        refused(lab.land_as(|order| order.clean = Clean::Everything)),
        [Reason::Dirty]
    );
}

const STEPS: [&str; 14] = [
    "journal",
    "room",
    "lock",
    "objects",
    "made",
    "one path",
    "paths",
    "new index",
    "index",
    "ref",
    "unlocked",
    "room gone",
    "ended",
    "nowhere",
];

/// What a process of its own does, for `killed`: nextest knows it as ignored.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let lab = Lab {
        dir: place.into(),
        _held: None,
    };
    let way = std::env::var("CTO_LANDING_TEST_WAY").unwrap();
    let settled = lab.land_as(|order| order.way = Way::named(&way).unwrap());
    settled.unwrap().settled().unwrap();
}

/// Says whether the process was killed.
fn killed(lab: &Lab, way: Way, step: &str) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "workspace::landing::tests::child",
            "--ignored",
            "--nocapture",
        ])
        .env(PLACE, &lab.dir)
        .env(STOP, step)
        .env("CTO_LANDING_TEST_WAY", way.as_str())
        .output()
        .unwrap();
    let killed = status.status.signal() == Some(9);
    assert!(killed || status.status.success(), "{step}: {status:?}");
    killed
}

#[test]
fn killed_at_every_step_one_recovery_ends_it() {
    for step in STEPS {
        let lab = Lab::new();
        lab.write("untracked", "mine\n");
        lab.write("other", "uncommitted, and not touched\n");
        let head = lab.git(&["rev-parse", "HEAD"]);
        let was_killed = killed(&lab, Way::Merge, step);
        assert_eq!(was_killed, step != "nowhere", "{step}");
        // Before recovery: no byte of the owner's is lost.
        let held = |text: &str| lab.bytes().values().any(|bytes| bytes == text.as_bytes());
        for text in ["mine\n", "uncommitted, and not touched\n"] {
            assert!(held(text), "{step}: {text}");
        }
        let recovered = lab.recover();
        for one in &recovered {
            assert!(
                matches!(one.result, Ok(End::Landed | End::Undone)),
                "{step}: {:?}",
                one.result
            );
        }
        assert_eq!(
            (lab.read("untracked"), lab.read("other")),
            ("mine\n".into(), "uncommitted, and not touched\n".into())
        );
        fs::remove_file(lab.repo().join("untracked")).unwrap();
        lab.git(&["checkout", "-q", "other"]);
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{step}");
        let passed_the_point =
            STEPS.iter().position(|s| *s == step) >= STEPS.iter().position(|s| *s == "ref");
        assert_eq!(
            lab.git(&["rev-parse", "HEAD"]) != head,
            passed_the_point,
            "{step}"
        );
        match passed_the_point {
            true => lab.assert_landed(step),
            false => {
                assert_eq!(lab.read("a"), "old\n", "{step}");
                assert_eq!(
                    (lab.read("turns"), lab.read("gone")),
                    ("t\n".into(), "x\n".into()),
                    "{step}"
                );
                assert!(!lab.repo().join("new").exists(), "{step}");
                lab.assert_tidy(step);
                // And it can land after that.
                lab.land().unwrap().settled().unwrap();
                lab.assert_landed(step);
            }
        }
        assert!(lab.recover().is_empty(), "{step}: once is enough");
    }
}

#[test]
fn a_killed_branch_is_there_or_not() {
    for step in ["journal", "objects", "room gone", "ended"] {
        let lab = Lab::new();
        let work = lab.work_bytes();
        assert!(killed(&lab, Way::Branch, step), "{step}");
        lab.recover();
        let name = format!("refs/heads/cto/{RUN}");
        let there = !lab.git(&["for-each-ref", &name]).is_empty();
        assert_eq!(there, step != "journal" && step != "objects", "{step}");
        assert_eq!(lab.work_bytes(), work, "{step}");
        lab.assert_tidy(step);
    }
}

/// The owner goes on before anything was recovered: what they did is theirs.
#[test]
fn work_between_a_kill_and_its_recovery_is_left_alone() {
    for step in ["one path", "paths", "index", "ref"] {
        let lab = Lab::new();
        assert!(killed(&lab, Way::Merge, step));
        lab.write("a", "typed after the crash\n");
        let recovered = lab.recover();
        assert_eq!(recovered.len(), 1, "{step}");
        assert_eq!(lab.read("a"), "typed after the crash\n", "{step}");
        assert!(!lab.repo().join(".git/index.lock").exists(), "{step}");
    }
    // Another git's lock is never removed, and while it is there nothing is done.
    let lab = Lab::new();
    assert!(killed(&lab, Way::Merge, "paths"));
    lab.write(".git/index.lock", "another git's");
    fs::remove_file(lab.repo().join(".git/index.lock")).unwrap();
    lab.write(".git/index.lock", "another git's");
    let before = lab.work_bytes();
    assert!(matches!(
        lab.recover()[0].result,
        Err(recover::RecoverError::Wait)
    ));
    assert_eq!(
        (lab.work_bytes(), lab.read(".git/index.lock")),
        (before, "another git's".into())
    );
    fs::remove_file(lab.repo().join(".git/index.lock")).unwrap();
    assert!(matches!(lab.recover()[0].result, Ok(End::Undone)));
    assert_eq!(
        (lab.read("a"), lab.git(&["status", "--porcelain"])),
        ("old\n".into(), String::new())
    );
}

#[test]
fn what_changes_between_the_look_and_the_landing_is_seen_under_the_lock() {
    let rows: [(&str, Make); 6] = [
        ("a commit", |lab| {
            lab.write("later", "x\n");
            lab.git(&["add", "later"]);
            lab.git(&["commit", "-q", "-m", "later"]);
        }),
        ("a dirty file", |lab| lab.write("a", "typed just now\n")),
        ("another branch", |lab| {
            drop(lab.git(&["checkout", "-q", "-b", "work"]))
        }),
        ("a link", |lab| {
            fs::rename(lab.repo().join("src"), lab.repo().join("real")).unwrap();
            symlink("real", lab.repo().join("src")).unwrap();
        }),
        ("attributes", |lab| {
            lab.write(".git/info/attributes", "a filter=evil\n")
        }),
        ("another git", |lab| lab.write(".git/index.lock", "")),
    ];
    for (name, make) in rows {
        let lab = Lab::new();
        let ready = lab.prepare().unwrap();
        make(&lab);
        let before = lab.bytes();
        let ended = ready.land(&Cancel::never().unwrap());
        assert!(
            matches!(ended, Err(LandingError::Moved)),
            "{name}: {ended:?}"
        );
        assert_eq!(lab.bytes(), before, "{name}");
        assert!(lab.recover().is_empty(), "{name}");
    }
    // The branch alone, which needs no index lock.
    let lab = Lab::new();
    let ready = lab.prepare().unwrap();
    let other = lab.git(&["commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}"]);
    lab.git(&["update-ref", "refs/heads/main", &other]);
    let before = lab.work_bytes();
    let ended = ready.land(&Cancel::never().unwrap());
    assert!(matches!(ended, Err(LandingError::Git(_))), "{ended:?}");
    assert_eq!(lab.git(&["rev-parse", "main"]), other);
    assert_eq!(lab.work_bytes(), before);
    lab.assert_tidy("a branch that moved");
}

#[test]
fn no_hook_and_no_filter_runs_and_other_work_stays() {
    let lab = Lab::new();
    let hooks = lab.repo().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "post-merge",
    ] {
        fs::write(
            hooks.join(hook),
            "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\n",
        )
        .unwrap();
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let monitor = lab.dir.join("monitor");
    fs::write(
        &monitor,
        format!("#!/bin/sh\ntouch {}/ran\n", lab.repo().display()),
    )
    .unwrap();
    fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
    lab.write("other", "stashed\n");
    lab.git(&["stash", "-q"]);
    lab.write("staged", "staged\n");
    lab.git(&["add", "staged"]);
    lab.write("other", "uncommitted\n");
    let stash = lab.git(&["stash", "list"]);
    fs::remove_file(lab.repo().join("ran")).ok();
    lab.git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
    lab.git(&["config", "filter.evil.smudge", "touch ran; cat"]);
    fs::remove_file(lab.repo().join("ran")).ok();
    lab.land().unwrap().settled().unwrap();
    assert!(!lab.repo().join("ran").exists());
    lab.git(&["config", "--unset", "core.fsmonitor"]);
    assert_eq!(lab.git(&["stash", "list"]), stash);
    assert_eq!(lab.git(&["status", "--porcelain"]), " M other\nA  staged");
    assert_eq!(
        lab.git(&["show", "--format=", "--name-only", "HEAD"])
            .lines()
            .count(),
        7
    );
}

#[test]
fn kinds_of_repositories_that_people_have() {
    let clone = |words: &'static [&'static str]| {
        move || {
            let origin = Lab::new();
            let url = format!("file://{}", origin.repo().display());
            fs::rename(origin.repo(), origin.dir.join("origin")).unwrap();
            let url = url.replace("/repo", "/origin");
            git_in(
                &origin.dir,
                &[&["clone", "-q"], words, &[&url, "repo"]].concat(),
            );
            origin
        }
    };
    let configured = |pairs: &'static [(&'static str, &'static str)]| {
        move || {
            let lab = Lab::new();
            for (name, value) in pairs {
                lab.git(&["config", name, value]);
            }
            lab
        }
    };
    let kinds: [(&str, Box<dyn Fn() -> Lab>); 8] = [
        (
            "sha256",
            Box::new(|| Lab::with(&["-b", "main", "--object-format=sha256"])),
        ),
        ("shallow", Box::new(clone(&["--depth=1"]))),
        ("alternates", Box::new(clone(&["--shared", "--no-local"]))),
        ("modes", Box::new(configured(&[("core.fileMode", "false")]))),
        (
            "split index",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["update-index", "--split-index"]);
                lab
            }),
        ),
        (
            "index of version 4",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["update-index", "--index-version", "4"]);
                lab
            }),
        ),
        (
            "read-only",
            Box::new(|| {
                let lab = Lab::new();
                fs::set_permissions(lab.repo().join("a"), fs::Permissions::from_mode(0o444))
                    .unwrap();
                lab
            }),
        ),
        (
            "packed",
            Box::new(|| {
                let lab = Lab::new();
                lab.git(&["gc", "-q"]);
                lab
            }),
        ),
    ];
    for (name, make) in kinds {
        let lab = make();
        let landed = lab
            .land()
            .unwrap_or_else(|error| panic!("{name}: {error} {error:?}"));
        landed.settled().unwrap();
        lab.assert_landed(name);
        lab.git(&["gc", "-q", "--prune=now"]);
        assert_eq!(
            lab.git(&["log", "-1", "--format=%s"]),
            "Make it right",
            "{name}"
        );
    }
}

/// Line ends as the owner's git has them, in the work tree and in the commit.
#[test]
fn line_ends_are_the_owners() {
    let lab = Lab::new();
    lab.git(&["config", "core.autocrlf", "true"]);
    for name in ["a", "gone", "other", "turns", "src/deep/b"] {
        fs::remove_file(lab.repo().join(name)).unwrap();
    }
    lab.git(&["checkout", "-q", "."]);
    assert_eq!(lab.read("a"), "old\r\n");
    lab.land().unwrap().settled().unwrap();
    assert_eq!(
        (lab.read("a"), lab.git(&["show", "HEAD:a"])),
        ("new\r\n".into(), "new".into())
    );
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    lab.assert_tidy("line ends");
}

#[test]
fn a_linked_work_tree_has_its_own_lock_and_index() {
    let lab = Lab::new();
    lab.git(&["branch", "work"]);
    lab.git(&["worktree", "add", "-q", "../linked", "work"]);
    let main = lab.work_bytes();
    let linked: &'static Path = Box::leak(lab.dir.join("linked").into_boxed_path());
    lab.land_as(|order| order.repository = linked)
        .unwrap()
        .settled()
        .unwrap();
    assert_eq!(lab.work_bytes(), main);
    assert_eq!(git_in(linked, &["status", "--porcelain"]), "");
    assert_eq!(
        git_in(linked, &["log", "-1", "--format=%s"]),
        "Make it right"
    );
    assert_eq!(lab.git(&["log", "-1", "--format=%s", "main"]), "start");
    lab.assert_tidy("linked");
}

#[test]
fn a_submodule_elsewhere_stays_and_one_on_the_way_is_refused() {
    let lab = Lab::new();
    let other = lab.dir.join("other");
    fs::create_dir(&other).unwrap();
    git_in(&other, &["init", "-q"]);
    git_in(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let url = other.to_str().unwrap();
    lab.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "module",
    ]);
    lab.git(&["commit", "-q", "-m", "module"]);
    lab.land().unwrap().settled().unwrap();
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    let inside = lab.land_as(|order| {
        if let Change::Patch { paths, .. } = &mut order.change {
            *paths = [TreePath::new("module/x")].into();
        }
    });
    assert!(
        matches!(
            inside,
            Err(LandingError::Refused(_) | LandingError::Changed(_))
        ),
        "{inside:?}"
    );
}

#[test]
fn a_commit_is_taken_back_by_another() {
    let lab = Lab::new();
    let landed = lab.land().unwrap();
    let commit = landed.commit.clone();
    landed.settled().unwrap();
    lab.write("later", "x\n");
    lab.git(&["add", "later"]);
    lab.git(&["commit", "-q", "-m", "later"]);
    let undo = |order: &mut Order<'_>| {
        order.words = "Take it back";
    };
    let back = lab.with_order(undo, |order| {
        let order = Order {
            change: Change::Undo { commit: &commit },
            users_home: None,
            author: Who::harness(),
            committer: Who::harness(),
            ..*order
        };
        land(&order, &Cancel::never().unwrap())
    });
    back.unwrap().settled().unwrap();
    assert_eq!(
        (lab.read("a"), lab.read("turns"), lab.read("later")),
        ("old\n".into(), "t\n".into(), "x\n".into())
    );
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert!(
        lab.git(&["log", "-1", "--format=%(trailers)"])
            .contains(&format!("Cto-Reverts: {commit}"))
    );
    assert_eq!(lab.git(&["diff", "--name-only", "HEAD~3", "HEAD"]), "later");
    lab.assert_tidy("reverted");
}

/// Of two at once one lands.
#[test]
fn only_one_cto_is_at_work_in_a_repository() {
    let lab = Lab::new();
    let ready = lab.prepare().unwrap();
    assert!(matches!(lab.prepare(), Err(LandingError::Busy)));
    ready
        .land(&Cancel::never().unwrap())
        .unwrap()
        .settled()
        .unwrap();
    lab.assert_landed("after the other");
}

#[test]
fn a_landing_that_awaits_its_settlement_is_known_after_a_crash() {
    let lab = Lab::new();
    let run: RunId = RUN.parse().unwrap();
    let landed = lab.land_as(|order| order.awaits_settlement = true).unwrap();
    let commit = landed.commit.clone();
    drop(landed);
    assert!(lab.recover().is_empty());
    let mut waiting = recover::of_run(&lab.home(), &run);
    assert_eq!(
        (waiting.len(), &waiting[0].commit, waiting[0].end),
        (1, &commit, End::Landed)
    );
    waiting.remove(0).settled().unwrap();
    assert!(recover::of_run(&lab.home(), &run).is_empty());
    lab.assert_landed("settled later");
}

#[test]
fn asked_to_stop_it_leaves_everything_as_it_was() {
    let lab = Lab::new();
    let (before, cancel) = (lab.bytes(), Cancel::never().unwrap());
    cancel.pretend(2).unwrap();
    let ended = lab.with_order(|_| {}, |order| land(order, &cancel));
    assert!(matches!(ended, Err(LandingError::Interrupted)), "{ended:?}");
    assert_eq!(lab.bytes(), before);
    lab.assert_tidy("stopped");
}

#[test]
fn a_journal_that_is_none_is_said_and_left() {
    let lab = Lab::new();
    lab.home().create().unwrap();
    host::make_private_dir(&lab.home().journal()).unwrap();
    fs::write(lab.home().journal().join("x.json"), "{}").unwrap();
    let found = lab.recover();
    assert!(matches!(
        found[0].result,
        Err(recover::RecoverError::Journal(_))
    ));
    assert!(lab.home().journal().join("x.json").exists());
}
