//! What a file is, by its name and, where the name does not say, by its first bytes.

use super::scripts::Script;
use super::{after_mark, head};
use crate::values::paths::TreePath;

/// A language a program is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    Python,
    JavaScript,
    TypeScript,
    /// Markup with a script in it.
    Component,
    Go,
    Rust,
    /// C, C++ and Objective-C that is compiled by itself.
    C,
    /// What these include.
    Header,
    /// Other languages that know `#error`.
    Directive,
    Script(Script),
    /// Known as code; how it could fail in valid text is not.
    Other,
}

/// What a file is to whoever loads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nature {
    Source(Language),
    /// Read by tools before anything runs.
    Configuration,
    Template,
    Data,
    /// Text for people that somebody named, so that it is read by a program too.
    Prose,
    OtherText,
}

const LANGUAGES: &[(Language, &[&str])] = &[
    (Language::Python, &["py", "pyw", "pyx"]),
    (Language::JavaScript, &["js", "mjs", "cjs", "jsx", "es6"]),
    (Language::TypeScript, &["ts", "mts", "cts", "tsx"]),
    (Language::Component, &["vue", "svelte", "astro"]),
    (Language::Go, &["go"]),
    (Language::Rust, &["rs"]),
    (Language::C, &["c", "cc", "cpp", "cxx", "c++", "m", "mm"]),
    (
        Language::Header,
        &[
            "h", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tpp", "tcc", "cu", "cuh",
        ],
    ),
    (Language::Directive, &["cs", "swift", "sx"]),
    (
        Language::Script(Script::Shell),
        &["sh", "bash", "zsh", "ksh", "dash", "fish", "bats"],
    ),
    (
        Language::Script(Script::Ruby),
        &["rb", "rake", "gemspec", "ru"],
    ),
    (Language::Script(Script::Perl), &["pl", "pm", "t", "psgi"]),
    (
        Language::Script(Script::Php),
        &["php", "phpt", "php5", "phtml"],
    ),
    (Language::Script(Script::Lua), &["lua"]),
    (Language::Script(Script::Tcl), &["tcl"]),
    (Language::Script(Script::R), &["r"]),
    (Language::Script(Script::Julia), &["jl"]),
    (Language::Script(Script::Elixir), &["exs"]),
    (Language::Script(Script::Awk), &["awk"]),
    (
        Language::Other,
        &[
            "java", "kt", "kts", "scala", "sc", "groovy", "gradle", "fs", "fsx", "vb", "dart",
            "hs", "ml", "mli", "ex", "erl", "hrl", "clj", "cljs", "cljc", "nim", "zig", "d", "pas",
            "f", "f90", "f95", "s", "asm", "pyi", "pxd", "pxi", "coffee", "sql", "proto",
            "graphql", "gql", "thrift", "sol", "tf", "nix", "bzl", "star", "l", "y", "lex", "ps1",
            "bat", "cmd", "vim", "el", "lisp", "scm", "rkt", "wat", "v", "sv", "vhd",
        ],
    ),
];

const CONFIGURATION: &[&str] = &[
    "json",
    "json5",
    "jsonc",
    "toml",
    "yaml",
    "yml",
    "ini",
    "cfg",
    "conf",
    "mk",
    "mak",
    "cmake",
    "xml",
    "gyp",
    "gypi",
    "ipynb",
    "mod",
    "work",
    "npmrc",
    "coveragerc",
    "pylintrc",
    "flake8",
    "babelrc",
    "eslintrc",
    "prettierrc",
    "mocharc",
    "nycrc",
    "swcrc",
];
const TEMPLATES: &[&str] = &[
    "html",
    "htm",
    "xhtml",
    "j2",
    "jinja",
    "jinja2",
    "hbs",
    "handlebars",
    "mustache",
    "ejs",
    "erb",
    "tmpl",
    "tpl",
    "twig",
    "liquid",
    "haml",
    "slim",
    "pug",
    "mako",
    "njk",
    "tmx",
    "gotmpl",
    "css",
    "scss",
    "sass",
    "less",
    "styl",
];
const DATA: &[&str] = &[
    "csv", "tsv", "dat", "data", "bin", "db", "sqlite", "jsonl", "ndjson", "wasm", "so", "a", "o",
    "dll", "dylib", "pyc", "pyo", "pyd", "class", "jar", "whl", "zip", "gz", "tgz", "bz2", "xz",
    "zst", "tar", "7z", "ttf", "otf", "woff", "woff2", "mp3", "mp4", "wav", "ogg", "pdf",
    "parquet", "npy", "npz", "pkl", "pickle", "mo", "snap",
];
const PROSE: &[&str] = &["md", "markdown", "mdx", "rst", "adoc", "asciidoc", "txt"];

/// Whole names, in small letters, that say more than an extension or have none.
const NAMES: &[(Nature, &[&str])] = &[
    (
        Nature::Configuration,
        &[
            "makefile",
            "gnumakefile",
            "cmakelists.txt",
            "justfile",
            "dockerfile",
            "containerfile",
            "meson.build",
            "build",
            "build.bazel",
            "workspace",
            "procfile",
            "jenkinsfile",
            "pipfile",
            "manifest.in",
        ],
    ),
    (
        Nature::Source(Language::Python),
        &["sconstruct", "sconscript", "wscript"],
    ),
    (
        Nature::Source(Language::Script(Script::Ruby)),
        &["rakefile", "gemfile", "guardfile", "vagrantfile", "podfile"],
    ),
    (
        Nature::Source(Language::Script(Script::Shell)),
        &[
            "configure",
            "gradlew",
            "mvnw",
            ".envrc",
            ".bashrc",
            ".profile",
        ],
    ),
];

