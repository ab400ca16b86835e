//! A program that is about to be admitted: looked at as a file, asked in a jail who it is, and what
//! is around it: its package's version, its packages, the program that runs it. Nothing is written.

use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::engine::manifest::interpreter::too_old;
use cto_core::gate::{Binary, ToolchainUse};
use cto_core::values::digest::Digest;
use cto_core::values::text::{excerpt, tame};
use serde_json::{Map, Value, json};

use super::{identity, interpreter, look_at, package, packages};
use crate::host::failure::Failure;
use crate::host::{Env, Home};
use crate::supervise::cancel::Cancel;

/// What is shown of a program's last words.
const LINES: usize = 6;
const COLUMNS: usize = 160;

/// A program that was looked at and asked.
pub struct Examined {
    pub path: String,
    pub sha256: Digest,
    pub identity: String,
    pub version: String,
    pub package_version: Option<String>,
    pub interpreter: Option<Interpreter>,
    /// Everything it was installed with, where it comes with packages.
    pub packages_sha256: Option<Digest>,
    pub is_temporary: bool,
}

/// The program that runs it.
pub struct Interpreter {
    pub name: String,
    pub path: String,
    pub sha256: Digest,
    pub version: String,
}

impl Examined {
    /// The same as fields of an executable admission.
    pub fn fields(&self) -> Map<String, Value> {
        let mut map = Map::new();
        put(&mut map, "path", json!(self.path));
        put(&mut map, "sha256", json!(self.sha256));
        put(&mut map, "identity_output", json!(self.identity));
        put(&mut map, "version", json!(self.version));
        if let Some(version) = &self.package_version {
            put(&mut map, "package_version", json!(version));
        }
        if let Some(own) = &self.interpreter {
            map.extend(own.fields());
        }
        if let Some(sha256) = &self.packages_sha256 {
            put(&mut map, "packages_sha256", json!(sha256));
        }
        map
    }
}

impl Interpreter {
    /// The same as fields of an executable admission.
    pub fn fields(&self) -> Map<String, Value> {
        let mut map = Map::new();
        put(&mut map, "interpreter", json!(self.name));
        put(&mut map, "interpreter_path", json!(self.path));
        put(&mut map, "interpreter_sha256", json!(self.sha256));
        if !self.version.is_empty() {
            put(&mut map, "interpreter_version", json!(self.version));
        }
        map
    }
}

fn put(map: &mut Map<String, Value>, name: &str, value: Value) {
    map.insert(name.to_owned(), value);
}

pub fn not_admitted(why: &str) -> Failure {
    Failure::blocked("executable_not_admitted", "the file cannot be admitted").reason(why)
}

