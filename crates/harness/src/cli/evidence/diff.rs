//! `cto diff`: the patch of a run, out of a bundle that verified. Raw bytes for programs, a tamed
//! view for people.

use std::fs;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::values::digest::Digest;
use cto_core::values::text::spell;
use cto_core::values::verdict::Status;
use cto_core::verify::{FoundBundle, Standing, Verification};
use cto_core::workspace::patch::{PatchLine, PatchLines, PatchReader};
use cto_core::workspace::patch_stat::PatchStat;
use serde_json::json;

use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::evidence::{Liveness, SealedBundle, liveness};
use crate::host::failure::Failure;
use crate::screen::output::{Color, dim, is_watched, tame};
use crate::screen::stat_view;
use crate::screen::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, `last`, or a bundle directory
    #[arg(default_value = "last")]
    run: String,
    /// Show how many lines of each file changed
    #[arg(long, conflicts_with_all = ["name_only", "raw"])]
    stat: bool,
    /// Show only the names of the changed files
    #[arg(long, conflicts_with = "raw")]
    name_only: bool,
    /// Print the exact bytes of the patch, also on a terminal
    #[arg(long)]
    raw: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let dir = last::to_show(context, &args.run)?;
    let patch = Patch::of(&dir, &context.trust()?)?;
    if context.output.json {
        return document(context, &patch).map(|()| 0);
    }
    if let Some(status) = patch
        .verification
        .status
        .filter(|status| *status != Status::Pass)
    {
        context.output.note(&format!(
            "note: this run is {}; its patch is not proven",
            status.as_str()
        ));
    }
    if patch.is_empty() {
        context.output.note("This run changed nothing.");
    } else if args.name_only {
        patch
            .paths
            .iter()
            .for_each(|path| context.output.line(&tame(path)));
    } else if args.stat {
        stat_view::lines(&patch.stat()?, terminal::columns())
            .iter()
            .for_each(|line| context.output.line(line));
    } else if !args.raw && (is_watched() || context.color == Some(Color::Always)) {
        let mut view = View::default();
        view.feed(&patch.bytes, &mut |line| context.output.line(line));
        view.finish(&mut |line| context.output.line(line));
    } else {
        context.output.bytes(&patch.bytes);
    }
    Ok(0)
}

fn document(context: &Context, patch: &Patch<'_>) -> Result<(), Failure> {
    let stat = patch.stat()?;
    context.output.document(&json!({
        "schema_version": 1,
        "command": "diff",
        "run_id": patch.verification.run_id,
        "status": patch.verification.status,
        "bundle": patch.dir.display().to_string(),
        "patch": patch.dir.join(bundle::PATCH).display().to_string(),
        "sha256": patch.sha256,
        "bytes": patch.bytes.len(),
        "files": stat.files,
        "added": stat.added,
        "removed": stat.removed,
    }))
}

/// The patch of a bundle that verified.
struct Patch<'a> {
    dir: &'a Path,
    verification: Verification,
    sha256: Digest,
    bytes: Vec<u8>,
    paths: Vec<String>,
}

impl<'a> Patch<'a> {
    fn of(dir: &'a Path, trust: &Trust) -> Result<Self, Failure> {
        let place = || dir.display().to_string();
        if liveness(dir) != Liveness::Sealed {
            return Err(Failure::blocked(
                "no_patch",
                "this run is not sealed, so it has no patch yet",
            )
            .at(place()));
        }
        let (found, verification) = verifier::examine_with_patch(dir, trust).map_err(|error| {
            Failure::internal("unreadable_bundle", "the bundle cannot be read")
                .at(place())
                .because(&error)
        })?;
        if verification.standing != Standing::Good {
            return Err(not_good(&verification).at(place()));
        }
        Self::in_good(dir, found, verification)
    }

