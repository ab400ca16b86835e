//! What may change in a repository, out of the names of its files: where its code is, without tests, what continuous
//! integration reads, and lock files. Other names than these can always be typed.

use std::collections::{BTreeMap, BTreeSet};

use crate::checks::loading::not_code::{NotCode, by_table};
use crate::checks::names::test_files::{Names, is_runner_config, is_test_file};
use crate::run::rules::Rules;
use crate::values::paths::{PathRule, PathStanding, TreePath, path_standing};
use crate::values::text::is_dangerous;

/// What a repository is written in, as far as its test command shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    Node,
    Rust,
    Python,
    Go,
    C,
    Jvm,
    Any,
}

/// Rules as they are typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    pub allow: Vec<String>,
    pub forbid: Vec<String>,
    /// What is forbidden, each name once, for people: it holds at every depth.
    pub without: Vec<String>,
}

/// More rules than anybody reads: nothing is proposed then.
const MOST_ALLOWED: usize = 16;
const MOST_FORBIDDEN: usize = 128;
const MOST_DEPTH: usize = 16;
/// So many files at the top are named, more become a pattern.
const NAMED: usize = 6;
/// So many packages of a workspace are named, more become a pattern.
const PACKAGES: usize = 4;

/// Directories at the top that hold no code of the project.
const BESIDE: &[&str] = &[
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "build",
    "ci",
    "coverage",
    "dist",
    "doc",
    "docs",
    "example",
    "examples",
    "fixtures",
    "node_modules",
    "out",
    "samples",
    "scripts",
    "site",
    "target",
    "testdata",
    "third_party",
    "vendor",
    "website",
];
/// Directories of what tests read, at any depth.
const TEST_DATA: &[&str] = &["testdata", "__snapshots__", "__fixtures__", "__mocks__"];
const CI_DIRECTORIES: &[&str] = &[
    ".github",
    ".gitlab",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".forgejo",
    ".gitea",
    ".teamcity",
    ".azure-pipelines",
];
const CI_FILES: &[&str] = &[
    ".gitlab-ci.yml",
    ".travis.yml",
    "jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "appveyor.yml",
    ".appveyor.yml",
    ".drone.yml",
    ".cirrus.yml",
    ".woodpecker.yml",
    "cloudbuild.yaml",
];

impl Language {
    fn ends(self) -> &'static [&'static str] {
        match self {
            Self::Node => &[
                "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte",
            ],
            Self::Rust => &["rs"],
            Self::Python => &["py", "pyi", "pyx"],
            Self::Go => &["go"],
            Self::C => &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "m"],
            Self::Jvm => &["java", "kt", "scala", "groovy"],
            Self::Any => &[
                "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte", "rs", "py", "go", "c",
                "cc", "cpp", "cxx", "h", "hh", "hpp", "m", "java", "kt", "scala", "groovy", "rb",
                "php", "pl", "pm", "sh", "lua", "hs", "ml", "ex", "erl", "zig", "nim", "cs",
                "swift", "dart", "el", "awk",
            ],
        }
    }

    /// Where a package has its code, and the files that make a directory a package.
    fn package(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Rust => Some(("src", &["Cargo.toml"])),
            Self::Jvm => Some(("src/main", &["pom.xml", "build.gradle", "build.gradle.kts"])),
            _ => None,
        }
    }
}

/// A file by its parts, all of which can be typed.
struct Typable<'a> {
    parts: Vec<&'a str>,
}

impl<'a> Typable<'a> {
    fn of(path: &'a TreePath) -> Option<Self> {
        let text = std::str::from_utf8(path.as_bytes()).ok()?;
        let plain = |c: char| !is_dangerous(c) && !matches!(c, '*' | '\\');
        let trimmed = |part: &str| !part.is_empty() && part.trim() == part;
        let parts: Vec<&str> = text.split('/').collect();
        let good = text.chars().all(plain) && parts.iter().all(|part| trimmed(part));
        good.then_some(Self { parts })
    }

    fn name(&self) -> &'a str {
        self.parts.last().copied().unwrap_or_default()
    }

    fn dirs(&self) -> &[&'a str] {
        self.parts.split_last().map_or(&[], |(_, dirs)| dirs)
    }

    fn end(&self) -> &'a str {
        self.name().rsplit_once('.').map_or("", |(_, end)| end)
    }
}

