//! What came with a repository for agents, or by the name of a secret, is hidden however much may
//! be changed: in files, in the objects of the engine's own git, and in what the bundle keeps. As
//! root and as an ordinary user, as a copy and as an overlay.

use std::os::unix::fs::symlink;

use cto_testkit::{Answer, Bundle, Case, House, Repo, script, shell, write};
use serde_json::json;

use super::strict::{ATTEMPT, run, said};
use crate::fixtures::people::people;
use crate::house;

/// What no engine may read. Steps spell it in two halves, so that it is found only where it leaked.
const SECRET: &str = "hush-0451";

/// Looks everywhere an engine can look, and works with git as an honest one does.
const LOOK: &str = r#"
w='hush''-0451'
echo "files: $(grep -rlsa "$w" . /scratch /tmp 2> /dev/null | wc -l)"
echo "objects: $(git cat-file --batch-all-objects --batch 2> /dev/null | grep -ac "$w")"
for o in HEAD:.env :.env HEAD:sub/.ENV HEAD:.pi/settings.json HEAD:secrets/prod.json; do
  if git show "$o" 2> /dev/null | grep -qa "$w"; then echo "READ $o"; fi
done
echo "fsck: $(git fsck --full 2>&1 | grep -cv '^notice\|^dangling')"
echo "other: $(git log --all --oneline | wc -l) $(git reflog | wc -l) $(ls .git/objects/info | wc -l)"
git update-index -q --refresh; git diff-files --quiet && git diff --quiet HEAD && echo "diff: clean"
echo "status: [$(git status --porcelain)]"
printf 'right\n' > answer.txt
git stash -q && git stash pop -q && git add -A && git commit -qm work && git status --porcelain
echo "committed: $(git show --stat --format= HEAD | grep -c '|')"
"#;

const CLEAN: [&str; 7] = [
    "files: 0",
    "objects: 0",
    "fsck: 0",
    "other: 1 0 0",
    "diff: clean",
    "status: []",
    "committed: 1",
];

fn assert_hidden(bundle: &Bundle, who: &str) {
    let log = said(bundle);
    let errors = bundle.text("backend/stderr.log");
    for line in CLEAN {
        assert!(log.contains(line), "{who}: no {line:?} in\n{log}\n{errors}");
    }
    assert!(!log.contains("READ"), "{who}: {log}");
    assert_eq!(
        bundle.anywhere(SECRET),
        Vec::<String>::new(),
        "{who}: in the bundle"
    );
    assert_eq!(bundle.status(), "pass", "{who}: {:?}", bundle.codes());
    assert_eq!(bundle.changed_files(), ["answer.txt"], "{who}");
}

fn telling() -> Case {
    Case::new("telling")
        .file("workspace/.env", SECRET)
        .file("workspace/sub/.ENV", SECRET)
        .file("workspace/sub/.env.local", SECRET)
        .file("workspace/sub/plain.txt", "plain\n")
        .file("workspace/.pi/settings.json", SECRET)
        .file("workspace/secrets/prod.json", SECRET)
        .file("workspace/.env.example", "TOKEN=\n")
        .file("workspace/lib/credentials/store.py", "pass\n")
        .file("workspace/lib/credentials/list.html", "x\n")
        .file("workspace/lib/credentials/live.key", SECRET)
        .file("workspace/lib/credentials/live/prod", SECRET)
        .file("workspace/.ssh/gen.py", SECRET)
        .file("workspace/prod.env", SECRET)
}

const TOLD: [&str; 9] = [
    ".env",
    ".pi",
    ".ssh",
    "lib/credentials/live",
    "lib/credentials/live.key",
    "prod.env",
    "secrets",
    "sub/.ENV",
    "sub/.env.local",
];
const SOURCE: [&str; 2] = ["lib/credentials/list.html", "lib/credentials/store.py"];

