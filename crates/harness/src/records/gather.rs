//! What records and environment say about a lane, gathered for the gates. Nothing is run and
//! nothing is changed.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::Id;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::{Binary, Credential, Endpoint, Interpreter, LaneFacts, Packages};
use cto_core::records::credential::CredentialWay;
use cto_core::records::{ExecutableAdmission, Found, ModelAdmission, RecordKind};
use cto_core::run::event::Origin;
use cto_core::values::ids::EngineId;
use cto_core::wire::endpoint;

use super::package::{package_version, packages_root};
use super::{RecordStore, examine, find, interpreter, packages};
use crate::host::digest_cache;
use crate::host::files;
use crate::host::way::operator_file::{self, FileProblem, Privacy};
use crate::host::{self, Env, Home, programs, workers};
use crate::task::lane::{LaneOptions, variable};

/// A base URL is short.
const MAX_URL_FILE: u64 = 4096;
/// Where anything may be cleaned away or replaced.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The protocol asked for, where anybody asked for one.
pub fn protocol(engine: &EngineId, asked: &LaneOptions, env: &Env) -> Option<String> {
    asked
        .protocol
        .clone()
        .or_else(|| text(env, engine, "MODEL_PROTOCOL"))
}

fn text(env: &Env, engine: &EngineId, name: &str) -> Option<String> {
    // What is no text is no name of anything; it is kept so that it is refused, not passed over.
    env.get(&variable(engine, name))
        .map(|value| value.to_string_lossy().into_owned())
}

/// Looks for every record of the lane and at everything the records name.
pub fn gather(
    manifest: &Manifest,
    asked: &LaneOptions,
    by: Origin,
    env: &Env,
    home: &Home,
) -> LaneFacts {
    let mut facts = glance(manifest, asked, env, home);
    facts.is_the_harness = !by.is_validator() && is_own(&facts.binary, home);
    facts.packages = packages_of(manifest, &facts.binary, facts.executable.known(), home);
    facts
}

/// The same with every proof of the engine, whatever stage is meant.
pub fn gather_with_proofs(
    manifest: &Manifest,
    asked: &LaneOptions,
    by: Origin,
    env: &Env,
    home: &Home,
) -> LaneFacts {
    // Both look at many files, and neither at those of the other. Proofs that were not found are none.
    let (proofs, facts) = workers::both(
        || super::proofs(&manifest.id, home, by),
        || gather(manifest, asked, by, env, home),
    );
    LaneFacts {
        proofs: proofs.unwrap_or_default(),
        ..facts
    }
}

/// The same for a list of engines: packages count as what the record says, and no proof is looked for.
/// No gate is ever asked with it.
pub fn glance(manifest: &Manifest, asked: &LaneOptions, env: &Env, home: &Home) -> LaneFacts {
    let engine = &manifest.id;
    let store = RecordStore::of(home, engine);
    let place = |flag: &Option<PathBuf>, name: &str, kind: RecordKind| {
        flag.clone()
            .or_else(|| env.path(&variable(engine, name)))
            .unwrap_or_else(|| store.path(kind))
    };
    let model: Found<ModelAdmission> = find(&place(
        &asked.model_admission,
        "MODEL_ADMISSION_FILE",
        RecordKind::Model,
    ));
    let (executable, binary) = program(engine, asked, env, home);
    LaneFacts {
        decision: find(&place(
            &asked.decision,
            "DECISION_FILE",
            RecordKind::Decision,
        )),
        source: find(&place(
            &asked.source_admission,
            "SOURCE_ADMISSION_FILE",
            RecordKind::Source,
        )),
        gate: super::gate::recorded(engine, home),
        asked_provider: asked
            .provider
            .clone()
            .or_else(|| text(env, engine, "MODEL_PROVIDER")),
        asked_model: asked.model.clone().or_else(|| text(env, engine, "MODEL")),
        package_version: installed_version(manifest, &binary),
        interpreter: interpreter_of(manifest, &binary, executable.known(), env, home),
        packages: recorded_packages(manifest, &binary, executable.known()),
        endpoint: match base_url(engine, asked, env, model.known()) {
            None => Endpoint::NotGiven,
            Some(Err(why)) => Endpoint::Unreadable(why),
            Some(Ok(url)) => endpoint::Endpoint::parse(&url)
                .map_or_else(Endpoint::Refused, |endpoint| {
                    Endpoint::Given(endpoint.facts())
                }),
        },
        credential: credential(engine, asked, env, home, model.known()),
        auth_bridge: model
            .known()
            .and_then(|model| manifest.auth_bridge(&model.provider))
            .is_some_and(|bridge| env.get(&bridge.variable).is_some_and(|said| said == "1")),
        is_the_harness: false,
        // Found for the stage that is meant, once the lane is known.
        proofs: Vec::new(),
        now: host::now(),
        model,
        binary,
        executable,
    }
}

