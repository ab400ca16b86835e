//! `--contain strict`: what exists outside the allowed paths cannot be changed at all, ordinary
//! work can be done, and what came with the repository for agents is not shown. As root and as an
//! ordinary user.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{Bundle, Case, House, Repo, script, shell, write};
use serde_json::json;

use crate::fixtures::people::{Person, people};
use crate::house;

/// Says of each attempt whether it got through.
pub(super) const ATTEMPT: &str = "attempt() { if \"$@\" >/dev/null 2>&1; then echo \"GOT THROUGH: $*\"; else echo \"refused: $*\"; fi; }\n";

/// A case with siblings at every level of the allowed file `src/app/main.txt`.
fn case() -> Case {
    Case::new("guarded")
        .allowed("[\"answer.txt\", \"src/app/main.txt\", \"docs/\"]")
        .file("workspace/src/app/main.txt", "main\n")
        .file("workspace/src/app/other.txt", "other\n")
        .file("workspace/src/app/sub/deep.txt", "deep\n")
        .file("workspace/src/lib.txt", "lib\n")
        .file("workspace/docs/guide.txt", "guide\n")
        .file("workspace/tests/check.txt", "check\n")
}

/// Runs a case with a script as this person.
pub(super) fn run(person: &Person, case: &Case, text: &str, more: &[&str]) -> Bundle {
    let dir = person.at("outside").join(&case.name);
    let _ = fs::remove_dir_all(&dir);
    case.write(&dir);
    let file = person.at("outside/script.toml");
    fs::write(&file, text).unwrap();
    let mut args = vec![
        "run",
        dir.to_str().unwrap(),
        "--script",
        file.to_str().unwrap(),
        "--json",
    ];
    args.extend(more);
    let output = person.cto(&args);
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "{}: {error}: {}",
                person.name,
                String::from_utf8_lossy(&output.stderr)
            )
        });
    Bundle::at(PathBuf::from(answer["bundle"].as_str().unwrap()))
}

