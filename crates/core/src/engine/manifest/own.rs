//! A manifest of the operator's own: what is asked of it beyond what every manifest must be. It can
//! bring an engine, and nothing of the house: no name, no gate and no program that is already there.

use super::places::Step;
use super::{DEFAULT_ENGINE, Dialect, Manifest, ManifestError, Program, gate_variable, position};
use crate::records::secret_shape;
use crate::task::again::REVERIFY;
use crate::values::ids::EngineId;
use crate::values::text::is_dangerous;

/// Most letters of a title.
const MAX_TITLE: usize = 80;
/// Names that mean something else where engines are named, the double of the validators among them.
const RESERVED: [&str; 7] = [
    DEFAULT_ENGINE,
    REVERIFY,
    "none",
    "scripted-agent",
    "allow",
    // Records of repositories and of who may sign lie beside those of engines.
    "targets",
    "signers",
];

impl Manifest {
    /// Reads a manifest of the operator's own, which lies in a file of this name, beside these
    /// engines of the house.
    pub fn parse_own(
        file: &str,
        stem: &str,
        text: &str,
        built_in: &[Self],
    ) -> Result<Self, ManifestError> {
        let mut manifest = Self::parse(file, text)?;
        match manifest.not_ones_own(stem, built_in) {
            None => {
                manifest.own_text = Some(text.to_owned());
                Ok(manifest)
            }
            Some((at, what)) => {
                let (line, column) = position(text, &at);
                Err(ManifestError {
                    file: file.to_owned(),
                    line,
                    column,
                    what,
                })
            }
        }
    }

    /// The first thing in it that only the house may say.
    fn not_ones_own(&self, stem: &str, built_in: &[Self]) -> Option<(Vec<Step>, String)> {
        let at = |keys: &[&str], what: &str| {
            let keys = keys.iter().map(|key| Step::from(*key)).collect();
            Some((keys, what.to_owned()))
        };
        if let Some(what) = taken(&self.id, built_in) {
            return at(&["id"], &what);
        }
        if self.id.as_str() != stem {
            let what = format!("a file has the name of its engine: {}.toml", self.id);
            return at(&["id"], &what);
        }
        let title = self.title.trim();
        let fits = !title.is_empty() && title.chars().count() <= MAX_TITLE;
        if !fits || self.title.chars().any(is_dangerous) {
            let what = format!("a title is one line of at most {MAX_TITLE} letters");
            return at(&["title"], &what);
        }
        let Some(own) = &self.invocation else {
            return at(&["id"], "[invocation] must say how it is started");
        };
        if own.program == Program::Itself {
            let what = "an engine of your own is a program of its own: program = \"admitted\"";
            return at(&["invocation", "program"], what);
        }
        if own.dialect == Dialect::Fake {
            let what = "this dialect is the scripted engine's";
            return at(&["invocation", "dialect"], what);
        }
        self.secret()
    }

    /// What looks like a secret has no place in a file that goes into every bundle.
    fn secret(&self) -> Option<(Vec<Step>, String)> {
        let own = self.invocation.as_ref()?;
        let in_argv = own.argv.iter().enumerate().map(|(at, word)| {
            let way = vec![Step::from("argv"), Step::from(at)];
            (way, word.as_str())
        });
        let in_env = own.env.iter().map(|(name, value)| {
            let way = vec![Step::from("env"), Step::from(name.as_str())];
            (way, value.as_str())
        });
        let in_files = own.files.iter().enumerate().map(|(at, file)| {
            let way = vec![Step::from("files"), Step::from(at), Step::from("text")];
            (way, file.text.as_str())
        });
        in_argv
            .chain(in_env)
            .chain(in_files)
            .find_map(|(way, text)| {
                let why = secret_shape(text)?;
                let at = [Step::from("invocation")].into_iter().chain(way).collect();
                let what = format!("this {why}; a credential has no place in a manifest");
                Some((at, what))
            })
    }
}

/// Why an engine of one's own cannot have this name; none where it can.
pub fn taken(id: &EngineId, built_in: &[Manifest]) -> Option<String> {
    let same_gate = |have: &&Manifest| {
        have.id == *id || have.gated_by_env.as_deref() == Some(gate_variable(id).as_str())
    };
    if let Some(have) = built_in.iter().find(same_gate) {
        return Some(format!("{} is an engine of the house", have.id));
    }
    let reserved = RESERVED.contains(&id.as_str()) || id.as_str().starts_with("allow-");
    // The variables of an engine `allow` would be gates of others.
    reserved.then(|| format!("{id} means something else here"))
}
