//! The database file: opened, checked, reset when it is not what it should be, asked and filled.
//!
//! Every row carries a digest of itself, because a database finds torn pages and not changed bytes.
//! Whatever does not fit is [`IndexError::Damaged`], and the caller starts again with an empty one.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use cto_core::operator::listing::Filter;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior,
    params,
};

use super::bundles::Record;
use super::rows::{clause, decode, encode};
use crate::bundles::runs_root::Entry;
use crate::host::files;

/// `cto` and a digit, so that another program's database is known as one.
const APPLICATION: i32 = i32::from_be_bytes(*b"cto1");

/// Another number means another shape: the file is emptied and filled again, never converted.
const VERSION: i32 = 3;

const SCHEMA: [&str; 4] = [
    "CREATE TABLE roots (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, token TEXT) STRICT",
    // What is asked for stands first, what is only shown last: a scan reads no further than it
    // must.
    "CREATE TABLE runs (root INTEGER NOT NULL, key TEXT NOT NULL, inode INTEGER NOT NULL, own INTEGER NOT NULL, \
     state INTEGER NOT NULL, status TEXT, case_id TEXT, engine TEXT, stage INTEGER, origin TEXT, started INTEGER, \
     blockers TEXT, kind TEXT, finished INTEGER, reason TEXT, stamp TEXT, seal TEXT, again TEXT, sum INTEGER NOT NULL, \
     PRIMARY KEY (root, key)) STRICT, WITHOUT ROWID",
    "CREATE INDEX volatile ON runs (root) WHERE state > 1 OR own = 0",
    // The usual question names a case. Every filter is answered from here, none by looking up the
    // row.
    "CREATE INDEX by_case ON runs (root, case_id, key, status, engine, stage, origin, started, blockers)",
];
const COLUMNS: &str = "key, inode, own, state, status, case_id, engine, stage, origin, started, blockers, kind, \
                       finished, reason, stamp, seal, again, sum";

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Something else lies under that name; it is not ours to touch.
    #[error("{0} is not an index of this program")]
    NotOurs(String),
    #[error("the index is damaged: {0}")]
    Damaged(String),
    #[error("the index cannot be opened")]
    File(#[from] io::Error),
    #[error("the index cannot be used")]
    Database(#[source] rusqlite::Error),
    #[error("the runs root keeps changing")]
    Restless,
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        let is_damage = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => matches!(
                failure.code,
                ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
                    | ErrorCode::Unknown
                    | ErrorCode::ConstraintViolation
            ),
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::QueryReturnedNoRows => true,
            _ => false,
        };
        if is_damage {
            Self::Damaged(error.to_string())
        } else {
            Self::Database(error)
        }
    }
}

pub(super) fn damaged(what: impl ToString) -> IndexError {
    IndexError::Damaged(what.to_string())
}

pub struct Store {
    db: Connection,
}

/// Looked at as a plain file: opening another program's database could already change it.
fn may_be_ours(path: &Path) -> io::Result<bool> {
    const APPLICATION_AT: usize = 68;
    let mut head = Vec::with_capacity(100);
    files::open_regular(path)?
        .take(100)
        .read_to_end(&mut head)?;
    let is_database = head.starts_with(b"SQLite format 3\0");
    let application = head.get(APPLICATION_AT..APPLICATION_AT + 4);
    Ok(match is_database {
        // Made a moment ago and not yet filled.
        _ if head.is_empty() => true,
        true => application == Some(&APPLICATION.to_be_bytes()[..]),
        false => false,
    })
}

/// A runs root the index has seen.
pub struct KnownRoot {
    pub id: i64,
    /// The change token at the last look at all names, when that could be trusted.
    pub token: Option<String>,
}

/// A name the index knows, and what it knows of the directory behind it.
#[derive(PartialEq, Eq)]
pub struct KnownName {
    pub inode: u64,
    pub is_own_directory: bool,
}

impl KnownName {
    pub fn of(entry: &Entry) -> Self {
        Self {
            inode: entry.inode,
            is_own_directory: entry.is_own_directory,
        }
    }
}