/// A path that was typed, from where it was typed. A bare name stays one: a shell would look for it
/// on PATH, and we do not.
pub fn named(path: &Path) -> PathBuf {
    match path.components().nth(1) {
        Some(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        None => path.to_owned(),
    }
}

/// Looks at a file and asks it, in a jail, who it is; `word` must be among what it says.
pub fn examine(
    manifest: &Manifest,
    (bin, word): (&Path, Option<&str>),
    cancel: &Cancel,
    env: &Env,
    home: &Home,
) -> Result<Examined, Failure> {
    home.create()?;
    let refused = |failure: Failure| {
        failure
            .at(bin.display().to_string())
            .so("nothing was written")
    };
    let (path, sha256, is_temporary) = file(bin, env, home).map_err(refused)?;
    let program = Path::new(&path);
    let runs_on = written_for(manifest)
        .map(|name| asked(name, (manifest, program), cancel, env, home))
        .transpose()
        .map_err(refused)?;
    let (interpreter, shown) = runs_on.unzip();
    // Before it is asked: what it says is said by what is pinned.
    let packages_sha256 = package::packages_root(manifest, program)
        .map(|root| packages::pin(home, &root))
        .transpose()
        .map_err(|problem| refused(not_admitted(&problem.to_string())))?;
    let asked = (program, manifest.questions());
    let said = identity::ask(asked, shown.as_ref().map(Option::as_ref), cancel, env, home)?;
    if let Some(words) = &said.failed {
        return Err(refused(could_not_run(words, interpreter.as_ref(), program)));
    }
    let identity = who(manifest, program, word, &said).map_err(refused)?;
    let version = if said.version.is_empty() {
        "not said".to_owned()
    } else {
        said.version
    };
    let file = manifest.invocation.as_ref();
    let file = file.and_then(|own| own.version_file.as_deref());
    Ok(Examined {
        package_version: file.and_then(|name| package::package_version(program, name)),
        path,
        sha256,
        identity,
        version,
        interpreter,
        packages_sha256,
        is_temporary,
    })
}

/// What runs a program, asked for its version; none where its manifest knows of nothing that does.
pub fn interpreter_of(
    manifest: &Manifest,
    program: &Path,
    cancel: &Cancel,
    env: &Env,
    home: &Home,
) -> Result<Option<Interpreter>, Failure> {
    let found = written_for(manifest)
        .map(|name| asked(name, (manifest, program), cancel, env, home))
        .transpose()?;
    Ok(found.map(|(own, _)| own))
}

/// What it says about itself, where that names it. One that says nothing at all is what its package is
/// named: the package is pinned with it.
fn who(
    manifest: &Manifest,
    program: &Path,
    word: Option<&str>,
    said: &identity::Said,
) -> Result<String, Failure> {
    let word = word.unwrap_or(manifest.identity());
    let packages = manifest.invocation.as_ref();
    let packages = packages.and_then(|own| own.packages.as_deref());
    let named = || {
        let name = package::installed(program, packages)?.package.name;
        let own = name.rsplit('/').next().unwrap_or_default();
        (own == word).then(|| format!("it says nothing; its package is {name}"))
    };
    match (said.help.is_empty(), said.version.is_empty()) {
        (true, true) => named(),
        (false, _) if identity::names(said, word) => Some(said.help.clone()),
        (true, _) if identity::names(said, word) => Some(said.version.clone()),
        _ => None,
    }
    .ok_or_else(|| {
        not_admitted(&format!(
            "what it says about itself does not name {word:?}, so it is not {}",
            manifest.id
        ))
    })
}

fn file(bin: &Path, env: &Env, home: &Home) -> Result<(String, Digest, bool), Failure> {
    match look_at(bin, env, home) {
        Binary::Found {
            path,
            sha256,
            is_temporary,
        } => Ok((path, sha256, is_temporary)),
        Binary::NotNamed | Binary::NotAPath => Err(not_admitted(
            "it must be a path; a name, an alias or a shell keyword is no program",
        )),
        Binary::NotThere => Err(not_admitted("nothing is there")),
        Binary::NotRegular => Err(not_admitted("it is not a regular file")),
        Binary::NotExecutable => Err(not_admitted("it may not be executed")),
        Binary::Unreadable(why) => Err(not_admitted(&why)),
    }
}

/// What runs the file: what its manifest names, whatever the file is. Without it on record whatever PATH
/// has by that name would run unnoticed.
fn written_for(manifest: &Manifest) -> Option<&str> {
    manifest.invocation.as_ref()?.interpreter.as_deref()
}

/// What runs it, asked for its version; and what a jail must be shown of that. One that is too old ends
/// here: the program itself would fail in words of its own, or half work.
fn asked(
    name: &str,
    (manifest, program): (&Manifest, &Path),
    cancel: &Cancel,
    env: &Env,
    home: &Home,
) -> Result<(Interpreter, Option<ToolchainUse>), Failure> {
    let no = |why: &str| not_admitted(why).hint(interpreter::hint(name, manifest, program));
    let found = interpreter::find(name, manifest, program, env, home).map_err(|why| no(&why))?;
    let version = identity::version(&found.path, cancel, env, home)?;
    if let Some(why) = too_old(manifest, name, Some(&version)) {
        return Err(no(&why).reason(format!("it is {}", found.path.display())));
    }
    let text = found.path.to_str().map(str::to_owned);
    let own = Interpreter {
        name: name.to_owned(),
        path: text.ok_or_else(|| not_admitted("the path of its interpreter is not text"))?,
        sha256: found.sha256,
        version,
    };
    Ok((own, found.shown))
}

/// The program's own words about why it does not even say who it is, and what its package asks for.
fn could_not_run(words: &str, interpreter: Option<&Interpreter>, program: &Path) -> Failure {
    let mut failure = Failure::blocked(
        "executable_not_admitted",
        "the program fails when it is asked who it is",
    );
    let lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines
        .take(LINES)
        .map(|line| tame(&excerpt(line, COLUMNS)))
        .collect();
    failure = match lines.is_empty() {
        true => failure.reason("it says nothing"),
        false => lines.into_iter().fold(failure, |failure, line| {
            failure.reason(format!("it says: {line}"))
        }),
    };
    let Some(own) = interpreter else {
        return failure.hint("start it by hand once, and name it again when it runs");
    };
    let have = match own.version.is_empty() {
        true => own.name.clone(),
        false => format!("{} {}", own.name, tame(&own.version)),
    };
    match package::wanted(program, &own.name) {
        Some(wanted) => failure
            .reason(format!(
                "{have} runs it; its package asks for {} {wanted}",
                own.name
            ))
            .hint(format!(
                "put a {} on PATH that is {wanted}, first",
                own.name
            )),
        None => failure.reason(format!("{have} runs it")).hint(format!(
            "if it needs a newer {}, put that first on PATH",
            own.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_from_where_it_was_typed_and_a_name_is_not_a_path() {
        assert_eq!(named(Path::new("pi")), Path::new("pi"));
        assert_eq!(named(Path::new("/x/pi")), Path::new("/x/pi"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(named(Path::new("./pi")), here.join("pi"));
        assert_eq!(named(Path::new("bin/pi")), here.join("bin/pi"));
    }

    #[test]
    fn last_words_are_shown_tame_and_with_what_the_package_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("cli.js");
        std::fs::write(&program, "").unwrap();
        let node = Interpreter {
            name: "node".into(),
            path: "/usr/bin/node".into(),
            sha256: Digest::of(b"node"),
            version: "v20.1.0".into(),
        };
        let said = |failure: Failure| format!("{:?} {:?}", failure.because, failure.hint);
        let plain = said(could_not_run(
            "Syntax\u{202e}Error\n\nat x",
            Some(&node),
            &program,
        ));
        assert!(plain.contains("it says: Syntax\u{fffd}Error"), "{plain}");
        assert!(plain.contains("node v20.1.0 runs it"), "{plain}");
        let package = r#"{"name": "pi", "engines": {"node": ">=22.19.0"}}"#;
        std::fs::write(dir.path().join("package.json"), package).unwrap();
        let asked = said(could_not_run("x", Some(&node), &program));
        assert!(asked.contains("asks for node >=22.19.0"), "{asked}");
        let nothing = said(could_not_run("", None, &program));
        assert!(nothing.contains("it says nothing"), "{nothing}");
    }
}