#[test]
fn however_much_may_be_changed_secrets_and_orders_are_hidden() {
    let shown = "cat .env.example lib/credentials/store.py lib/credentials/list.html sub/plain.txt | tr '\\n' ' '; echo";
    for person in people() {
        for allowed in [
            "[\"*\", \"*/\"]",
            "[\"*\", \"sub/\", \".pi*/\", \".env*\"]",
            "[\"answer.txt\", \"*/\"]",
        ] {
            for how in ["strict", "contained"] {
                let who = format!("{} {allowed} {how}", person.name);
                let text = script(&[shell(LOOK), shell(shown)]);
                let case = telling().allowed(allowed);
                let bundle = run(&person, &case, &text, &["--contain", how]);
                assert_hidden(&bundle, &who);
                assert!(said(&bundle).contains("TOKEN= pass x plain"), "{who}");
                let guard = &bundle.report()["workspace_guard"];
                assert_eq!(
                    (&guard["masked"], &guard["shown"]),
                    (&json!(TOLD), &json!(SOURCE)),
                    "{who}"
                );
            }
        }
    }
}

#[test]
fn a_directory_around_a_secret_cannot_carry_it_into_the_patch() {
    let moves = r#"attempt mv sub elsewhere
attempt python3 -c 'import os; os.rename("sub", "elsewhere")'
attempt mv .pi other
attempt mv secrets other
attempt ln sub/.ENV linked.txt
attempt cp --reflink=always .env copied.txt
attempt git mv -f sub moved
attempt umount .env
attempt rm -f .env sub/.ENV
attempt sh -c 'echo x > .pi/new.json'
attempt sh -c 'echo x > secrets/new.json'
git checkout -q -f HEAD -- . 2> /dev/null; rm -rf elsewhere moved other linked.txt copied.txt
echo TRIED"#;
    for person in people() {
        for how in ["strict", "contained"] {
            let case = telling().allowed("[\"*\", \"*/\"]");
            let text = script(&[
                shell(&format!("{ATTEMPT}{moves}")),
                write("answer.txt", "right\n"),
            ]);
            let bundle = run(&person, &case, &text, &["--contain", how]);
            let (who, log) = (format!("{} {how}", person.name), said(&bundle));
            assert!(log.contains("TRIED"), "{who}: {log}");
            assert!(!log.contains("GOT THROUGH: mv sub"), "{who}: {log}");
            assert_eq!(
                log.matches("GOT THROUGH: python3").count(),
                0,
                "{who}: {log}"
            );
            assert_eq!(
                log.matches("refused: sh -c").count(),
                2,
                "no file is made where it would not be seen: {who}: {log}"
            );
            assert_eq!(
                bundle.anywhere(SECRET),
                Vec::<String>::new(),
                "{who}: {log}"
            );
            let text = bundle.text("patch.diff");
            assert!(
                !text.contains(".env") && !text.contains(".pi"),
                "{who}: {text}"
            );
        }
    }
}