impl Store {
    /// Opens the file, and makes it where there is none. `patience` is how long to wait for other
    /// writers.
    pub fn open(path: &Path, patience: Duration) -> Result<Self, IndexError> {
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_file() && may_be_ours(path)? => {}
            Ok(_) => return Err(IndexError::NotOurs(path.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .mode(0o600)
                    .open(path)?;
            }
            Err(error) => return Err(error.into()),
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let store = Self {
            db: Connection::open_with_flags(path, flags)?,
        };
        store.db.busy_timeout(patience)?;
        store
            .db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        store
            .db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        // A run must not wait for the disk because of its index. The log is emptied by whoever
        // finds it long: it is read through by each process that comes alone.
        store
            .db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(store)
    }

    /// Is this an index, of this shape? An empty file is made one; a foreign database is left
    /// alone.
    pub fn prepare(&mut self) -> Result<(), IndexError> {
        self.db.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8000; \
             PRAGMA journal_size_limit = 1048576; PRAGMA wal_autocheckpoint = 64;",
        )?;
        let number = |pragma: &str| {
            self.db
                .query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0))
        };
        let (application, version) = (number("application_id")?, number("user_version")?);
        let found: Vec<String> = {
            let mut statement = self
                .db
                .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
            statement
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?
        };
        match (application, version) {
            (APPLICATION, VERSION) if found == SCHEMA => Ok(()),
            (0 | APPLICATION, _) if found.is_empty() => self.create(),
            (APPLICATION, _) => Err(damaged("it has another shape")),
            _ => Err(IndexError::NotOurs(
                self.db.path().unwrap_or_default().to_owned(),
            )),
        }
    }

    fn create(&mut self) -> Result<(), IndexError> {
        // Before there is a log: whose file this is must stand in the file itself.
        self.db
            .execute_batch(&format!("PRAGMA application_id = {APPLICATION};"))?;
        self.db
            .query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        let tx = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been quicker.
        let tables: i64 =
            tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            tx.execute_batch(&SCHEMA.join(";"))?;
            tx.execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            ))?;
        }
        Ok(tx.commit()?)
    }

    /// Empties a file that is no good, under the database's own locks: removing it would pull it
    /// from under whoever has it open.
    pub fn reset(&mut self) -> Result<(), IndexError> {
        self.db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
        let emptied = self.db.execute_batch("VACUUM");
        self.db
            .set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
        emptied?;
        self.prepare()
    }

    pub fn root(&self, path: &[u8]) -> Result<Option<KnownRoot>, IndexError> {
        let known = |row: &Row<'_>| {
            Ok(KnownRoot {
                id: row.get(0)?,
                token: row.get(1)?,
            })
        };
        Ok(self
            .db
            .query_row("SELECT id, token FROM roots WHERE path = ?1", [path], known)
            .optional()?)
    }

    /// The newest runs of a root, and whether there are more.
    pub fn newest(&self, root: i64, limit: usize) -> Result<Vec<Record>, IndexError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE root = ?1 ORDER BY key DESC LIMIT ?2");
        self.records(&sql, params![root, limit as i64])
    }

    /// Runs that must be looked at every time.
    pub fn volatile(&self, root: i64) -> Result<Vec<Record>, IndexError> {
        let few = "runs INDEXED BY volatile WHERE root = ?1 AND (state > 1 OR own = 0)";
        self.records(&format!("SELECT {COLUMNS} FROM {few}"), params![root])
    }

    fn records(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Record>, IndexError> {
        let mut statement = self.db.prepare(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(decode(row)?);
        }
        Ok(found)
    }

    /// The newest `limit` runs that match, and how many match in all.
    pub fn query(
        &self,
        root: i64,
        filter: &Filter,
        limit: usize,
    ) -> Result<(Vec<Record>, usize), IndexError> {
        let (clause, values) = clause(root, filter);
        let mut statement = self.db.prepare(&format!(
            "SELECT key FROM runs WHERE {clause} ORDER BY key DESC"
        ))?;
        let mut rows = statement.query(rusqlite::params_from_iter(values))?;
        let mut keys: Vec<String> = Vec::new();
        let mut total = 0;
        while let Some(row) = rows.next()? {
            if total < limit {
                keys.push(row.get(0)?);
            }
            total += 1;
        }
        let mut one = self.db.prepare(&format!(
            "SELECT {COLUMNS} FROM runs WHERE root = ?1 AND key = ?2"
        ))?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let mut rows = one.query(params![root, key])?;
            // Gone since: the caller notices that fewer came than were counted.
            if let Some(row) = rows.next()? {
                found.push(decode(row)?);
            }
        }
        Ok((found, total))
    }

    pub fn begin(&mut self) -> Result<Change<'_>, IndexError> {
        Ok(Change {
            tx: self
                .db
                .transaction_with_behavior(TransactionBehavior::Immediate)?,
        })
    }

    /// Moves what a large change left in the log to its place.
    pub fn settle(&self) {
        // Somebody reads just now: the log stays, and the next one tries again.
        let _ = self
            .db
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// One transaction that holds the only right to write.
pub struct Change<'a> {
    tx: Transaction<'a>,
}