/// Is the file this very program? One that cannot be compared is not taken for it: its record names another.
fn is_own(binary: &Binary, home: &Home) -> bool {
    let own = std::env::current_exe().and_then(|own| digest_cache::digest(home, &own));
    binary
        .sha256()
        .is_some_and(|found| own.is_ok_and(|own| own == found))
}

/// The admission of the engine's program, and the file that would be run.
pub fn program(
    engine: &EngineId,
    asked: &LaneOptions,
    env: &Env,
    home: &Home,
) -> (Found<ExecutableAdmission>, Binary) {
    let record = asked
        .executable_admission
        .clone()
        .or_else(|| env.path(&variable(engine, "EXECUTABLE_ADMISSION_FILE")))
        .unwrap_or_else(|| RecordStore::of(home, engine).path(RecordKind::Executable));
    let executable = find(&record);
    let named = asked
        .bin
        .clone()
        .or_else(|| env.path(&variable(engine, "BIN")));
    let binary = binary(named, &executable, env, home);
    (executable, binary)
}

/// The base URL of this run. Its text belongs to the gateway and to the redactor, and nowhere else.
pub fn base_url(
    engine: &EngineId,
    asked: &LaneOptions,
    env: &Env,
    model: Option<&ModelAdmission>,
) -> Option<Result<String, String>> {
    let Some(file) = &asked.base_url_file else {
        if let Some(given) = env.get(&variable(engine, "LOCAL_BASE_URL")) {
            let text = given.to_str().map(str::to_owned);
            return Some(text.ok_or_else(|| "it is not text".to_owned()));
        }
        let recorded = Path::new(model?.base_url_file.as_ref()?);
        let text = operator_file::read_text(recorded, MAX_URL_FILE, Privacy::Private);
        return Some(text.map_err(|problem| format!("the file of the record {problem}")));
    };
    let bytes = file
        .canonicalize()
        .and_then(|real| files::read_limited(&real, MAX_URL_FILE));
    // The kind of error alone: a path may say more than it should.
    let text = bytes.map_err(|error| error.kind().to_string());
    Some(text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())))
}

fn binary(
    named: Option<PathBuf>,
    record: &Found<ExecutableAdmission>,
    env: &Env,
    home: &Home,
) -> Binary {
    // What was typed counts from where it was typed.
    let named = named.map(|path| examine::named(&path));
    let Some(path) = named.or_else(|| record.known().map(|record| PathBuf::from(&record.path)))
    else {
        return Binary::NotNamed;
    };
    look_at(&path, env, home)
}

/// The version that the files around the program name.
fn installed_version(manifest: &Manifest, binary: &Binary) -> Option<String> {
    let name = manifest.invocation.as_ref()?.version_file.as_deref()?;
    match binary {
        Binary::Found { path, .. } => package_version(Path::new(path), name),
        _ => None,
    }
}

/// What the record says the program was installed with; nothing is looked at.
fn recorded_packages(
    manifest: &Manifest,
    binary: &Binary,
    record: Option<&ExecutableAdmission>,
) -> Packages {
    let (Binary::Found { path, .. }, Some(record)) = (binary, record) else {
        return Packages::None;
    };
    let around = packages_root(manifest, Path::new(path));
    match (around, record.packages_sha256) {
        (None, _) => Packages::None,
        (Some(_), None) => Packages::NotPinned,
        (Some(_), Some(sha256)) => Packages::Found {
            sha256,
            state: sha256,
            id: Id::NONE,
            difference: None,
        },
    }
}

