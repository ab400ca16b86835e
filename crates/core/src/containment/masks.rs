//! What of a repository an engine is not shown: configuration that agents, editors and runtimes
//! take orders from, and files whose name says that they hold secrets. One table, one decision.
//!
//! Hidden is the rule. A contract that allows changing everything, a directory or a pattern says
//! nothing about these files; only one that spells a name out has it shown. Source in a folder that
//! is named for secrets is shown without being asked for, file by file, and said.

use std::collections::BTreeSet;

use crate::values::paths::{PathRule, PathStanding, TreePath, path_standing};
use crate::workspace::tree::Tree;

/// Directories agents and editors take orders from, at any depth.
const AGENT_DIRS: [&[u8]; 23] = [
    b".claude",
    b".codex",
    b".pi",
    b".cursor",
    b".gemini",
    b".qwen",
    b".opencode",
    b".continue",
    b".windsurf",
    b".zed",
    b".devcontainer",
    b".agents",
    b".aider",
    b".amazonq",
    b".amp",
    b".augment",
    b".cline",
    b".crush",
    b".factory",
    b".goose",
    b".junie",
    b".kiro",
    b".roo",
];
/// Files of that kind, at any depth.
const AGENT_FILES: [&[u8]; 15] = [
    b".mcp.json",
    b".claude.json",
    b"crush.json",
    b".crush.json",
    b"opencode.json",
    b"opencode.jsonc",
    b".aider.conf.yml",
    b".aider.model.settings.yml",
    b".aider.model.metadata.json",
    b".clinerules",
    b".cursorrules",
    b".goosehints",
    b".roomodes",
    b".roorules",
    b".windsurfrules",
];
/// In a `.vscode` directory: what an editor runs or is told to run.
const EDITOR_FILES: [&[u8]; 4] = [b"tasks.json", b"launch.json", b"settings.json", b"mcp.json"];
/// Read by runtimes in their working directory, which is the top of the workspace.
const TOP_FILES: [&[u8]; 1] = [b"bunfig.toml"];

/// Directories kept for secrets, at any depth.
const SECRET_DIRS: [&[u8]; 10] = [
    b"secrets",
    b".secrets",
    b"credentials",
    b".credentials",
    b".env",
    b".envs",
    b".ssh",
    b".aws",
    b".kube",
    b".gnupg",
];
/// Files whose name says that they hold a secret, at any depth, beside those below.
const SECRET_FILES: [&[u8]; 28] = [
    b".netrc",
    b"_netrc",
    b".pgpass",
    b".pypirc",
    b".my.cnf",
    b".htpasswd",
    b".git-credentials",
    b".dockercfg",
    b"kubeconfig",
    b"kubeconfig.yml",
    b"kubeconfig.yaml",
    b"service-account.json",
    b"service_account.json",
    b"serviceaccount.json",
    b"master.key",
    b"credentials.json",
    b"credentials.toml",
    b"credentials.yml",
    b"credentials.yaml",
    b"credentials.xml",
    b"credentials.ini",
    b"credentials.csv",
    b"secrets.json",
    b"secrets.toml",
    b"secrets.yml",
    b"secrets.yaml",
    b"secrets.ini",
    b"secrets.txt",
];
/// Names that hold a secret whatever stands behind them after `.`, `-` or `_`, unless that says that
/// it is an example or the public half.
const SECRET_STEMS: [&[u8]; 11] = [
    b".env",
    b".envrc",
    b".dev.vars",
    b".vault_pass",
    b".vault-pass",
    b".vault_password",
    b".vault-password",
    b"id_rsa",
    b"id_dsa",
    b"id_ecdsa",
    b"id_ed25519",
];
/// Files of secrets and stores of keys, by their ending.
const SECRET_ENDINGS: [&[u8]; 9] = [
    b".env",
    b".tfvars",
    b".tfvars.json",
    b".kubeconfig",
    b".p12",
    b".pfx",
    b".jks",
    b".keystore",
    b".kdbx",
];
/// What is put behind the name of a file that was kept when it was changed.
const BACKUPS: [&[u8]; 6] = [b".bak", b".old", b".orig", b".save", b".backup", b"~"];
/// How a file ends that shows people what theirs should look like.
const EXAMPLES: [&[u8]; 8] = [
    b"example",
    b"examples",
    b"sample",
    b"template",
    b"tmpl",
    b"dist",
    b"default",
    b"defaults",
];
/// Folders of what a program says, by language.
const TRANSLATIONS: [&[u8]; 4] = [b"locales", b"locale", b"i18n", b"translations"];
/// What is source, and shown in a folder that is named for secrets. Everything else there may be one.
const SOURCE_ENDINGS: [&[u8]; 72] = [
    b"bash", b"c", b"cc", b"cjs", b"clj", b"cljs", b"cpp", b"cs", b"css", b"cxx", b"dart", b"ejs",
    b"elm", b"erb", b"erl", b"ex", b"exs", b"fs", b"go", b"gradle", b"graphql", b"groovy", b"h",
    b"haml", b"hbs", b"hh", b"hpp", b"hs", b"htm", b"html", b"j2", b"java", b"jinja", b"jinja2",
    b"jl", b"js", b"jsx", b"kt", b"kts", b"less", b"lua", b"m", b"md", b"mdx", b"mjs", b"ml",
    b"nim", b"php", b"pl", b"pm", b"proto", b"ps1", b"py", b"pyi", b"r", b"rb", b"rs", b"rst",
    b"sass", b"scala", b"scss", b"sh", b"slim", b"sql", b"svelte", b"swift", b"tf", b"ts", b"tsx",
    b"twig", b"vue", b"zig",
];