#[test]
fn a_name_that_is_spelled_out_is_shown_and_said() {
    for person in people() {
        let case = telling()
            .allowed("[\"answer.txt\", \"sub/.ENV\", \".pi/\"]")
            .file("workspace/.gitignore", "local.json\n")
            .file("workspace/.pi/more.json", "more\n");
        let look = "cut -c 6- sub/.ENV; echo; git show HEAD:sub/.ENV | cut -c 6-; cat .pi/more.json; cat .env secrets/prod.json 2> /dev/null | wc -c
echo new > .pi/local.json; echo TOKEN > sub/.ENV; git status --porcelain";
        let text = script(&[shell(look), write("answer.txt", "right\n")]);
        let bundle = run(&person, &case, &text, &[]);
        let (log, who) = (said(&bundle), person.name);
        assert_eq!(log.matches("0451").count(), 2, "{who}: {log}");
        assert!(
            log.contains("more\n0\n") && log.contains(" M sub/.ENV"),
            "{who}: {log}"
        );
        let guard = &bundle.report()["workspace_guard"];
        let shown = [".pi", SOURCE[0], SOURCE[1], "sub/.ENV"];
        assert_eq!(guard["shown"], json!(shown), "{who}");
        let masked: Vec<&str> = TOLD
            .into_iter()
            .filter(|place| !shown.contains(place))
            .collect();
        assert_eq!(guard["masked"], json!(masked), "{who}");
        assert_eq!(
            bundle.changed_files(),
            [".pi/local.json", "answer.txt", "sub/.ENV"],
            "{who}: ignored or not, what is new there is in the patch"
        );
        let shown = person.cto(&["show", &bundle.run_id()]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let visible = shown
            .lines()
            .find(|line| line.trim_start().starts_with("visible"));
        assert!(
            visible.is_some_and(|line| line
                .contains(".pi, lib/credentials/list.html, lib/credentials/store.py, sub/.ENV")),
            "{who}: {shown}"
        );
    }
}

fn try_it(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Answer, Bundle) {
    house.try_on(repo, &script(steps), more)
}

fn telling_repo(house: &House) -> Repo {
    let repo = Repo::new(house, "telling");
    repo.write("answer.txt", "wrong\n");
    for name in [
        ".env",
        "sub/.ENV",
        "sub/deep/.env.production",
        ".pi/settings.json",
        "secrets/prod.json",
    ] {
        repo.write(name, SECRET);
    }
    repo.write("sub/plain.txt", "plain\n");
    repo.write(".env.example", "TOKEN=\n");
    symlink("answer.txt", repo.at(".envrc")).unwrap();
    symlink("sub", repo.at(".claude")).unwrap();
    symlink(".env", repo.at("alias.txt")).unwrap();
    repo.commit("start");
    repo
}

/// How the workspace was made, by the trace.
fn made(bundle: &Bundle) -> String {
    let lines = bundle.lines("trace.jsonl");
    let line = lines
        .iter()
        .find(|line| line["action"] == "workspace.prepare");
    line.unwrap()["detail"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn everything_allowed_on_the_command_line_hides_no_less() {
    for kind in ["overlay", "copy"] {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = telling_repo(&house);
        for allow in [
            &["--allow", "."][..],
            &["--allow", "./"],
            &["--allow", "*"],
            &[
                "--allow",
                "answer.txt",
                "--allow",
                "sub",
                "--allow",
                ".env*",
            ],
            &["--allow", ".", "--contain", "contained"],
        ] {
            let links =
                "cat .envrc alias.txt | wc -c; test -L .claude && echo LINK; ls -a sub | wc -l";
            let (answer, bundle) = try_it(&house, &repo, &[shell(LOOK), shell(links)], allow);
            let who = format!("{kind} {allow:?} {answer:?}");
            assert_hidden(&bundle, &who);
            assert!(said(&bundle).contains("\n0\n"), "{who}: {}", said(&bundle));
            assert!(!said(&bundle).contains("LINK"), "{who}");
            assert_eq!(
                bundle.report()["workspace_guard"]["masked"],
                json!([
                    ".claude",
                    ".env",
                    ".envrc",
                    ".pi",
                    "secrets",
                    "sub/.ENV",
                    "sub/deep/.env.production"
                ]),
                "{who}"
            );
        }
        let refused = house.cto(&[
            "try",
            "--repo",
            repo.path(),
            "--task",
            "x",
            "--test",
            "true",
            "--allow",
            "**",
        ]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

#[test]
fn a_kept_checkout_is_used_only_with_the_masks_it_was_made_for() {
    let house = house().with("CTO_TEST_WORKSPACE", "overlay");
    let repo = telling_repo(&house);
    let reads = "cut -c 6- .env; git show HEAD:.env | cut -c 6-; printf 'right\\n' > answer.txt";
    let named = ["--allow", ".", "--allow", ".env"];
    for (allow, how, reading) in [
        (&named[..], "overlay, checkout made", true),
        (&["--allow", "."], "overlay, checkout made", false),
        (&named, "overlay, checkout known", true),
        (&["--allow", "answer.txt"], "overlay, checkout known", false),
    ] {
        let step = if reading { reads } else { LOOK };
        let (answer, bundle) = try_it(&house, &repo, &[shell(step)], allow);
        assert_eq!(made(&bundle), how, "{allow:?} {answer:?}");
        match reading {
            true => assert_eq!(said(&bundle).matches("0451").count(), 2, "{allow:?}"),
            false => assert_hidden(&bundle, &format!("{allow:?}")),
        }
    }
}

#[test]
fn a_pipe_a_socket_or_a_device_where_changes_are_allowed_never_passes() {
    let socket = "python3 -c \"import socket; socket.socket(1).bind('docs/left')\"";
    for kind in ["overlay", "copy"] {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = Repo::new(&house, "odd");
        repo.write("answer.txt", "wrong\n");
        repo.write("docs/a.txt", "a\n");
        repo.write(".gitignore", "*.log\n");
        repo.commit("start");
        for odd in [
            "mkfifo docs/left",
            "mkfifo docs/left.log",
            socket,
            "rm docs/a.txt; mkfifo docs/a.txt",
            "rm -r docs; mkfifo docs",
            "mkfifo docs/left && ln docs/left docs/again",
        ] {
            let steps = [write("answer.txt", "right\n"), shell(odd)];
            let (answer, bundle) = try_it(&house, &repo, &steps, &["--allow", "."]);
            let codes = bundle.codes();
            assert_eq!(codes, ["dirty_ending_tree"], "{kind}: {odd}: {answer:?}");
        }
        // Where the kernel lets a process make one, a device that says "gone" is no deletion.
        let device = "mknod docs/gone c 0 0 || mkfifo docs/gone";
        let steps = [write("answer.txt", "right\n"), shell(device)];
        let (_, bundle) = try_it(&house, &repo, &steps, &["--allow", "."]);
        assert_eq!(bundle.codes(), ["dirty_ending_tree"], "{kind}");
    }
}

#[test]
fn setup_gives_no_orders_to_the_engine() {
    for person in people() {
        for (makes, blocked) in [
            ("mkdir .claude && echo x > .claude/settings.json", true),
            ("echo x > .mcp.json", true),
            (
                "mkdir -p dep/.claude && echo x > dep/.claude/settings.json",
                false,
            ),
            ("echo x > .env.local", false),
        ] {
            let case = Case::new("ordered")
                .file("workspace/.gitignore", ".claude/\n.mcp.json\n.env.local\n")
                .extra(&format!("setup = [{makes:?}]"));
            let text = script(&[write("answer.txt", "right\n")]);
            let bundle = run(&person, &case, &text, &[]);
            let (status, codes) = (bundle.status(), bundle.codes());
            let want = if blocked { "blocked" } else { "pass" };
            assert_eq!(status, want, "{}: {makes}: {codes:?}", person.name);
            assert_eq!(bundle.has_code("toolchain_unavailable"), blocked, "{makes}");
        }
    }
}

#[test]
fn an_input_is_not_put_where_the_engine_is_shown_nothing() {
    let house = house();
    let repo = telling_repo(&house);
    repo.write(".git/info/exclude", ".pi/local.json\nsub/.env.local\n");
    repo.write(".pi/local.json", "local\n");
    repo.write("sub/.env.local", "local\n");
    let input = |path: &str| {
        let steps = [shell(
            "cat .pi/local.json sub/.env.local; printf 'right\\n' > answer.txt",
        )];
        try_it(&house, &repo, &steps, &["--allow", ".", "--input", path])
    };
    let (answer, bundle) = input(".pi/local.json");
    assert_eq!(bundle.status(), "blocked", "{answer:?}");
    assert!(
        bundle
            .text("report.json")
            .contains("which the engine is not shown"),
        "{answer:?}"
    );
    // Beside what is masked it stands as it was asked for, and the verdict says so.
    let (answer, bundle) = input("sub/.env.local");
    assert!(said(&bundle).contains("local"), "{answer:?}");
    assert_eq!(
        bundle.report()["workspace_guard"]["shown"],
        json!(["sub/.env.local"])
    );
}

#[test]
fn beyond_the_mount_cap_secrets_stay_hidden() {
    let state = tempfile::tempdir_in("/dev/shm").unwrap();
    let house = house().with("CTO_STATE_DIR", state.path().to_str().unwrap());
    let mut case = telling();
    for number in 0..4097 {
        case = case.file(&format!("workspace/wide/f{number}"), "x");
    }
    let case = case.allowed("[\"answer.txt\", \"wide/new.txt\"]");
    let (_, bundle) = house.run(&house.case(&case), &script(&[shell(LOOK)]), &[]);
    assert_hidden(&bundle, "wide");
    assert_eq!(bundle.report()["containment"], "contained");
    assert_eq!(bundle.report()["workspace_guard"]["masked"], json!(TOLD));
}
