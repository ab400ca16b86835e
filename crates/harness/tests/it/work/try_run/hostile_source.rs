//! A repository that would run something, hang or fetch while it is copied.

use std::fs;

use cto_testkit::{Forged, Repo};

use super::{assert_refused, fix, try_with};
use crate::assert_bad;
use crate::house;

/// Everything in a repository that makes ordinary git run a program.
#[test]
fn nothing_of_the_repository_is_executed() {
    let house = house();
    let repo = Repo::new(&house, "hostile");
    let marker = house.root().join("ran");
    let trap = format!("touch {}", marker.display());
    repo.write(".gitattributes", "*.txt filter=trap diff=trap\n");
    repo.commit("attributes");
    for (key, value) in [
        ("filter.trap.clean", trap.as_str()),
        ("filter.trap.smudge", &trap),
        ("filter.trap.process", &trap),
        ("diff.trap.textconv", &trap),
        ("diff.external", &trap),
        ("core.fsmonitor", &trap),
        ("core.sshCommand", &trap),
        ("core.pager", &trap),
    ] {
        repo.git(&["config", key, value]);
    }
    for hook in [
        "post-checkout",
        "post-index-change",
        "pre-commit",
        "reference-transaction",
        "fsmonitor-watchman",
    ] {
        repo.program(
            &format!(".git/hooks/{hook}"),
            &format!("#!/bin/sh\n{trap}\n"),
        );
    }
    let before = repo.bytes();
    let (answer, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let applied = house.cto(&["apply", &bundle.run_id(), "--check"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(!marker.exists(), "a program of the repository ran");
    assert_eq!(repo.bytes(), before);
}

/// A partial clone asks its remote for what it lacks, by a program its configuration names.
#[test]
fn a_missing_object_is_not_fetched() {
    for kind in ["HEAD", "HEAD^{tree}"] {
        let house = house();
        let repo = Repo::new(&house, "partial");
        let marker = house.root().join("ran");
        repo.program(
            "../upload",
            &format!("#!/bin/sh\ntouch {}\nexit 1\n", marker.display()),
        );
        let id = repo.git(&["rev-parse", kind]);
        let upload = house.root().join("upload").display().to_string();
        for (key, value) in [
            ("core.repositoryformatversion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.url", "/nowhere"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.uploadpack", &upload),
        ] {
            repo.git(&["config", key, value]);
        }
        fs::remove_file(repo.at(format!(".git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
        assert_refused(&house, &repo, &[], "source_not_admitted");
        assert!(!marker.exists(), "{kind}: a program of the repository ran");
    }
}

#[test]
fn a_pipe_in_the_repository_does_not_hang() {
    let house = house();
    let repo = Repo::new(&house, "pipes");
    fs::remove_file(repo.at(".git/info/exclude")).unwrap_or_default();
    std::process::Command::new("mkfifo")
        .arg(repo.at(".git/info/exclude"))
        .status()
        .unwrap();
    let (answer, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["source_not_admitted".to_owned()]),
        "{answer:?}"
    );
}

#[test]
fn a_forged_source_is_noticed() {
    let house = house();
    let repo = Repo::new(&house, "forged");
    let (_, bundle) = try_with(&house, &repo, &fix(), &[]);
    let edits: [(&str, &str); 5] = [
        (
            "\"source_repository_mutated\": false",
            "\"source_repository_mutated\": true",
        ),
        (
            "\"source_repository_mutated\": false",
            "\"source_repository_mutated\": null",
        ),
        ("\"class\": \"owned_local\"", "\"class\": \"external\""),
        ("\"from_head\": false", "\"from_head\": true"),
        (
            "\"copied_fixture_start_clean\": true",
            "\"copied_fixture_start_clean\": false",
        ),
    ];
    for (from, to) in edits {
        let text = bundle.text("source.json");
        assert!(text.contains(from), "{from}");
        let forged = Forged::copy_of(&bundle);
        forged
            .put("source.json", text.replace(from, to).as_bytes())
            .reseal();
        assert_bad(&forged.bundle(), to);
    }
    let forged = Forged::copy_of(&bundle);
    forged.remove("source.json").edit_report(|report| {
        report["freshness"]["artifacts"]
            .as_object_mut()
            .unwrap()
            .remove("source.json");
    });
    forged.reseal();
    assert_bad(&forged.bundle(), "source.json removed");
}