/// What is hidden and what is shown although it would be, each by its highest place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Masks {
    /// Files, links and whole directories.
    pub masked: Vec<TreePath>,
    pub shown: Vec<TreePath>,
}

/// Decides for a whole tree.
pub fn decide_masks(tree: &Tree, allowed: &[PathRule], forbidden: &[PathRule]) -> Masks {
    let (mut hidden, mut visible) = (Vec::new(), Vec::new());
    for path in tree.keys() {
        let places = places(path);
        let Some(highest) = places.first().map(|place| place.end) else {
            continue;
        };
        let spelled_out = |place: &Place| {
            let within = |rule: &PathRule| {
                let named = named(rule);
                named.is_some_and(|named| at_or_below(named, &path.as_bytes()[..place.end]))
            };
            allowed.iter().any(|rule| within(rule) && rule.covers(path))
        };
        let is_source = places.iter().all(|place| place.shows_source);
        let is_asked_for = || {
            let asked = |place: &Place| place.shows_source || spelled_out(place);
            places.iter().all(asked)
                && path_standing(path, allowed, forbidden) != PathStanding::Forbidden
        };
        let shown = is_source || is_asked_for();
        let list = if shown { &mut visible } else { &mut hidden };
        list.push((path, highest));
    }
    Masks {
        masked: highest_places(&hidden, &visible),
        shown: highest_places(&visible, &hidden),
    }
}

/// Configuration for agents at the top of a workspace, where every agent looks for orders.
pub fn is_agent_config_at_top(path: &TreePath) -> bool {
    let parts = parts(path);
    parts.split_last().is_some_and(|(name, dirs)| {
        let near = dirs.iter().all(|dir| dir.eq_ignore_ascii_case(b".vscode"));
        dirs.first().is_some_and(|dir| is_agent_dir(dir)) || near && agent_file(dirs, name)
    })
}

/// Whether programs that come by take orders from a file or directory of this name: agents, editors,
/// and a shell that is told to enter environments.
pub(super) fn gives_orders(path: &TreePath) -> bool {
    let parts = parts(path);
    parts
        .split_last()
        .is_some_and(|(name, dirs)| agent_file(dirs, name) || name.eq_ignore_ascii_case(b".envrc"))
}

/// Which of these new files may count as litter that no patch carries. Not what lies in a directory
/// of the repository that is hidden, or would be if it were not asked for by name, and not what the
/// contract spells out: it would be gone without a word.
pub fn litter(new: Vec<TreePath>, start: &Tree, allowed: &[PathRule]) -> Vec<TreePath> {
    if new.is_empty() {
        return new;
    }
    let source_dirs = source_dirs(start);
    let holds = |dir: &[u8]| {
        let from = TreePath::new([dir, b"/"].concat());
        let next = start.range(&from..).next();
        next.is_some_and(|(first, _)| first.as_bytes().starts_with(from.as_bytes()))
    };
    let in_hidden_dir = |path: &TreePath| {
        let bytes = path.as_bytes();
        let is_hidden = |dir: &[u8]| holds(dir) && !source_dirs.contains(dir);
        places(path)
            .into_iter()
            .any(|place| place.end < bytes.len() && is_hidden(&bytes[..place.end]))
    };
    let spelled_out = |path: &TreePath| {
        let is = |rule: &PathRule| named(rule) == Some(path.as_bytes()) && rule.covers(path);
        allowed.iter().any(is)
    };
    new.into_iter()
        .filter(|path| !in_hidden_dir(path) && !spelled_out(path))
        .collect()
}