/// What the engine's commands printed, without the engine's own lines.
pub(super) fn said(bundle: &Bundle) -> String {
    bundle
        .text("backend/stdout.log")
        .lines()
        .filter(|line| !line.starts_with('{'))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn what_exists_outside_the_allowed_paths_cannot_be_changed() {
    for person in people() {
        let attempts: Vec<String> = [
            "keep.txt",
            "src/lib.txt",
            "src/app/other.txt",
            "src/app/sub/deep.txt",
            "tests/check.txt",
        ]
        .iter()
        .flat_map(|path| {
            [
                format!("attempt sh -c 'echo x >> {path}'"),
                format!("attempt sh -c ': > {path}'"),
                format!("attempt rm -f {path}"),
                format!("attempt rename {path} moved"),
                format!("attempt sh -c 'echo x > new.tmp && mv -f new.tmp {path}'"),
                format!("attempt chmod 600 {path}"),
                format!("attempt touch -d 2001-01-01 {path}"),
                format!("attempt ln {path} hard.tmp"),
                format!("attempt ln -sf /etc/hostname {path}"),
                format!(
                    "attempt python3 -c 'import os; os.setxattr(\"{path}\", \"user.a\", b\"b\")'"
                ),
                format!("attempt python3 -c 'import os; os.truncate(\"{path}\", 0)'"),
            ]
        })
        .chain(
            ["src", "src/app", "src/app/sub", "tests", ".git"]
                .iter()
                .flat_map(|dir| {
                    [
                        format!("attempt rename {dir} away"),
                        format!("attempt rmdir {dir}"),
                    ]
                }),
        )
        .chain(
            [
                "rename ../workspace ../gone",
                "umount src/app/other.txt",
                "rm -rf tests",
                "rm -rf src/app/sub",
            ]
            .map(|it| format!("attempt {it}")),
        )
        .collect();
        let text = script(&[
            shell(&format!("{ATTEMPT}{}", attempts.join("\n"))),
            write("answer.txt", "right\n"),
        ]);
        let bundle = run(&person, &case(), &text, &[]);
        let said = said(&bundle);
        assert!(!said.contains("GOT THROUGH"), "{}: {said}", person.name);
        assert_eq!(
            said.matches("refused: ").count(),
            attempts.len(),
            "{}: {said}",
            person.name
        );
        assert_eq!(
            (bundle.status(), bundle.changed_files()),
            ("pass".to_owned(), vec!["answer.txt".to_owned()]),
            "{}",
            person.name
        );
        assert_eq!(bundle.report()["containment"], "strict");
        let shown = bundle.json("containment.json");
        assert_eq!(
            (&shown["asked"], &shown["enforced"]),
            (&json!("strict"), &json!("strict"))
        );
        let guard = &shown["processes"][0]["jail"]["guard"];
        assert!(
            guard["asked"].as_u64().unwrap() > 10 && guard["asked"] == guard["held"],
            "{guard}"
        );
    }
}

#[test]
fn ordinary_work_on_allowed_paths_goes_on() {
    let work = r"set -e
sed -i s/main/changed/ src/app/main.txt
printf new > src/app/main.txt.tmp~ && mv src/app/main.txt.tmp~ src/app/main.txt
mkdir docs/new && printf n > docs/new/n.txt && mv docs/guide.txt docs/renamed.txt
mkdir cache && echo litter > cache/a && echo more > src/app/b.tmp
printf 'right\n' > answer.txt
git add -A && git commit -qm work && git stash list && git branch side && git log --oneline | wc -l
git commit --amend -qm again && git gc -q && git status --porcelain && git checkout -q side
git diff HEAD~1 --stat | tail -1
echo ALL DONE
";
    for person in people() {
        let bundle = run(&person, &case(), &script(&[shell(work)]), &[]);
        let log = said(&bundle);
        assert!(
            log.contains("ALL DONE"),
            "{}: {log}\n{}",
            person.name,
            bundle.text("backend/stderr.log")
        );
        assert_eq!(
            bundle.status(),
            "pass",
            "{}: {:?}",
            person.name,
            bundle.codes()
        );
        let want = [
            "answer.txt",
            "docs/guide.txt",
            "docs/new/n.txt",
            "docs/renamed.txt",
            "src/app/main.txt",
        ];
        assert_eq!(bundle.changed_files(), want);
        assert_eq!(bundle.report()["workspace_scratch"]["count"], 2);
    }
}

#[test]
fn a_new_name_beside_an_allowed_file_is_judged_afterwards() {
    for person in people() {
        let text = script(&[
            write("answer.txt", "right\n"),
            write("src/app/extra.txt", "x"),
        ]);
        let bundle = run(&person, &case(), &text, &[]);
        assert_eq!(
            bundle.codes(),
            ["disallowed_file_change"],
            "{}",
            person.name
        );
    }
}

#[test]
fn contained_leaves_the_copy_writable_and_judges_afterwards() {
    for person in people() {
        let text = script(&[
            write("answer.txt", "right\n"),
            write("keep.txt", "changed\n"),
        ]);
        let bundle = run(&person, &case(), &text, &["--contain", "contained"]);
        assert_eq!(
            bundle.codes(),
            ["disallowed_file_change"],
            "{}",
            person.name
        );
        assert_eq!(bundle.json("containment.json")["enforced"], "contained");
        assert_eq!(
            bundle.json("contract.json")["lane"]["containment"],
            "contained"
        );
    }
}

#[test]
fn what_of_git_would_run_code_is_protected_in_both_ways() {
    let attempts = [
        "sh -c 'echo x >> .git/config'",
        "git config core.hooksPath /tmp",
        "git config --local alias.x '!true'",
        "sh -c 'echo true > .git/hooks/pre-commit'",
        "mv .git/hooks .git/h",
        "rm -rf .git/hooks/.",
        "sh -c 'echo x > .git/info/attributes'",
        "sh -c 'echo x > .git/info/exclude'",
        "sh -c 'echo /tmp > .git/commondir'",
        "rm -f .git/commondir",
        "mv .git .git2",
        "sh -c 'rm -rf .git && echo gitdir: /tmp > .git'",
        "sh -c 'echo x > t.tmp && mv -f t.tmp .git/config'",
        "git config --worktree core.fsmonitor true",
        "chmod 777 .git/config",
    ];
    let lines: Vec<String> = attempts
        .iter()
        .map(|attempt| format!("attempt {attempt}"))
        .collect();
    for person in people() {
        for how in ["strict", "contained"] {
            let text = script(&[
                shell(&format!("{ATTEMPT}{}", lines.join("\n"))),
                write("answer.txt", "right\n"),
            ]);
            let bundle = run(&person, &case(), &text, &["--contain", how]);
            let said = said(&bundle);
            assert_eq!(
                said.matches("refused: ").count(),
                attempts.len(),
                "{} {how}: {said}",
                person.name
            );
        }
    }
}

#[test]
fn agent_configuration_of_the_repository_is_masked_and_named() {
    let case = || {
        case()
            .allowed("[\"answer.txt\", \".codex/own.toml\"]")
            .file("workspace/.mcp.json", "{\"evil\": 1}")
            .file("workspace/.claude/settings.json", "{\"hooks\": {}}")
            .file("workspace/.codex/own.toml", "own")
            .file("workspace/.vscode/tasks.json", "{}")
            .file("workspace/bunfig.toml", "preload = [\"./evil.ts\"]")
            .file(
                "workspace/src/.pi/settings.json",
                "{\"shellPath\": \"/tmp/evil\"}",
            )
    };
    let look = r#"for f in .mcp.json .vscode/tasks.json bunfig.toml; do printf '%s=%s;' "$f" "$(cat $f)"; done
printf 'claude=%s;pi=%s;codex=%s\n' "$(ls .claude)" "$(ls src/.pi)" "$(cat .codex/own.toml)"
echo "status=[$(git status --porcelain)]"
attempt sh -c 'echo {} > .mcp.json'
attempt rm -f bunfig.toml
attempt sh -c 'echo x > .claude/new'
"#;
    for person in people() {
        for how in ["strict", "contained"] {
            let text = script(&[
                shell(&format!("{ATTEMPT}{look}")),
                write("answer.txt", "right\n"),
            ]);
            let bundle = run(&person, &case(), &text, &["--contain", how]);
            let log = said(&bundle);
            assert!(
                log.contains(".mcp.json=;.vscode/tasks.json=;bunfig.toml=;claude=;pi=;codex=own"),
                "{}: {log}",
                person.name
            );
            assert!(
                log.contains("status=[]"),
                "its own git calls nothing deleted: {log}"
            );
            assert_eq!(log.matches("refused: ").count(), 3, "{log}");
            assert_eq!(
                (bundle.status(), bundle.changed_files()),
                ("pass".to_owned(), vec!["answer.txt".to_owned()])
            );
            let guard = &bundle.report()["workspace_guard"];
            let masked = json!([
                ".claude",
                ".mcp.json",
                ".vscode/tasks.json",
                "bunfig.toml",
                "src/.pi"
            ]);
            assert_eq!(
                (&guard["masked"], &guard["shown"]),
                (&masked, &json!([".codex"]))
            );
            assert!(
                bundle
                    .text("report.md")
                    .contains("The engine was not shown `.claude`, `.mcp.json`")
            );
        }
    }
}

#[test]
fn beyond_the_mount_cap_the_plan_says_contained_everywhere() {
    // Thousands of files, four times over: in memory.
    let state = tempfile::tempdir_in("/dev/shm").unwrap();
    let house = house().with("CTO_STATE_DIR", state.path().to_str().unwrap());
    let mut case = Case::new("wide");
    for number in 0..4097 {
        case = case.file(&format!("workspace/wide/f{number}"), "x");
    }
    let case = case.allowed("[\"answer.txt\", \"wide/new.txt\"]");
    let dir = house.case(&case);
    let (_, bundle) = house.run(&dir, cto_testkit::ORACLE, &[]);
    let why = "strict would need 4101 mounts, at most 4096 are made";
    assert_eq!(
        (bundle.status(), &bundle.report()["containment"]),
        ("pass".to_owned(), &json!("contained"))
    );
    assert_eq!(
        bundle.json("contract.json")["lane"]["containment"],
        "contained"
    );
    assert!(
        bundle.event("plan.updated").unwrap()["summary"]
            .as_str()
            .unwrap()
            .contains(why)
    );
    assert_eq!(bundle.json("containment.json")["notes"], json!([why]));
    let shown = house.cto(&["show", &bundle.run_id()]);
    assert!(
        shown
            .stdout
            .lines()
            .next()
            .unwrap()
            .contains(&format!("containment contained ({why})")),
        "{}",
        shown.stdout
    );
}

#[test]
fn links_that_came_with_a_repository_are_kept_as_they_are() {
    let house: House = house();
    let repo = Repo::new(&house, "linked");
    repo.write("answer.txt", "wrong\n");
    repo.write("real/file.txt", "real\n");
    std::os::unix::fs::symlink("real/file.txt", repo.at("link.txt")).unwrap();
    std::os::unix::fs::symlink("real", repo.at("linkdir")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", repo.at("dangling")).unwrap();
    repo.commit("start");
    let attempts = "cat link.txt linkdir/file.txt
attempt rm -f link.txt
attempt ln -sfn /tmp link.txt
attempt mv linkdir elsewhere
attempt sh -c 'echo x > link.txt'
attempt sh -c 'echo x > linkdir/file.txt'
attempt sh -c 'echo x > t.tmp && mv -f t.tmp dangling'
";
    let text = script(&[
        shell(&format!("{ATTEMPT}{attempts}")),
        write("answer.txt", "right\n"),
        shell("rm -f t.tmp"),
    ]);
    let (_, bundle) = house.try_on(&repo, &text, &[]);
    let log = said(&bundle);
    assert!(
        log.matches("real\n").count() == 2 && !log.contains("GOT THROUGH"),
        "{log}"
    );
    assert_eq!(
        (log.matches("refused: ").count(), bundle.status()),
        (6, "pass".to_owned()),
        "{log} {:?}",
        bundle.codes()
    );
}