/// What the program was installed with, held against its record.
fn packages_of(
    manifest: &Manifest,
    binary: &Binary,
    record: Option<&ExecutableAdmission>,
    home: &Home,
) -> Packages {
    let (Binary::Found { path, .. }, Some(record)) = (binary, record) else {
        return Packages::None;
    };
    let Some(root) = packages_root(manifest, Path::new(path)) else {
        return Packages::None;
    };
    let Some(admitted) = record.packages_sha256 else {
        return Packages::NotPinned;
    };
    match packages::check(home, &root, admitted) {
        Ok(found) => Packages::Found {
            sha256: found.sha256,
            state: found.state,
            id: found.id,
            difference: found.difference,
        },
        Err(problem) => Packages::Unusable(problem.to_string()),
    }
}

/// What is found today by the name of the interpreter that was admitted.
fn interpreter_of(
    manifest: &Manifest,
    binary: &Binary,
    record: Option<&ExecutableAdmission>,
    env: &Env,
    home: &Home,
) -> Interpreter {
    let name = record.and_then(|record| record.interpreter.as_deref());
    let (Some(name), Binary::Found { path, .. }) = (name, binary) else {
        return Interpreter::NotRecorded;
    };
    interpreter::find(name, manifest, Path::new(path), env, home)
        .map_or_else(Interpreter::Missing, |found| {
            Interpreter::Found(found.sha256)
        })
}

/// A program as a file: no PATH, no shell, every link followed.
pub fn look_at(path: &Path, env: &Env, home: &Home) -> Binary {
    if !path.is_absolute() {
        return Binary::NotAPath;
    }
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Binary::NotThere,
        kind => Binary::Unreadable(kind.to_string()),
    };
    let (real, meta) = match path
        .canonicalize()
        .and_then(|real| real.metadata().map(|meta| (real, meta)))
    {
        Ok(found) => found,
        Err(error) => return unreadable(error),
    };
    if !meta.is_file() {
        return Binary::NotRegular;
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Binary::NotExecutable;
    }
    let Some(text) = real.to_str() else {
        return Binary::Unreadable("its path is not text".into());
    };
    match digest_cache::digest(home, &real) {
        Ok(sha256) => Binary::Found {
            path: text.to_owned(),
            sha256,
            is_temporary: is_temporary(&real, env),
        },
        Err(error) => unreadable(error),
    }
}

/// Below a directory that is emptied by itself and that others may write.
pub fn is_temporary(path: &Path, env: &Env) -> bool {
    let own = env.path("TMPDIR").and_then(|dir| dir.canonicalize().ok());
    TEMPORARY
        .iter()
        .map(PathBuf::from)
        .chain(own)
        .any(|dir| path.starts_with(dir))
}

/// The way the credential comes: the record's own, or the one given where the record has words.
pub fn credential_way(
    engine: &EngineId,
    asked: &LaneOptions,
    env: &Env,
    model: Option<&ModelAdmission>,
) -> Credential {
    let read = |text: &str| {
        CredentialWay::read(text).map_err(|problem| Credential::Refused(problem.to_string()))
    };
    let recorded = match model
        .map(|model| read(&model.credential_source_class))
        .transpose()
    {
        Ok(way) => way.flatten(),
        Err(refused) => return refused,
    };
    let given = asked
        .credential
        .clone()
        .or_else(|| text(env, engine, "CREDENTIAL"));
    let given = match given.as_deref().map(read).transpose() {
        Ok(None) => None,
        Ok(Some(Some(way))) => Some(way),
        Ok(Some(None)) => {
            return Credential::Refused(
                "a way is none, env:NAME, file:/PATH or command:/PROGRAM".into(),
            );
        }
        Err(refused) => return refused,
    };
    match (recorded, given) {
        (Some(recorded), Some(given)) if recorded != given => Credential::AnotherWay,
        (Some(way), _) | (None, Some(way)) => Credential::Ready(way),
        (None, None) => Credential::NoWay,
    }
}