/// Interpreters, as the first line of a script names them; longer versions of a name are meant too.
const INTERPRETERS: &[(&str, Language)] = &[
    ("python", Language::Python),
    ("pypy", Language::Python),
    ("node", Language::JavaScript),
    ("bun", Language::TypeScript),
    ("tsx", Language::TypeScript),
    ("ts-node", Language::TypeScript),
    ("deno", Language::TypeScript),
    ("sh", Language::Script(Script::Shell)),
    ("bash", Language::Script(Script::Shell)),
    ("dash", Language::Script(Script::Shell)),
    ("zsh", Language::Script(Script::Shell)),
    ("ksh", Language::Script(Script::Shell)),
    ("fish", Language::Script(Script::Shell)),
    ("ruby", Language::Script(Script::Ruby)),
    ("perl", Language::Script(Script::Perl)),
    ("php", Language::Script(Script::Php)),
    ("lua", Language::Script(Script::Lua)),
    ("luajit", Language::Script(Script::Lua)),
    ("tclsh", Language::Script(Script::Tcl)),
    ("Rscript", Language::Script(Script::R)),
    ("julia", Language::Script(Script::Julia)),
    ("elixir", Language::Script(Script::Elixir)),
    ("awk", Language::Script(Script::Awk)),
    ("gawk", Language::Script(Script::Awk)),
];

/// What this file is. Whether it has to be seen is asked elsewhere.
pub fn nature(path: &TreePath, bytes: &[u8]) -> Nature {
    if is_binary(bytes) {
        return Nature::Data;
    }
    let name = String::from_utf8_lossy(file_name(path)).to_ascii_lowercase();
    if let Some(nature) = by_name(&name) {
        return refined(nature, &name, bytes);
    }
    match interpreter(bytes) {
        Some(language) => Nature::Source(language),
        None => Nature::OtherText,
    }
}

/// Is it code by its name alone, whatever stands in it?
pub fn is_source_by_name(path: &TreePath) -> bool {
    let name = String::from_utf8_lossy(file_name(path)).to_ascii_lowercase();
    matches!(by_name(&name), Some(Nature::Source(_)))
}

fn by_name(name: &str) -> Option<Nature> {
    let whole = NAMES.iter().find(|(_, names)| names.contains(&name));
    if let Some((nature, _)) = whole {
        return Some(*nature);
    }
    let (_, end) = name.rsplit_once('.')?;
    let known = |ends: &[&str]| ends.contains(&end);
    let language = LANGUAGES.iter().find(|(_, ends)| known(ends));
    if let Some((language, _)) = language {
        return Some(Nature::Source(*language));
    }
    [
        (CONFIGURATION, Nature::Configuration),
        (TEMPLATES, Nature::Template),
        (DATA, Nature::Data),
        (PROSE, Nature::Prose),
    ]
    .into_iter()
    .find(|(ends, _)| known(ends))
    .map(|(_, nature)| nature)
}

/// Names that more than one language has.
fn refined(nature: Nature, name: &str, bytes: &[u8]) -> Nature {
    let declares = [".d.ts", ".d.mts", ".d.cts"]
        .iter()
        .any(|end| name.ends_with(end));
    match nature {
        // Declarations are never run.
        Nature::Source(Language::TypeScript) if declares => Nature::Source(Language::Other),
        // The language of Qt's translations is XML.
        Nature::Source(Language::TypeScript) if bytes.starts_with(b"<?xml") => {
            Nature::Configuration
        }
        // A page of HTML with no code in it.
        Nature::Source(Language::Script(Script::Php)) if !has_php(bytes) => Nature::Template,
        // Tests of Perl have this end, and so have other texts.
        Nature::Source(Language::Script(Script::Perl)) if name.ends_with(".t") => {
            match interpreter(bytes) {
                Some(language) => Nature::Source(language),
                None if looks_like_perl(bytes) => nature,
                None => Nature::OtherText,
            }
        }
        other => other,
    }
}

fn has_php(bytes: &[u8]) -> bool {
    bytes
        .windows(5)
        .any(|part| part.eq_ignore_ascii_case(b"<?php"))
}

fn looks_like_perl(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"use ") && line.trim_ascii_end().ends_with(b";"))
}

/// As git decides it: a NUL near the beginning.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}

/// The language the first line names.
fn interpreter(bytes: &[u8]) -> Option<Language> {
    let line = bytes.get(after_mark(bytes)..head(bytes))?;
    let line = String::from_utf8_lossy(line);
    let line = line.strip_prefix("#!")?;
    let program = line.split_whitespace().find_map(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        let skipped = name == "env" || name.starts_with('-') || name.contains('=');
        (!skipped).then(|| name.to_owned())
    })?;
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS
        .iter()
        .find(|(name, _)| *name == plain)
        .map(|(_, language)| *language)
}

pub(super) fn file_name(path: &TreePath) -> &[u8] {
    path.as_bytes()
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default()
}
