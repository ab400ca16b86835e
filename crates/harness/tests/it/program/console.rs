//! Every `console` block of README and docs, typed into a terminal and compared with what is shown.
//!
//! A page is one session in a fresh home. Each line after `$ ` is typed into a terminal of 100
//! columns, and the lines below it must come back. `sh` blocks run for what they leave behind. A
//! `toml` or `diff` block below a line that names a file (`` `greeting/case.toml`: ``) becomes that
//! file. What differs from run to run (ids, times, digests, the path of the home) is masked on both
//! sides. A line `…` stands for any number of lines, `…` inside a line for any text. `text` blocks
//! are figures, and what needs somebody's endpoint; nothing runs them.
//! `CTO_REWRITE_CONSOLE=1` puts what was printed into the blocks that have no `…`.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cto_testkit::{Answer, watch, without_styles};
use regex::Regex;
use tempfile::TempDir;

/// Pages with blocks to run, each a test of its own.
macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            play($page);
        })*
    };
}

pages! {
    the_readme: "README.md",
    bundle_format: "docs/bundle-format.md",
    cases: "docs/cases.md",
    engines: "docs/engines.md",
    evidence: "docs/evidence.md",
    failures: "docs/failures.md",
    jail: "docs/jail.md",
    settings: "docs/settings.md",
    trying: "docs/try.md",
}

/// `sh` blocks that no test runs: page, a word of the block, why.
const NOT_RUN: [(&str, &str, &str); 4] = [
    (
        "README.md",
        "scripts/demo",
        "builds the program, and runs this test among others",
    ),
    (
        "docs/engines/pi.md",
        "npm install",
        "needs a registry and somebody's endpoint",
    ),
    (
        "docs/engines/pi.md",
        "cto run --engine pi",
        "needs somebody's endpoint",
    ),
    (
        "docs/engines/pi.md",
        "cto try --engine pi",
        "needs somebody's endpoint",
    ),
];

/// Programs a `sh` block may need that are not asked of every machine; without them it is not run.
const OPTIONAL: [&str; 2] = ["jq", "openssl"];

/// How a block may begin. What is none of these would be run by nobody and seen by nobody.
const KINDS: [&str; 5] = ["console", "sh", "text", "toml", "diff"];

/// A fenced block of a page.
struct Block {
    kind: String,
    /// Where its first line is, counted from 0.
    first: usize,
    /// The file named just above it.
    file: Option<String>,
    lines: Vec<String>,
}

/// One command of a `console` block and what is shown below it.
struct Step {
    command: String,
    /// Lines of the page that hold the shown output, counted from 0.
    at: Range<usize>,
    shown: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = "";
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => (open, above) = (false, ""),
            Some(kind) => {
                let name = above
                    .strip_prefix('`')
                    .and_then(|text| text.strip_suffix("`:"));
                let (kind, file) = (kind.to_owned(), name.map(str::to_owned));
                found.push(Block {
                    kind,
                    first: number + 1,
                    file,
                    lines: Vec::new(),
                });
                open = true;
            }
            None if open => found.last_mut().unwrap().lines.push(line.to_owned()),
            None if line.is_empty() => {}
            None => above = line,
        }
    }
    found
}

fn steps(block: &Block) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (number, line) in block.lines.iter().enumerate() {
        let after = block.first + number + 1;
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                let (command, shown) = (command.to_owned(), Vec::new());
                goes_on = command.ends_with('\\');
                found.push(Step {
                    command,
                    at: after..after,
                    shown,
                });
            }
            (None, Some(step)) if goes_on => {
                step.command = format!("{}\n{line}", step.command);
                goes_on = line.ends_with('\\');
                step.at = after..after;
            }
            (None, Some(step)) => {
                step.shown.push(line.clone());
                step.at.end = after;
            }
            (None, None) => panic!("line {after} comes before any command"),
        }
    }
    found
}