    fn in_good(
        dir: &'a Path,
        mut found: FoundBundle,
        verification: Verification,
    ) -> Result<Self, Failure> {
        match (found.files.get(bundle::PATCH), &found.patch_paths) {
            (Some(file), Some(Ok(paths))) => {
                let paths = paths.iter().map(ToString::to_string).collect();
                Ok(Self {
                    dir,
                    verification,
                    sha256: file.sha256,
                    bytes: found.documents.remove(bundle::PATCH).unwrap_or_default(),
                    paths,
                })
            }
            _ => Err(
                Failure::blocked("patch_withheld", "the patch of this run was withheld")
                    .at(dir.display().to_string())
                    .hint("`cto show` says why"),
            ),
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn stat(&self) -> Result<PatchStat, Failure> {
        let mut reader = PatchReader::default();
        reader.feed(&self.bytes);
        reader.finish().map(PatchStat::of_files).map_err(|error| {
            Failure::internal("odd_patch", "the lines of this patch cannot be counted")
                .at(self.dir.join(bundle::PATCH).display().to_string())
                .because(&error)
        })
    }
}

fn not_good(verification: &Verification) -> Failure {
    let mut failure = Failure::usage(
        "bundle_not_good",
        "the bundle does not verify, so its patch is not shown",
    )
    .hint("`cto verify` lists what is wrong with it");
    failure.exits_with = Some(if verification.standing == Standing::Bad {
        1
    } else {
        3
    });
    let reasons = verification.problems.iter().chain(&verification.unknowns);
    failure.because = reasons
        .take(3)
        .map(|p| format!("{}: {}", p.artifact, p.message))
        .collect();
    failure
}

/// The patch that was just sealed, and no other that lies under its name by now.
pub fn sealed_patch(sealed: &SealedBundle) -> Option<Vec<u8>> {
    let wanted = sealed.report.artifact_digests.get(bundle::PATCH);
    fs::read(sealed.dir.join(bundle::PATCH))
        .ok()
        .filter(|bytes| Some(&Digest::of(bytes)) == wanted)
}

/// The beginning of a patch, for a person: at most `most` lines, and how many there are besides.
pub fn preview(context: &Context, patch: &[u8], most: usize) {
    let mut lines = 0usize;
    let mut show = |line: &str| {
        lines += 1;
        if lines <= most {
            context.output.line(line);
        }
    };
    let mut view = View::default();
    view.feed(patch, &mut show);
    view.finish(&mut show);
    if lines > most {
        context.output.line(&format!(
            "{dim}… {} lines more; cto diff shows them{dim:#}",
            lines - most,
            dim = dim()
        ));
    }
}

/// Bytes of a line that a person is shown.
const LONGEST_LINE: usize = 4096;

/// The patch for a terminal: coloured, and nothing of a file's content reaches it but text.
#[derive(Default)]
struct View {
    line: Vec<u8>,
    /// Bytes of the line beyond what is kept.
    beyond: usize,
    lines: PatchLines,
    in_binary: bool,
}

impl View {
    fn feed(&mut self, mut chunk: &[u8], print: &mut dyn FnMut(&str)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            self.push(&chunk[..end]);
            self.end_line(print);
            chunk = &chunk[end + 1..];
        }
        self.push(chunk);
    }

    fn finish(mut self, print: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            self.end_line(print);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(LONGEST_LINE - self.line.len());
        self.line.extend_from_slice(&bytes[..kept]);
        self.beyond += bytes.len() - kept;
    }

    fn end_line(&mut self, print: &mut dyn FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let beyond = std::mem::take(&mut self.beyond);
        let dim = dim();
        // A hunk that announces other lines than it has is given up and its line read as a header.
        let lines = &mut self.lines;
        let kind = lines.classify(&line).or_else(|_| lines.classify(&line));
        let style = match kind.unwrap_or(PatchLine::Other) {
            PatchLine::Binary => {
                self.in_binary = true;
                return print(&format!(
                    "{dim}binary content is not shown; --raw prints it{dim:#}"
                ));
            }
            PatchLine::Other if self.in_binary => return,
            PatchLine::Added => AnsiColor::Green.on_default(),
            PatchLine::Removed => AnsiColor::Red.on_default(),
            PatchLine::Hunk => AnsiColor::Cyan.on_default(),
            PatchLine::NoNewline => dim,
            PatchLine::Context => Style::new(),
            PatchLine::File(_) => {
                self.in_binary = false;
                Style::new().bold()
            }
            PatchLine::NewFile | PatchLine::DeletedFile | PatchLine::OldMode | PatchLine::Other => {
                Style::new().bold()
            }
        };
        let more = if beyond > 0 {
            format!(" {dim}… {beyond} bytes more{dim:#}")
        } else {
            String::new()
        };
        print(&format!("{style}{}{style:#}{more}", spell(&line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(patch: &[u8], chunk: usize) -> Vec<String> {
        let mut view = View::default();
        let mut lines = Vec::new();
        let mut print = |line: &str| lines.push(anstream::adapter::strip_str(line).to_string());
        patch
            .chunks(chunk)
            .for_each(|chunk| view.feed(chunk, &mut print));
        view.finish(&mut print);
        lines
    }

    #[test]
    fn content_cannot_act_on_a_terminal() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\r\x07\n+\xff\xe2\x80\xaeb";
        for chunk in [1, 7, 4096] {
            assert_eq!(
                seen(patch, chunk),
                [
                    "diff --git a/x b/x",
                    "--- a/x",
                    "+++ b/x",
                    "@@ -1 +1 @@",
                    "-a^[[2J^M^G",
                    "+<FF><U+202E>b"
                ]
            );
        }
    }

    #[test]
    fn endless_lines_and_binary_content_stay_short() {
        let mut patch = b"diff --git a/x b/x\n@@ -1 +1 @@\n+".to_vec();
        patch.extend(std::iter::repeat_n(b'y', 10_000));
        patch.extend(
            b"\ndiff --git a/b b/b\nGIT binary patch\nliteral 3\nKcmZQzU\n\ndiff --git a/c b/c\n",
        );
        let lines = seen(&patch, 100);
        assert!(lines[2].ends_with(" … 5905 bytes more"), "{}", lines[2]);
        assert_eq!(
            lines[3..],
            [
                "diff --git a/b b/b",
                "binary content is not shown; --raw prints it",
                "diff --git a/c b/c"
            ]
        );
    }
}