/// Is this path hidden where nobody can spell it out? `is_code` says of a file that is no source by
/// its ending that it was made of some.
pub(super) fn is_hidden_by_name(path: &TreePath, is_code: bool) -> bool {
    places(path)
        .iter()
        .any(|place| !(place.shows_source || is_code && place.holds_source))
}

/// How a masked file looks to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// An empty file is in its place.
    Empty,
    /// The directory around it is empty.
    Gone,
}

/// The files of a tree that are masked, and what is seen in their place.
pub fn seen_of_masked(tree: &Tree, masked: &[TreePath]) -> Vec<(TreePath, Seen)> {
    let masked: BTreeSet<&TreePath> = masked.iter().collect();
    let seen = |path: &TreePath| {
        if masked.contains(path) {
            return Some(Seen::Empty);
        }
        let mut above = directories(path.as_bytes());
        above
            .any(|dir| masked.contains(&TreePath::new(dir)))
            .then_some(Seen::Gone)
    };
    match masked.is_empty() {
        true => Vec::new(),
        false => tree
            .keys()
            .filter_map(|path| seen(path).map(|seen| (path.clone(), seen)))
            .collect(),
    }
}

/// The inputs that would be hidden if they came with the repository. Whoever wrote the contract
/// spelled them out.
pub fn telling_inputs(inputs: &[PathRule]) -> Vec<TreePath> {
    let paths = inputs
        .iter()
        .map(|input| TreePath::new(input.as_str().trim_end_matches('/')));
    paths.filter(|path| !places(path).is_empty()).collect()
}

/// The masked place an input would be put into, where it would not be seen.
pub fn mask_over<'m>(masked: &'m [TreePath], input: &PathRule) -> Option<&'m TreePath> {
    let input = input.as_str().trim_end_matches('/').as_bytes();
    masked
        .iter()
        .find(|place| at_or_below(input, place.as_bytes()) || at_or_below(place.as_bytes(), input))
}

