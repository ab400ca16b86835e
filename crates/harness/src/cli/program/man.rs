//! `cto man`: the manual pages, from the same table as the help.

use std::path::{Path, PathBuf};

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use cto_core::operator::settings::KNOBS;
use serde_json::json;

use crate::cli::Context;
use crate::cli::public_tree;
use crate::host::failure::{EXIT_CODES, Failure};
use crate::host::settings;

#[derive(clap::Args)]
pub struct Args {
    /// Write one page a command into this directory, made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let pages = pages()?;
    let Some(dir) = &args.out else {
        let Some((name, text)) = pages.first() else {
            return Ok(0);
        };
        match context.output.json {
            true => document(context, vec![json!({"name": name, "text": text})])?,
            false => context.output.bytes(text.as_bytes()),
        }
        return Ok(0);
    };
    write(dir, &pages)?;
    let files = pages
        .iter()
        .map(|(name, _)| (name, dir.join(name).display().to_string()));
    match context.output.json {
        true => document(
            context,
            files
                .map(|(name, file)| json!({"name": name, "file": file}))
                .collect(),
        )?,
        false => files.for_each(|(_, file)| context.output.line(&file)),
    }
    Ok(0)
}

fn document(context: &Context, pages: Vec<serde_json::Value>) -> Result<(), Failure> {
    context
        .output
        .document(&json!({"schema_version": 1, "command": "man", "pages": pages}))
}

fn write(dir: &Path, pages: &[(String, String)]) -> Result<(), Failure> {
    let unwritable = |path: &Path, error: std::io::Error| {
        Failure::usage("unwritable_page", "a manual page cannot be written")
            .at(path.display().to_string())
            .because(&error)
    };
    std::fs::create_dir_all(dir).map_err(|error| unwritable(dir, error))?;
    for (name, text) in pages {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}

/// File name and text of every page, the main one first.
fn pages() -> Result<Vec<(String, String)>, Failure> {
    let mut tree = public_tree();
    tree.build();
    let mut pages = Vec::new();
    let mut pending = vec![&tree];
    while let Some(command) = pending.pop() {
        pending.extend(command.get_subcommands());
        let man = Man::new(command.clone())
            .manual("CTO Harness")
            .source(concat!("cto ", env!("CARGO_PKG_VERSION")));
        let mut text = Vec::new();
        let rest = if pages.is_empty() {
            main_sections()
        } else {
            see_also()
        };
        man.render(&mut text)
            .and_then(|()| rest.to_writer(&mut text))
            .map_err(|error| {
                Failure::internal("unprintable", "a manual page cannot be made").because(&error)
            })?;
        pages.push((
            man.get_filename(),
            String::from_utf8_lossy(&text).into_owned(),
        ));
    }
    pages[1..].sort();
    Ok(pages)
}

fn main_sections() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        roff.control("TP", [])
            .text([bold(code.to_string())])
            .text([roman(meaning.replace('`', ""))]);
    }
    roff.control("SH", ["FILES"]);
    roff.control("TP", [])
        .text([bold("~/.config/cto/config.toml")]);
    roff.text([roman(format!(
        "Settings; {} names another file. Its keys, each with the flag that beats it:",
        settings::VARIABLE
    ))]);
    for knob in KNOBS {
        let what = format!(
            "{}{}; default: {}",
            knob.what,
            knob.flag
                .map(|flag| format!(" ({flag})"))
                .unwrap_or_default(),
            knob.default
        )
        .replace('`', "");
        roff.control("TP", [])
            .text([bold(knob.key)])
            .text([roman(what)]);
    }
    roff
}

fn see_also() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"])
        .text([bold("cto"), roman("(1)")]);
    roff
}