/// What differs from run to run, and what stands for it.
const MASKS: [(&str, &str); 15] = [
    (r"\d{8}T\d{6}Z-([a-z0-9-]+)-[a-z0-9]{8}\b", "RUN-$1"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "WHEN"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "WHEN"),
    // The columns of `cto run --all` and `cto runs`: short ids look like words elsewhere.
    (r"\s\d+\s+[a-z2-9]{8}$", "  N  ID"),
    (r"\b(fake|pi|\d+[KM])\s{2,}[a-z2-9]{8}(\s|$)", "$1  ID$2"),
    (r"\b[0-9a-f]{7,}\b", "HEX"),
    (r"\b\d+(\.\d+)? (ms|s)\b", "TIME"),
    (r"\b\d+(\.\d+)? ?%", "PART"),
    (r"\b\d+(\.\d+)? (bytes|KiB|MiB)", "SIZE"),
    (r"\b\d+(\.\d+)?[KM]\b", "SIZE"),
    (
        r"kernel \d[^ ,]*, as (root|an ordinary user)",
        "kernel N, as SOMEONE",
    ),
    (r"(?i)\bpython ?3\.\d+(\.\d+)?", "python3.N"),
    (r"[█·]{2,}", "BAR"),
    // The last column of `cto matrix`.
    (r"^([✓✗] .* )\d+$", "${1}N"),
    (r" {2,}", "  "),
];

fn masked(line: &str) -> String {
    let ready = || {
        MASKS
            .iter()
            .map(|(mask, _)| Regex::new(mask).unwrap())
            .collect()
    };
    static READY: OnceLock<Vec<Regex>> = OnceLock::new();
    let mut text = line.trim_end().to_owned();
    for (mask, (_, stands)) in READY.get_or_init(ready).iter().zip(MASKS) {
        text = mask.replace_all(&text, stands).into_owned();
    }
    text
}

/// A block, masked. `cto replay` says where nothing happened for long: on a slow machine, anywhere.
fn masked_lines(lines: &[String]) -> Vec<String> {
    let pause = |line: &&String| line.trim_start().starts_with('⋮');
    lines
        .iter()
        .filter(|line| !pause(line))
        .map(|line| masked(line))
        .collect()
}

