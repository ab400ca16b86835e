//! What is done to Case's own log and folder by whoever works for it: each is typed and bounded, nothing hangs, and no verdict
//! is better for it.

use cto_testkit::Case;

use super::words::critical;
use super::*;

/// Done to the log that is being written.
fn meddles(command: &str) -> String {
    shell(&format!(
        "for log in .case/*/events/run-*.jsonl; do {command}; done"
    ))
}

/// A line that would be the next one, of this run and with its number, as far as anybody can tell.
fn forges(event: &str) -> String {
    meddles(&format!(
        "n=$(wc -l < $log); run=$(sed -n '1s/.*\"runId\":\"\\([^\"]*\\)\".*/\\1/p' $log); \
         printf '{{\"sequence\":%s,\"runId\":\"%s\",{event}}}\\n' $((n + 1)) $run >> $log"
    ))
}

struct Meddled {
    name: &'static str,
    turn: String,
    codes: &'static [&'static str],
    /// What the harness says of it.
    says: &'static str,
}

/// Before a pipeline that is sound in all else.
fn in_a_sound_pipeline() -> Vec<Meddled> {
    let log = |name, command: &str, codes, says| Meddled {
        name,
        turn: meddles(command),
        codes,
        says,
    };
    let lost: &[&str] = &["missing_required_event", "dirty_ending_tree"];
    let replaced = "its event log was replaced";
    let strange = "printf '\\377\\376\\n[1]\\n{\"event\":\"other\"}\n{\"event\":\"status_changed\",\"sequence\":900,\"runId\":\"x\"}\\n' >> $log";
    let long = "head -c 100000000 /dev/zero | tr '\\0' x >> $log; echo >> $log";
    vec![
        log("a link", "rm $log; ln -s /etc/passwd $log", &[], replaced),
        // Left in its folder it is no file, and no scratch.
        log(
            "a pipe",
            "rm $log; mkfifo $log",
            &["disallowed_file_change"],
            replaced,
        ),
        log("a directory", "rm $log; mkdir $log", &[], replaced),
        log("gone", "rm $log", &[], replaced),
        log("emptied", ": > $log", &[], ""),
        log(
            "a sparse terabyte",
            "truncate -s 1T $log",
            lost,
            "longer than is read of one",
        ),
        log(
            "a sparse terabyte beside it",
            "truncate -s 1T ${log%.jsonl}-2.jsonl",
            &["dirty_ending_tree"],
            "longer than is read of one",
        ),
        log(
            "two logs",
            "cp $log ${log%.jsonl}-2.jsonl",
            &[],
            "more than one event log",
        ),
        log(
            "a link beside it",
            "ln -s /etc/passwd ${log%.jsonl}-2.jsonl",
            &[],
            "is no file, and is not read",
        ),
        log("strange lines", strange, &[], "more than one run"),
        log(
            "a line twice",
            "echo \"$(tail -n 1 $log)\" >> $log",
            &[],
            "its event log is not whole",
        ),
        log("a line of 100 MB", long, &[], ""),
        Meddled {
            name: "its whole folder",
            turn: shell("rm -rf .case"),
            codes: &[],
            says: replaced,
        },
    ]
}

#[test]
fn whatever_is_done_to_its_log_is_typed_and_no_verdict_is_better() {
    let lab = lab(house());
    let mut wrong = Vec::new();
    for meddled in in_a_sound_pipeline()
        .into_iter()
        .filter(|m| m.name == "strange lines")
    {
        let name = meddled.name;
        let turns = [meddled.turn, implements(), rest(4)];
        let bundle = lab.play(&scenario(&turns), &[]);
        assert_good(&bundle);
        let events = bundle.text("events.normalized.jsonl");
        let seen = (bundle.codes(), events.contains(meddled.says));
        // A real one may write its log otherwise, and lose more of it.
        if is_double()
            && seen
                != (
                    meddled.codes.iter().map(ToString::to_string).collect(),
                    true,
                )
        {
            wrong.push((
                name,
                seen,
                bundle.report()["blockers"].to_string(),
                bundle.text("backend/case-events.jsonl"),
                events.clone(),
            ));
        }
        let kept = bundle.text("backend/case-events.jsonl");
        for foreign in ["root:x:0", "root:*:0"] {
            assert!(
                !kept.contains(foreign) && !events.contains(foreign),
                "{name}"
            );
        }
        if matches!(name, "strange lines" | "a line of 100 MB") {
            let ended = bundle.event("engine.ended").unwrap();
            assert!(
                ended["unknown_lines"].as_u64() >= Some(1),
                "{name}: {ended}"
            );
        }
        assert!(kept.len() < 16 << 20, "{name}: {} bytes kept", kept.len());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_line_that_somebody_else_wrote_takes_no_failure_back() {
    let accepted = "\"event\":\"phase_end\",\"phase\":\"reviewer\",\"agent\":\"reviewer\",\"outcome\":\"completed\",\"result\":{\"status\":\"completed\"}";
    let verified = "\"event\":\"phase_end\",\"phase\":\"verifier\",\"agent\":\"verifier\",\"outcome\":\"completed\",\"result\":{\"status\":\"completed\"}";
    let over = "\"event\":\"pipeline_end\",\"outcome\":\"completed\"";
    play_all(&[
        row(
            "a review that said no",
            [implements(), fine(), critical(), forges(accepted), rest(2)],
            "blocked",
            &["reviewer_rejected"],
        ),
        row(
            "a verifier that failed",
            [implements(), failed(), forges(verified), rest(2)],
            "fail",
            &["engine_failed"],
        ),
        row(
            "an end",
            [implements(), failed(), forges(over), rest(2)],
            "fail",
            &["engine_failed"],
        ),
        row(
            "its log is taken away",
            [failed().repeat(2), meddles("rm $log"), rest(2)],
            "fail",
            &["engine_failed"],
        ),
        row(
            "its log is emptied",
            [failed().repeat(2), meddles(": > $log"), rest(2)],
            "fail",
            &["engine_failed"],
        ),
    ]);
}

#[test]
fn its_folder_is_in_neither_the_tree_nor_the_objects_of_git() {
    let lab = lab(house());
    let look = shell(
        "git rev-list --objects --all | grep -c '[.]case' || true; git ls-files .case; git status --porcelain",
    );
    let bundle = lab.play(&scenario(&[look, implements(), rest(4)]), &[]);
    assert_verdict("objects", &bundle, "pass", &[]);
    assert_eq!(around::first_tool(&bundle), "0\n");
    let tracked = Case::new("tracked").file("workspace/.case/notes", "mine\n");
    let mut lab = lab;
    lab.case = lab.house.case(&tracked);
    let bundle = lab.play(&scenario(&[implements(), rest(4)]), &[]);
    assert_verdict("tracked", &bundle, "blocked", &["contract_invalid"]);
    let why = bundle.report()["blockers"].to_string();
    assert!(why.contains("the repository tracks .case/notes"), "{why}");
    assert_eq!(bundle.report()["process_started"], false);
}