pub fn of(files: &[TreePath], language: Language) -> Option<Scope> {
    let allow = match packages(files, language) {
        rules if rules.is_empty() => at_the_top(files, language),
        rules => rules,
    };
    if allow.is_empty() || allow.len() > MOST_ALLOWED {
        return None;
    }
    let rules = parsed(&allow)?;
    let (forbid, without) = forbidden(files, &rules)?;
    let forbidden = parsed(&forbid)?;
    // What the rules were made for is what they do, or nothing is proposed.
    let open = |path: &TreePath| path_standing(path, &rules, &forbidden) == PathStanding::Allowed;
    let wrong = files.iter().any(|path| is_left_out(path) && open(path));
    (!wrong && files.iter().any(open)).then_some(Scope {
        allow,
        forbid,
        without,
    })
}

fn parsed(rules: &[String]) -> Option<Vec<PathRule>> {
    rules.iter().map(|rule| rule.parse().ok()).collect()
}

/// Is this a test, read by tests, read by continuous integration, or a lock file?
fn is_left_out(path: &TreePath) -> bool {
    bad_directory(path).is_some() || bad_name(path).is_some()
}

/// The first directory of a path that holds such files alone, and its depth.
fn bad_directory(path: &TreePath) -> Option<(usize, String)> {
    let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
    let (_, dirs) = parts.split_last()?;
    dirs.iter().enumerate().find_map(|(depth, dir)| {
        let inside = TreePath::new([dir, b"/x".as_slice()].concat());
        let name = String::from_utf8_lossy(dir);
        let small = name.to_ascii_lowercase();
        let bad = is_test_file(Names::of(Rules::NEWEST), &inside)
            || TEST_DATA.contains(&small.as_str())
            || CI_DIRECTORIES.contains(&small.as_str());
        bad.then(|| (depth, name.into_owned()))
    })
}

/// A pattern for the name of such a file: whatever it fits is one too.
fn bad_name(path: &TreePath) -> Option<String> {
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next()?;
    let name = String::from_utf8_lossy(name).into_owned();
    let small = name.to_ascii_lowercase();
    let alone = TreePath::new(name.as_bytes().to_vec());
    if is_test_file(Names::of(Rules::NEWEST), &alone) {
        return Some(pattern_of(&name));
    }
    let exact = small == "conftest.py"
        || CI_FILES.contains(&small.as_str())
        || by_table(&alone) == Some(NotCode::LockFile);
    if small.ends_with(".snap") {
        return Some("*.snap".to_owned());
    }
    exact.then_some(name)
}

/// `test_app.py` becomes `test_*.py`, `app.spec.ts` `*.spec.ts`, `AppTest.java` `*Test.java`.
fn pattern_of(name: &str) -> String {
    let Some((stem, end)) = name.rsplit_once('.') else {
        return name.to_owned();
    };
    if matches!(end, "t" | "bats") {
        return format!("*.{end}");
    }
    for begin in ["test_", "test-"] {
        if stem.starts_with(begin) {
            return format!("{begin}*.{end}");
        }
    }
    // The last word with what stands before it, as it is written.
    let word = stem.rfind(['.', '_', '-']).and_then(|at| stem.get(at..));
    let class = ["TestCase", "Tests", "Test", "Spec", "IT"]
        .into_iter()
        .find(|word| stem.len() > word.len() && stem.ends_with(word));
    let patterns = [
        word.map(|word| format!("*{word}.{end}")),
        class.map(|word| format!("*{word}.{end}")),
        (stem.starts_with("test") && stem != "test" && end.starts_with("py"))
            .then(|| format!("test*.{end}")),
    ];
    // One that means a test by itself, whatever stands for the star.
    let means = |pattern: &String| {
        let other = pattern.replace('*', "Q");
        let other = TreePath::new(other.into_bytes());
        is_test_file(Names::of(Rules::NEWEST), &other)
    };
    let found = patterns.into_iter().flatten().find(means);
    found.unwrap_or_else(|| name.to_owned())
}