impl Change<'_> {
    /// The root's row, made where there is none. Roots that are gone are forgotten on the way.
    pub fn root(
        &self,
        path: &[u8],
        is_gone: impl Fn(&[u8]) -> bool,
    ) -> Result<KnownRoot, IndexError> {
        let mut statement = self.tx.prepare("SELECT id, path, token FROM roots")?;
        let all: Vec<(i64, Vec<u8>, Option<String>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        if let Some((id, _, token)) = all.iter().find(|(_, known, _)| known == path) {
            return Ok(KnownRoot {
                id: *id,
                token: token.clone(),
            });
        }
        for (id, _, _) in all.iter().filter(|(_, known, _)| is_gone(known)) {
            self.forget_runs(*id)?;
            self.tx.execute("DELETE FROM roots WHERE id = ?1", [id])?;
        }
        self.tx
            .execute("INSERT INTO roots (path) VALUES (?1)", [path])?;
        Ok(KnownRoot {
            id: self.tx.last_insert_rowid(),
            token: None,
        })
    }

    pub fn forget_runs(&self, root: i64) -> Result<(), IndexError> {
        self.tx
            .execute("DELETE FROM runs WHERE root = ?1", [root])?;
        Ok(())
    }

    /// Hands over every name of a root: its sort key, and what is known of the directory behind it.
    pub fn each_name(
        &self,
        root: i64,
        mut each: impl FnMut(&str, KnownName),
    ) -> Result<(), IndexError> {
        let mut statement = self
            .tx
            .prepare("SELECT key, inode, own FROM runs WHERE root = ?1")?;
        let mut rows = statement.query([root])?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(0)?.as_str().map_err(damaged)?;
            each(
                key,
                KnownName {
                    inode: row.get::<_, i64>(1)? as u64,
                    is_own_directory: row.get(2)?,
                },
            );
        }
        Ok(())
    }

    pub fn remove(&self, root: i64, key: &str) -> Result<(), IndexError> {
        self.tx.execute(
            "DELETE FROM runs WHERE root = ?1 AND key = ?2",
            params![root, key],
        )?;
        Ok(())
    }

    pub fn set_token(&self, root: i64, token: Option<&str>) -> Result<(), IndexError> {
        self.tx.execute(
            "UPDATE roots SET token = ?2 WHERE id = ?1",
            params![root, token],
        )?;
        Ok(())
    }

    /// Writes many rows with one prepared statement.
    pub fn writer(
        &self,
        root: i64,
    ) -> Result<impl FnMut(&Record) -> Result<(), IndexError>, IndexError> {
        let sql = format!(
            "INSERT OR REPLACE INTO runs (root, {COLUMNS}) VALUES (?1{})",
            ", ?".repeat(18)
        );
        let mut statement = self.tx.prepare(&sql)?;
        Ok(move |record: &Record| {
            let values = std::iter::once(Value::Integer(root)).chain(encode(record)?);
            statement.execute(rusqlite::params_from_iter(values))?;
            Ok(())
        })
    }

    pub fn commit(self) -> Result<(), IndexError> {
        Ok(self.tx.commit()?)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