/// Is this line what is shown, where `…` is any text?
fn line_fits(shown: &str, printed: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Are these lines what is shown, where a line `…` is any number of lines?
fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    let Some((line, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if line == "…" {
        return (0..=printed.len()).any(|skip| lines_fit(rest, &printed[skip..]));
    }
    let Some((first, more)) = printed.split_first() else {
        return false;
    };
    line_fits(line, first) && lines_fit(rest, more)
}

fn fits(shown: &[String], printed: &[String]) -> bool {
    lines_fit(&masked_lines(shown), &masked_lines(printed))
}

/// What stands on a terminal after all that was drawn on it, below a home called `~`.
fn as_seen(drawn: &str, home: &str) -> Vec<String> {
    let plain = without_styles(drawn).replace(home, "~");
    let last_drawn = |line: &str| {
        line.rsplit('\r')
            .next()
            .map(|text| text.trim_end().to_owned())
    };
    let mut lines: Vec<String> = plain.split('\n').filter_map(last_drawn).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// A person at a terminal, in a home of their own.
struct Session {
    _root: TempDir,
    home: PathBuf,
    cwd: PathBuf,
    code: i32,
}

impl Session {
    fn begin() -> Self {
        // A short path, whatever TMPDIR says: tables are cut where a path does not fit.
        let root = tempfile::Builder::new()
            .prefix("cto-")
            .tempdir_in("/tmp")
            .unwrap();
        let path = root.path().canonicalize().unwrap();
        let home = path.join("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir(path.join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cto"), path.join("bin/cto")).unwrap();
        let me = "[user]\n\tname = Me\n\temail = me@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(home.join(".gitconfig"), me).unwrap();
        fs::copy(
            repository().join("packaging/verify.py"),
            home.join("verify.py"),
        )
        .unwrap();
        Self {
            _root: root,
            cwd: home.clone(),
            home,
            code: 0,
        }
    }

    /// A shell with nothing of this machine's environment but what is on `PATH`.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(script)
            .env_clear()
            .stdin(Stdio::null())
            .current_dir(&self.cwd);
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
        let bin = self.home.with_file_name("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.env("HOME", &self.home).env("PAGER", "cat");
        let kind = std::env::var_os("CTO_TEST_WORKSPACE");
        command.envs(kind.map(|kind| ("CTO_TEST_WORKSPACE", kind)));
        command
    }

    /// Types one command; where it leaves off and how it ended is where the next one begins.
    fn types(&mut self, command: &str) -> Vec<String> {
        let note = self.home.with_file_name("cwd");
        let (code, file) = (self.code, note.display());
        let script = format!("(exit {code})\n{command}\ncode=$?; pwd > '{file}'; exit $code");
        let Answer { code, stdout, .. } = watch(self.shell(&script), 100);
        self.code = code.unwrap_or(-1);
        // A block that ended early (`set -e`) leaves no note.
        if let Ok(cwd) = fs::read_to_string(&note) {
            self.cwd = cwd.trim_end().into();
        }
        as_seen(&stdout, self.home.to_str().unwrap())
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

#[expect(clippy::print_stderr, reason = "what a test leaves out is said")]
fn say(what: &str) {
    eprintln!("{what}");
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// RefusalReason a `sh` block is not run, if it is not.
fn left_out(page: &str, block: &Block) -> Option<String> {
    let text = block.lines.join("\n");
    let listed = NOT_RUN
        .iter()
        .find(|(on, word, _)| *on == page && text.contains(word));
    let lacks = OPTIONAL
        .iter()
        .find(|name| text.contains(&format!("{name} ")) && !installed(name));
    let why = listed.map(|(_, _, why)| (*why).to_owned());
    why.or_else(|| lacks.map(|name| format!("{name} is not installed")))
}

/// What a block of a page came to: complaints, and lines of the page that should be others.
#[derive(Default)]
struct Outcome {
    complaints: Vec<String>,
    edits: Vec<(Range<usize>, Vec<String>)>,
}

impl Outcome {
    fn compare(&mut self, page: &str, step: &Step, printed: Vec<String>) {
        if fits(&step.shown, &printed) {
            return;
        }
        self.complaints.push(format!(
            "{page}:{}: $ {}\n--- shown\n{}\n--- printed\n{}\n",
            step.at.start,
            step.command,
            step.shown.join("\n"),
            printed.join("\n")
        ));
        if !step.shown.iter().any(|line| line.contains('…')) {
            self.edits.push((step.at.clone(), printed));
        }
    }

    fn perform(&mut self, session: &mut Session, page: &str, block: &Block) {
        let text = format!("{}\n", block.lines.join("\n"));
        match (block.kind.as_str(), &block.file) {
            ("console", _) => {
                for step in steps(block) {
                    let printed = session.types(&step.command);
                    self.compare(page, &step, printed);
                }
            }
            ("sh", _) => match left_out(page, block) {
                Some(why) => say(&format!("{page}:{}: not run: {why}", block.first)),
                None => {
                    let printed = session.types(&text);
                    if session.code != 0 {
                        let (line, code) = (block.first, session.code);
                        let said = printed.join("\n");
                        self.complaints
                            .push(format!("{page}:{line}: exit code {code}\n{said}"));
                    }
                }
            },
            (_, Some(file)) => {
                let file = match file.strip_prefix("~/") {
                    Some(below) => session.home.join(below),
                    None => session.cwd.join(file),
                };
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            _ => {}
        }
    }
}

/// Plays a page from top to bottom and says everything that differs.
fn play(page: &str) {
    let mut session = Session::begin();
    let doctor = session.types("cto doctor");
    if session.code != 0 {
        assert!(
            std::env::var_os("REQUIRE_JAIL").is_none(),
            "{}",
            doctor.join("\n")
        );
        say(&format!("{page}: not run: no jail on this host"));
        return;
    }
    let path = repository().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let mut outcome = Outcome::default();
    for block in blocks(&text) {
        outcome.perform(&mut session, page, &block);
    }
    if std::env::var_os("CTO_REWRITE_CONSOLE").is_some_and(|value| value == "1") {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, printed) in outcome.edits.into_iter().rev() {
            lines.splice(at, printed);
        }
        fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    assert!(
        outcome.complaints.is_empty(),
        "\n{}",
        outcome.complaints.join("\n")
    );
}

/// README and everything below `docs/`, by its name in the repository.
fn all_pages() -> Vec<String> {
    let root = repository();
    let mut found = vec!["README.md".to_owned()];
    let mut pending = vec![root.join("docs")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path.strip_prefix(&root).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn no_block_escapes() {
    let mut dead: Vec<&str> = NOT_RUN.iter().map(|(_, word, _)| *word).collect();
    let mut wrong = Vec::new();
    for page in all_pages() {
        for block in blocks(&fs::read_to_string(repository().join(&page)).unwrap()) {
            let text = block.lines.join("\n");
            dead.retain(|word| !text.contains(word));
            let listed = PAGES.contains(&page.as_str());
            let runs = match block.kind.as_str() {
                "console" => true,
                "sh" => left_out(&page, &block).is_none(),
                _ => false,
            };
            if !KINDS.contains(&block.kind.as_str()) || runs && !listed {
                wrong.push(format!("{page}:{}: ```{}", block.first, block.kind));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "of no known kind, or on a page that is not in PAGES: {wrong:#?}"
    );
    assert!(dead.is_empty(), "NOT_RUN names what is nowhere: {dead:?}");
}

#[test]
fn the_readme_is_short_and_every_page_is_in_the_index() {
    let read = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    assert!(
        read("README.md").lines().count() <= 250,
        "README.md is too long to be read"
    );
    let index = read("docs/README.md");
    for page in all_pages()
        .iter()
        .filter_map(|page| page.strip_prefix("docs/"))
    {
        let known = page == "README.md" || index.contains(&format!("]({page})"));
        assert!(
            known || page.starts_with("decisions/"),
            "docs/README.md does not name {page}"
        );
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_differs_from_run_to_run_is_masked() {
    for (one, other) in [
        (
            "run 20261115T101647Z-a-case-sk3nq6cv",
            "run 20300101T000000Z-a-case-aaaaaaaa",
        ),
        ("contract cf0ea14135b6", "contract 07317f0fbc34"),
        ("(exit code 0, 96 ms)", "(exit code 0, 1203 ms)"),
        ("   0.015 s  x", "  12.015 s    x"),
        (
            "sh-word-count  pass    215  fmew7kqm",
            "sh-word-count  pass  1540  m7im2eg6",
        ),
        (
            "11-15 21:00  pass  a  fake    g7j3v52a",
            "01-02 03:04  pass  a  fake  abcdefgh",
        ),
        (
            "5 pass: 1.59 s wall, 78% of it",
            "5 pass: 10.1 s wall, 8% of it",
        ),
        (
            "packed x.tar.zst (18573 bytes)",
            "packed x.tar.zst (9 bytes)",
        ),
        (
            "CONTAINED  kernel 6.1.0-x, as root",
            "CONTAINED  kernel 5.14, as an ordinary user",
        ),
        (
            "since 2026-11-15T20:58:42.066Z",
            "since 2031-01-01T00:00:00.1Z",
        ),
        (
            "  python3   /usr/bin/python3.11",
            "  python3   /usr/bin/python3.9",
        ),
        ("  plan  █····   1 ms", "  plan  ···██  100 ms"),
        (
            "✓  no-diff  no_diff  diff.checked  1136",
            "✓  no-diff  no_diff  diff.checked  9",
        ),
    ] {
        assert_eq!(masked(one), masked(other));
    }
}

#[test]
fn what_must_not_differ_is_not_masked() {
    for (one, other) in [
        ("GREEN  47 green, 0 red", "GREEN  41 green, 0 red"),
        ("(exit code 0, 96 ms)", "(exit code 1, 96 ms)"),
        (
            "run 20261115T101647Z-a-case-sk3nq6cv",
            "run 20261115T101647Z-b-case-sk3nq6cv",
        ),
        ("engine fake  stage 2", "engine fake  stage 3"),
        ("pass  a  fake  g7j3v52a", "fail  a  fake  g7j3v52a"),
        ("  checks    green  hidden", "  checks    RED    hidden"),
        ("opened by  nothing at all", "opened by  anything at all"),
        ("✓  no-diff  no_diff  1136", "✗  no-diff  no_diff  1136"),
    ] {
        assert_ne!(masked(one), masked(other));
    }
}

#[test]
fn one_word_or_line_that_differs_is_noticed() {
    let printed = "PASS  a  stage 2\n\n  why  all green (3 ms)\n  run  one\nnext: cto verify";
    let printed = lines(printed);
    let same = |shown: &str| fits(&lines(shown), &printed);
    assert!(same(
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one\nnext: cto verify"
    ));
    assert!(same(
        "PASS  a  stage 2\n\n  why  all … (…)\n…\nnext: cto verify"
    ));
    assert!(same("…\n  run  one\n…"));
    assert!(same("…"));
    for wrong in [
        "PASS  a  stage 2\n\n  why  all red (96 ms)\n  run  one\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one\n  two\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one",
        "PASS  a  stage 2\n\n  why  none … (…)\n…\nnext: cto verify",
        "…\n  run  two\n…",
        "…\n  run  one",
        "",
    ] {
        assert!(!same(wrong), "taken for the same: {wrong}");
    }
}

#[test]
fn a_page_is_read_as_it_is_meant() {
    let file = "# A\n\n`a/b.toml`:\n\n```toml\nx = 1\n```\n\n";
    let page = format!("{file}Text:\n\n```console\n$ one \\\n  two\nout\n$ three\n```\n");
    let found = blocks(&page);
    assert_eq!(
        (found[0].kind.as_str(), found[0].file.as_deref()),
        ("toml", Some("a/b.toml"))
    );
    assert_eq!(
        (found[0].lines.join("|").as_str(), &found[1].file),
        ("x = 1", &None)
    );
    let typed = steps(&found[1]);
    assert_eq!(
        (typed[0].command.as_str(), &typed[0].at),
        ("one \\\n  two", &(13..14))
    );
    assert_eq!(
        (typed[0].shown.join("|").as_str(), typed[1].command.as_str()),
        ("out", "three")
    );
    assert!(typed[1].at == (15..15) && typed[1].shown.is_empty());
    assert_eq!(page.lines().nth(typed[0].at.start), Some("out"));
}

#[test]
fn a_terminal_is_read_as_a_person_reads_it() {
    let drawn = "run\n\r  … plan 1 ms\r  • plan 2 ms   \n\u{1b}[1mPASS\u{1b}[0m /tmp/x/home/a\n\n";
    assert_eq!(
        as_seen(drawn, "/tmp/x/home"),
        ["run", "  • plan 2 ms", "PASS ~/a"]
    );
}

#[test]
fn a_session_remembers_where_it_is_and_how_it_ended() {
    let mut session = Session::begin();
    assert_eq!(session.types("mkdir a && cd a && false"), [""; 0]);
    assert_eq!(
        session.types("echo $?; pwd; echo no >&2"),
        ["1", "~/a", "no"]
    );
}