/// The code of the packages of a workspace.
fn packages(files: &[TreePath], language: Language) -> Vec<String> {
    let Some((code, manifests)) = language.package() else {
        return Vec::new();
    };
    let beside = |part: &&str| BESIDE.contains(part) || part.starts_with('.');
    let inner: Vec<&str> = code.split('/').collect();
    let (mut tops, mut holds) = (BTreeSet::new(), BTreeSet::new());
    for file in files.iter().filter_map(Typable::of) {
        if manifests.contains(&file.name()) && !file.parts.iter().any(beside) {
            tops.insert(file.dirs().join("/"));
        }
        if language.ends().contains(&file.end()) {
            let windows = file.dirs().windows(inner.len()).enumerate();
            let places = windows.filter(|(_, window)| *window == inner.as_slice());
            holds.extend(places.map(|(at, _)| file.parts[..at].join("/")));
        }
    }
    tops.retain(|top| holds.contains(top));
    let parent = |top: &str| top.rsplit_once('/').map(|(above, _)| above.to_owned());
    let mut siblings: BTreeMap<String, usize> = BTreeMap::new();
    for above in tops.iter().filter_map(|top| parent(top)) {
        *siblings.entry(above).or_default() += 1;
    }
    let rule = |top: &String| match parent(top) {
        _ if top.is_empty() => format!("{code}/"),
        Some(above) if siblings.get(&above).is_some_and(|count| *count > PACKAGES) => {
            format!("{above}/*/{code}/")
        }
        _ => format!("{top}/{code}/"),
    };
    let rules: BTreeSet<String> = tops.iter().map(rule).collect();
    rules.into_iter().collect()
}

/// Directories and files at the top that hold code.
fn at_the_top(files: &[TreePath], language: Language) -> Vec<String> {
    let (mut dirs, mut named) = (BTreeSet::new(), BTreeSet::new());
    for (path, file) in files.iter().filter_map(|f| Some((f, Typable::of(f)?))) {
        if !language.ends().contains(&file.end()) || is_left_out(path) {
            continue;
        }
        match file.parts.as_slice() {
            [name] => {
                let tells = is_runner_config(Names::of(Rules::NEWEST), path)
                    || name.starts_with('.')
                    || name.contains(".config.")
                    || matches!(
                        *name,
                        "setup.py" | "noxfile.py" | "gulpfile.js" | "Gruntfile.js"
                    );
                if !tells {
                    named.insert(((*name).to_owned(), file.end().to_owned()));
                }
            }
            [dir, ..] if !BESIDE.contains(dir) && !dir.starts_with('.') => {
                dirs.insert((*dir).to_owned());
            }
            _ => {}
        }
    }
    // The usual place, where there is one: what lies beside it is about the project.
    if matches!(language, Language::Python | Language::Node)
        && let Some(own) = ["src", "lib"].into_iter().find(|dir| dirs.contains(*dir))
    {
        dirs.retain(|dir| dir == own || dir == "packages");
        if language == Language::Python {
            named.clear();
        }
    }
    let mut rules: Vec<String> = dirs.iter().map(|dir| format!("{dir}/")).collect();
    if language == Language::Go || named.len() > NAMED {
        let ends: BTreeSet<&String> = named.iter().map(|(_, end)| end).collect();
        rules.extend(ends.into_iter().map(|end| format!("*.{end}")));
    } else {
        rules.extend(named.into_iter().map(|(name, _)| name));
    }
    rules
}

/// What is left out of these rules, at every depth they reach and one more.
fn forbidden(files: &[TreePath], allow: &[PathRule]) -> Option<(Vec<String>, Vec<String>)> {
    let mut dirs: BTreeSet<String> = BTreeSet::new();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut deepest = 0;
    let open = |path: &TreePath| path_standing(path, allow, &[]) == PathStanding::Allowed;
    for path in files.iter().filter(|path| open(path)) {
        let depth = path.as_bytes().iter().filter(|byte| **byte == b'/').count();
        deepest = deepest.max(depth);
        match bad_directory(path) {
            Some((_, name)) => dirs.insert(format!("{name}/")),
            None => bad_name(path).is_some_and(|name| names.insert(name)),
        };
    }
    let hidden = |name: &String| name.chars().any(is_dangerous);
    if deepest > MOST_DEPTH || names.iter().any(hidden) {
        return None;
    }
    // The top of every rule is the shallowest place that it reaches.
    let depth_of = |rule: &PathRule| rule.as_str().trim_end_matches('/').split('/').count();
    let subtree = |rule: &&PathRule| rule.as_str().ends_with('/');
    let shallow = allow.iter().filter(subtree).map(depth_of).min();
    let pattern = allow
        .iter()
        .any(|rule| !subtree(&rule) && rule.as_str().contains('*'));
    let mut forbid = Vec::new();
    for (set, top) in [(&dirs, false), (&names, pattern)] {
        let from = if top { Some(0) } else { shallow };
        for name in set {
            let Some(from) = from else { continue };
            // In the directory of files at the top there is no deeper one.
            let to = shallow.map_or(0, |_| deepest + 1);
            forbid.extend((from..=to).map(|depth| format!("{}{name}", "*/".repeat(depth))));
        }
    }
    let without: Vec<String> = dirs.into_iter().chain(names).collect();
    (forbid.len() <= MOST_FORBIDDEN).then_some((forbid, without))
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
