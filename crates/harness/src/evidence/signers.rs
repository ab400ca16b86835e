//! `records/signers/allowed_signers`: whose approvals count here, in OpenSSH's own form. Believed like every
//! record: nobody but root and the operator could have written it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cto_core::bundle::approval::signers::{MAX_SIGNERS, Signers, line};
use cto_core::containment::ownership;

use crate::evidence::keys::{put_new, replace};
use crate::host::{self, Home, files, way};

pub fn path(home: &Home) -> PathBuf {
    at(&home.root)
}

fn at(root: &Path) -> PathBuf {
    root.join("records/signers/allowed_signers")
}

/// Whose approvals count; nobody's where there is no such file. Why it cannot be believed, otherwise.
pub fn of(home: &Home) -> Result<Signers, String> {
    below(&home.root)
}

/// The same for the state home at this path.
pub fn below(root: &Path) -> Result<Signers, String> {
    let path = at(root);
    let no = |why: &dyn std::fmt::Display| format!("the record of allowed signers {why}");
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Signers::default()),
        Err(error) => return Err(no(&error)),
        Ok(meta) if meta.is_symlink() => return Err(no(&"is a link")),
        Ok(_) => {}
    }
    let file = files::open_regular(&path).map_err(|error| no(&error))?;
    let mut steps = way::walk(&path).map_err(|error| no(&error))?;
    let meta = file.metadata().map_err(|error| no(&error))?;
    steps.pop();
    steps.push(way::open_step(&path, &meta));
    if let Some(stranger) = ownership::stranger(&steps) {
        return Err(no(&format!(
            "could have been written by someone else: {stranger}"
        )));
    }
    let bytes = files::read_open(file, MAX_SIGNERS).map_err(|error| no(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| no(&"is not text"))?;
    Signers::read(&text).map_err(|problem| no(&format!("cannot be used: {problem}")))
}

/// Lets approvals count that this key signs. What was there before is kept beside it.
pub fn add(home: &Home, actor: &str, ssh_key: &str) -> Result<PathBuf, String> {
    let path = path(home);
    of(home)?;
    let before = match files::read_limited(&path, MAX_SIGNERS) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.to_string()),
    };
    let end = match before.is_empty() || before.ends_with('\n') {
        true => "",
        false => "\n",
    };
    let after = format!("{before}{end}{}", line(actor, ssh_key));
    Signers::read(&after).map_err(|problem| problem.to_string())?;
    let dir = path.parent().unwrap_or(&home.root);
    let put = || -> std::io::Result<()> {
        host::make_private_dir(&dir.join("history"))?;
        if !before.is_empty() {
            let number = std::fs::read_dir(dir.join("history"))?.count() + 1;
            let kept = dir.join(format!("history/allowed_signers.{number:06}"));
            put_new(&kept, before.as_bytes())?;
        }
        replace(&path, after.as_bytes())
    };
    put().map_err(|error| error.to_string())?;
    Ok(path)
}
