//! `cto engines new`: a manifest to begin with, in the operator's own directory. Nothing that is there
//! is touched.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cto_core::engine::manifest::{gate_variable, own};
use cto_core::values::ids::EngineId;
use serde_json::json;

use crate::cli::Context;
use crate::host;
use crate::host::failure::Failure;
use crate::task::{engines, own_engines};

#[derive(clap::Args)]
pub struct Args {
    /// The name of the engine and of its file
    name: EngineId,
    /// What kind of program it is
    #[arg(long, value_enum, default_value_t = Template::Plain)]
    from: Template,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Template {
    /// An agent that speaks the Agent Client Protocol
    Acp,
    /// Any command that does its work and ends
    Plain,
}

impl Template {
    fn filled(self, name: &EngineId) -> String {
        self.text()
            .replace("{{name}}", name.as_str())
            .replace("{{variable}}", &gate_variable(name))
    }

    fn text(self) -> &'static str {
        match self {
            Self::Acp => include_str!("../../../../../templates/engine/acp.toml"),
            Self::Plain => include_str!("../../../../../templates/engine/plain.toml"),
        }
    }
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let house = engines::all()?;
    if let Some(why) = own::taken(&args.name, &house) {
        return Err(Failure::usage("name_taken", why)
            .so("nothing was written")
            .hint("choose another name"));
    }
    let dir = context.own_engines()?.ok_or_else(|| {
        Failure::usage(
            "no_engines_directory",
            "there is no place for engines of your own",
        )
        .reason("neither HOME nor XDG_CONFIG_HOME is set")
        .so("nothing was written")
        .hint("name one with --engines DIR")
    })?;
    let file = dir.file(args.name.as_str());
    write(&file, &args.from.filled(&args.name))?;
    if let Err(why) = own_engines::manifest(&file, &house) {
        // It was ours alone; one that would not be used helps nobody.
        let _ = std::fs::remove_file(&file);
        return Err(
            Failure::usage("engines_directory_untrusted", "a manifest there would not be used")
                .at(file.display().to_string())
                .reason(why)
                .so("nothing was left behind")
                .hint("a directory that only you may write, outside every repository; --engines DIR names one"),
        );
    }
    told(context, args, &file)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let unwritable = |error: &std::io::Error| {
        Failure::usage("unwritable_manifest", "the manifest cannot be written")
            .at(file.display().to_string())
            .because(error)
            .so("nothing was written")
            .hint("name another directory with --engines DIR")
    };
    if let Some(dir) = file.parent() {
        host::make_private_dir(dir).map_err(|error| unwritable(&error))?;
    }
    // Made exclusively: what is there, even a link to nowhere, is somebody's.
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Failure::usage(
            "manifest_exists",
            "there is a file of this name already",
        )
        .at(file.display().to_string())
        .so("nothing was written")
        .hint("edit it, or choose another name")),
        Err(error) => Err(unwritable(&error)),
        Ok(mut made) => made.write_all(text.as_bytes()).map_err(|error| {
            // Half a manifest is none.
            let _ = std::fs::remove_file(file);
            unwritable(&error)
        }),
    }
}

fn told(context: &Context, args: &Args, file: &Path) -> Result<u8, Failure> {
    let name = &args.name;
    let place = file.display().to_string();
    let next = [
        context
            .output
            .command(&format!("engines check {name} --bin FILE")),
        context.output.command(&format!("setup {name} --bin FILE")),
    ];
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "engines new", "engine": name, "path": place, "next": next,
        }))?;
        return Ok(0);
    }
    context
        .output
        .line(&format!("A manifest to begin with is in {place}."));
    context
        .output
        .line("Its comments say what each part is for.");
    context.output.line("");
    next.iter()
        .for_each(|words| context.output.line(&format!("next: {words}")));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use cto_core::engine::manifest::Manifest;

    use super::*;

    /// As it is written, and with every line that is offered in it.
    #[test]
    fn every_template_is_a_manifest_as_it_is() {
        let name: EngineId = "my-agent".parse().unwrap();
        for template in Template::value_variants() {
            let text = template.filled(&name);
            let read = |text: &str| Manifest::parse_own("f", "my-agent", text, &[]);
            let manifest = read(&text).unwrap();
            assert!(manifest.uses_a_model(), "{template:?}");
            let offered = |line: &str| {
                let word = line.strip_prefix("# ").unwrap_or_default();
                let begins = |mark: &str| word.starts_with(mark);
                let key = word.split(' ').nth(1) == Some("=")
                    || begins("[")
                    || begins("{")
                    || begins("'''");
                match key {
                    true => word.to_owned(),
                    false => line.to_owned(),
                }
            };
            let whole: Vec<String> = text.lines().map(offered).collect();
            let whole = read(&whole.join("\n")).unwrap();
            let own = whole.invocation.unwrap();
            assert!(own.packages.is_some() && own.tools.is_some() && !own.files.is_empty());
        }
    }
}
