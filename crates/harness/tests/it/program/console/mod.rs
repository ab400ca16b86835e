//! Every `console` block of README and docs, typed into a terminal and compared with what is shown.
//!
//! A page is one session in a fresh home. Each line after `$ ` is typed into a terminal of 100
//! columns, and the lines below it must come back. `sh` blocks run for what they leave behind. A
//! `toml` or `diff` block below a line that names a file (`` `greeting/case.toml`: ``) becomes that
//! file. What differs from run to run (ids, times, digests, the path of the home) is masked on both
//! sides. A line `…` stands for any number of lines, `…` inside a line for any text. `text` blocks
//! are figures, and what needs somebody's endpoint; nothing runs them.
//! `CTO_REWRITE_CONSOLE=1` puts what was printed into the blocks that have no `…`.

mod blocks;
mod masks;
mod session;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blocks::{Block, KINDS, Step, blocks, steps};
use masks::fits;
use session::Session;

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
    ladder: "docs/ladder.md",
    settings: "docs/settings.md",
    trying: "docs/try.md",
}

/// `sh` blocks that no test runs: page, a word of the block, why.
const NOT_RUN: [(&str, &str, &str); 10] = [
    (
        "README.md",
        "scripts/demo",
        "builds the program, and runs this test among others",
    ),
    (
        "docs/engines/pi.md",
        "npm install",
        "run by engines/pi/four_commands.rs, at a terminal",
    ),
    (
        "docs/engines/codex.md",
        "npm install",
        "needs a model; engines/agents/codex.rs runs the real agent",
    ),
    (
        "docs/engines/codex.md",
        "cto try",
        "needs a model; engines/agents/codex.rs runs the real agent",
    ),
    (
        "docs/engines/acp.md",
        "npm install",
        "needs models; engines/agents/acp.rs and acp_on_node.rs run the real agents",
    ),
    (
        "docs/engines/acp.md",
        "cto run",
        "needs models; engines/agents/acp.rs and acp_on_node.rs run the real agents",
    ),
    (
        "docs/engines/opencode.md",
        "npm install",
        "needs a model; engines/agents/opencode.rs runs the real agent",
    ),
    (
        "docs/engines/opencode.md",
        "cto try",
        "needs a model; engines/agents/opencode.rs runs the real agent",
    ),
    (
        "docs/engines/command.md",
        "pip install aider-chat",
        "needs the registry; engines/known runs a small agent the same way",
    ),
    (
        "docs/engines/command.md",
        "cto setup aider",
        "needs a model; engines/known runs a small agent the same way",
    ),
];

/// Programs a `sh` block may need that are not asked of every machine; without them it is not run.
const OPTIONAL: [&str; 2] = ["jq", "openssl"];

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

/// Why a `sh` block is not run, if it is not.
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