/// The directories a path lies in, highest first.
pub(super) fn directories(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

pub(super) fn at_or_below(path: &[u8], place: &[u8]) -> bool {
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The one path a rule spells out; a pattern spells out none.
fn named(rule: &PathRule) -> Option<&[u8]> {
    let text = rule.as_str();
    (!text.contains('*')).then(|| text.trim_end_matches('/').as_bytes())
}

fn parts(path: &TreePath) -> Vec<&[u8]> {
    path.as_bytes().split(|byte| *byte == b'/').collect()
}

/// Where each component ends.
fn ends(parts: &[&[u8]]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    parts.iter().map(move |part| {
        end += part.len() + 1;
        end - 1
    })
}

/// Where on a path something begins that is hidden.
struct Place {
    /// The length of that prefix.
    end: usize,
    /// A folder named for secrets, and this path is source in it.
    shows_source: bool,
    /// A folder named for secrets that programs have, too.
    holds_source: bool,
}

/// All of them, shortest first.
fn places(path: &TreePath) -> Vec<Place> {
    let (bytes, parts) = (path.as_bytes(), parts(path));
    let Some((name, dirs)) = parts.split_last() else {
        return Vec::new();
    };
    let hidden_dir = |(part, end): (&&[u8], usize)| {
        (is_agent_dir(part) || is_secret_dir(part)).then(|| Place {
            end,
            shows_source: is_source(name) && may_hold_source(part),
            holds_source: may_hold_source(part),
        })
    };
    let mut found: Vec<Place> = dirs
        .iter()
        .zip(ends(&parts))
        .filter_map(hidden_dir)
        .collect();
    // A link in the place of a directory is as good as the directory.
    if agent_file(dirs, name) || is_secret_file(dirs, name) || is_secret_dir(name) {
        found.push(Place {
            end: bytes.len(),
            shows_source: false,
            holds_source: false,
        });
    }
    found
}

/// `secrets` and `credentials` are words of programs, too; nobody keeps a package in `.ssh`.
fn may_hold_source(dir: &[u8]) -> bool {
    is_secret_dir(dir) && !dir.starts_with(b".")
}

fn is_source(name: &[u8]) -> bool {
    let ending = name.iter().rposition(|byte| *byte == b'.');
    ending.is_some_and(|dot| dot > 0 && is_one_of(&SOURCE_ENDINGS, &name[dot + 1..]))
}

/// The directories named for secrets in which source is shown.
fn source_dirs(tree: &Tree) -> BTreeSet<&[u8]> {
    let with_source = tree
        .keys()
        .map(TreePath::as_bytes)
        .filter(|path| is_source(last_part(path)));
    with_source
        .flat_map(directories)
        .filter(|dir| may_hold_source(last_part(dir)))
        .collect()
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Names each of these by the highest place, not above where its hiding begins, that holds none of
/// the others.
fn highest_places(these: &[(&TreePath, usize)], others: &[(&TreePath, usize)]) -> Vec<TreePath> {
    let others: BTreeSet<&[u8]> = others.iter().map(|(path, _)| path.as_bytes()).collect();
    let holds_another = |place: &[u8]| {
        let from = [place, b"/"].concat();
        others.contains(place)
            || others
                .range(from.as_slice()..)
                .next()
                .is_some_and(|path| path.starts_with(&from))
    };
    let place = |(path, begins): &(&TreePath, usize)| {
        let bytes = path.as_bytes();
        let mut candidates = directories(bytes)
            .filter(|dir| dir.len() >= *begins)
            .chain([bytes]);
        TreePath::new(
            candidates
                .find(|place| !holds_another(place))
                .unwrap_or(bytes),
        )
    };
    let found: BTreeSet<TreePath> = these.iter().map(place).collect();
    found.into_iter().collect()
}

fn is_one_of(table: &[&[u8]], name: &[u8]) -> bool {
    table.iter().any(|entry| entry.eq_ignore_ascii_case(name))
}

fn is_agent_dir(name: &[u8]) -> bool {
    is_one_of(&AGENT_DIRS, name)
}

fn is_secret_dir(name: &[u8]) -> bool {
    is_one_of(&SECRET_DIRS, name)
}

fn agent_file(dirs: &[&[u8]], name: &[u8]) -> bool {
    let of_editor = dirs
        .last()
        .is_some_and(|dir| dir.eq_ignore_ascii_case(b".vscode"))
        && is_one_of(&EDITOR_FILES, name);
    let at_top = dirs.is_empty() && is_one_of(&TOP_FILES, name);
    of_editor || at_top || is_one_of(&AGENT_FILES, name) || is_agent_dir(name)
}

fn is_secret_file(dirs: &[&[u8]], name: &[u8]) -> bool {
    let folded = name.to_ascii_lowercase();
    let kept = BACKUPS
        .iter()
        .find_map(|backup| folded.strip_suffix(*backup))
        .unwrap_or(&folded);
    let of_docker = kept == b"config.json"
        && dirs
            .last()
            .is_some_and(|dir| dir.eq_ignore_ascii_case(b".docker"));
    let listed = is_one_of(&SECRET_FILES, kept) && !is_translation(dirs, kept);
    of_docker || listed || ends_as_secret(kept) || begins_as_secret(kept)
}

fn is_between(byte: &u8) -> bool {
    matches!(byte, b'.' | b'-' | b'_')
}

/// `prod.env`, `release.keystore`, but no `example.env`.
fn ends_as_secret(name: &[u8]) -> bool {
    let stem = SECRET_ENDINGS
        .iter()
        .find_map(|ending| name.strip_suffix(*ending));
    let is_example = |stem: &[u8]| {
        let mut words = stem.split(is_between);
        words.any(|word| is_one_of(&EXAMPLES, word))
    };
    stem.is_some_and(|stem| !is_example(stem))
}

/// `.env`, `.envrc`, `id_rsa`, and each with more behind it.
fn begins_as_secret(name: &[u8]) -> bool {
    SECRET_STEMS.iter().any(|stem| {
        let Some(rest) = name.strip_prefix(*stem) else {
            return false;
        };
        let last = rest.rsplit(is_between).next().unwrap_or_default();
        let is_key = stem.starts_with(b"id_");
        rest.first().is_none_or(is_between)
            && !is_one_of(&EXAMPLES, last)
            && !(is_key && (last == b"pub" || is_source(name)))
    })
}

/// Words of a program about credentials, in the languages it speaks.
fn is_translation(dirs: &[&[u8]], name: &[u8]) -> bool {
    let is_text = [&b".json"[..], b".yml", b".yaml"];
    is_text.iter().any(|ending| name.ends_with(ending))
        && dirs.iter().any(|dir| is_one_of(&TRANSLATIONS, dir))
}

#[cfg(test)]
#[path = "masks_tests.rs"]
mod tests;