fn credential(
    engine: &EngineId,
    asked: &LaneOptions,
    env: &Env,
    home: &Home,
    model: Option<&ModelAdmission>,
) -> Credential {
    let way = match credential_way(engine, asked, env, model) {
        Credential::Ready(way) => way,
        other => return other,
    };
    let there = match &way {
        CredentialWay::None => true,
        CredentialWay::Variable(name) => env.get(name).is_some(),
        CredentialWay::File(path) => match operator_file::credential(Path::new(path)) {
            Ok(()) => true,
            Err(FileProblem::Missing | FileProblem::Empty) => false,
            Err(problem) => {
                return Credential::Refused(format!("the credential's file {problem}"));
            }
        },
        CredentialWay::Command(words) => match programs::to_start(words, env, home) {
            Ok(_) => true,
            Err(none) => return Credential::Refused(none.to_string()),
        },
    };
    if there {
        Credential::Ready(way)
    } else {
        Credential::Missing(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(dir: &Path) -> Home {
        Home {
            root: dir.join("state"),
            runs: dir.join("runs"),
        }
    }

    #[test]
    fn a_program_is_a_regular_executable_file_and_nothing_a_shell_knows() {
        let dir = tempfile::tempdir().unwrap();
        let (env, home) = (Env::default(), home(dir.path()));
        let look = |path: &str| look_at(Path::new(path), &env, &home);
        let at = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(at("plain"), "x").unwrap();
        std::fs::write(at("program"), "x").unwrap();
        std::fs::set_permissions(at("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(at("program"), at("link")).unwrap();
        for keyword in ["case", "if", "pi", "./pi"] {
            assert_eq!(look(keyword), Binary::NotAPath, "{keyword}");
        }
        assert_eq!(look(&at("none")), Binary::NotThere);
        assert_eq!(look(&at("plain/x")), Binary::NotThere);
        assert_eq!(look(&at("")), Binary::NotRegular);
        assert_eq!(look("/dev/null"), Binary::NotRegular);
        assert_eq!(look(&at("plain")), Binary::NotExecutable);
        let Binary::Found { path, .. } = look(&at("link")) else {
            panic!("not found")
        };
        assert!(path.ends_with("/program"), "links are followed: {path}");
    }

    #[test]
    fn a_credential_comes_the_way_its_record_names() {
        let engine: EngineId = "pi".parse().unwrap();
        let record = |class: &str| {
            let value = serde_json::json!({
                "status": "admitted", "provider": "p", "model": "m", "credential_source_class": class,
                "allowed_network_class": "local", "approval_source": "a", "admission_timestamp": "2026-06-01",
                "review_trigger": "later",
            });
            cto_core::records::read::<ModelAdmission>(&serde_json::to_vec(&value).unwrap()).unwrap()
        };
        let env = Env::from_pairs(&[("K", "v"), ("CTO_HARNESS_PI_CREDENTIAL", "env:K")]);
        let got = |class: &str, flag: Option<&str>, env: &Env| {
            let asked = LaneOptions {
                credential: flag.map(str::to_owned),
                ..LaneOptions::default()
            };
            let home = home(Path::new("/nonexistent"));
            credential(&engine, &asked, env, &home, Some(&record(class)))
        };
        let none = Env::default();
        let ready = |name: &str| Credential::Ready(CredentialWay::Variable(name.into()));
        assert_eq!(got("env:K", None, &env), ready("K"));
        assert_eq!(got("my words", None, &env), ready("K"));
        assert_eq!(got("env:L", None, &env), Credential::AnotherWay);
        assert_eq!(
            got("env:L", None, &none),
            Credential::Missing(CredentialWay::Variable("L".into()))
        );
        assert_eq!(got("my words", None, &none), Credential::NoWay);
        assert_eq!(
            got("my words", Some("none"), &env),
            Credential::Ready(CredentialWay::None)
        );
        assert!(matches!(
            got("my words", Some("env:A=B"), &none),
            Credential::Refused(_)
        ));
        assert!(matches!(
            got("my words", Some("words"), &none),
            Credential::Refused(_)
        ));
        assert_eq!(
            got("file:/nowhere/k", None, &none),
            Credential::Missing(CredentialWay::File("/nowhere/k".into()))
        );
        assert!(matches!(
            got("command:/bin/sh -c x", None, &none),
            Credential::Ready(CredentialWay::Command(_))
        ));
    }
}
