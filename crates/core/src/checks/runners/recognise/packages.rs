//! Node and its package managers: what is behind `node`, `npm`, `pnpm` and `yarn`.

use std::collections::BTreeMap;

use super::peel::{Layer, Script, past_options, program_name, second};
use super::shell::Word;
use crate::task::runner::Runner;

/// The scripts of a `package.json`; none of one that cannot be read.
pub(super) fn scripts(text: &str) -> BTreeMap<String, String> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = value.get("scripts").and_then(serde_json::Value::as_object);
    scripts
        .into_iter()
        .flatten()
        .filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())))
        .collect()
}

pub(super) fn node(behind: &[Word]) -> Layer {
    let own_test = behind
        .iter()
        .take_while(|word| word.text != "--")
        .any(|word| word.text == "--test");
    if own_test {
        let rest = behind.iter().filter(|word| word.text != "--test");
        return Layer::Runner(Runner::Node, rest.cloned().collect());
    }
    const VALUED: &str = "-r --require --import --loader --experimental-loader -C --conditions --env-file --stack-size";
    match past_options(behind, VALUED) {
        [script, rest @ ..] => package_program(&script.text, rest).unwrap_or(Layer::Unknown),
        [] => Layer::Unknown,
    }
}

/// A runner started by the path of its package.
pub(super) fn package_program(path: &str, rest: &[Word]) -> Option<Layer> {
    let (_, inside) = path.rsplit_once("node_modules/")?;
    let inside = inside.strip_prefix(".bin/").unwrap_or(inside);
    let package = inside.split('/').next().unwrap_or_default();
    let package = if package == "jest-cli" {
        "jest"
    } else {
        program_name(package)
    };
    let name =
        Runner::parse(package).filter(|name| name.is_javascript() && *name != Runner::Node)?;
    Some(Layer::Runner(name, rest.to_vec()))
}

/// `npm test`, `pnpm run X`, `yarn X`.
pub(super) fn manager(program: &str, behind: &[Word]) -> Layer {
    let manager = match program {
        "npm" => "npm",
        "pnpm" => "pnpm",
        _ => "yarn",
    };
    let valued = "-C --dir --prefix --cwd -w --workspace --filter -F --loglevel";
    let inner = past_options(behind, valued);
    let taken = behind.get(..behind.len() - inner.len()).unwrap_or_default();
    if let Some(dir) = option_value(taken, &["-C", "--dir", "--prefix", "--cwd"]) {
        let mut rest = vec![Word::plain(manager)];
        rest.extend(inner.iter().cloned());
        return Layer::Directory(dir, rest);
    }
    if taken.iter().any(|word| is_workspace_option(&word.text)) {
        return Layer::Unknown;
    }
    let Some((own, rest)) = inner.split_first() else {
        return Layer::Unknown;
    };
    let script = |name: &str, rest: &[Word], or_program| {
        if manager == "npm"
            && rest
                .iter()
                .take_while(|word| word.text != "--")
                .any(|word| is_workspace_option(&word.text))
        {
            return Layer::Unknown;
        }
        Layer::Script(Script {
            manager,
            name: name.to_owned(),
            more: script_arguments(manager, rest),
            or_program,
        })
    };
    match own.text.as_str() {
        "test" | "t" | "tst" if manager != "yarn" => script("test", rest, false),
        "run" | "run-script" | "rum" => match past_options(rest, valued) {
            [name, rest @ ..] => script(&name.text, rest, manager == "yarn"),
            [] => Layer::Unknown,
        },
        "exec" | "x" | "dlx" => second(manager, inner),
        "workspace" | "workspaces" | "node" | "install" | "ci" | "i" | "add" | "pack" => {
            Layer::Unknown
        }
        _ if manager == "npm" => Layer::Unknown,
        name => script(name, rest, true),
    }
}

fn is_workspace_option(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    matches!(
        name,
        "-w" | "--workspace" | "--workspaces" | "-ws" | "--filter" | "-F" | "-r" | "--recursive"
    )
}

fn option_value(words: &[Word], names: &[&str]) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let (name, held) = word
            .text
            .split_once('=')
            .map_or((word.text.as_str(), None), |(name, value)| {
                (name, Some(value))
            });
        names.contains(&name).then(|| {
            held.map(str::to_owned)
                .or_else(|| words.get(at + 1).map(|word| word.text.clone()))
        })?
    })
}

/// npm hands on only what stands behind `--`; the others hand on everything.
fn script_arguments(manager: &str, rest: &[Word]) -> Vec<Word> {
    match rest.iter().position(|word| word.text == "--") {
        Some(at) if manager != "yarn" => rest.get(at + 1..).unwrap_or_default().to_vec(),
        _ if manager == "npm" => rest
            .iter()
            .filter(|word| !word.text.starts_with('-'))
            .cloned()
            .collect(),
        _ => rest.to_vec(),
    }
}
