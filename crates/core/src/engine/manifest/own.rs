//! A manifest of the operator's own: what is asked of it beyond what every manifest must be. It can
//! bring an engine, and nothing of the house: no name, no gate and no program that is already there.

use super::places::Step;
use super::{
    DEFAULT_ENGINE, Dialect, Manifest, ManifestError, Program, gate_variable, own_secrets, position,
};
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
        let mistake = manifest
            .not_ones_own(stem, built_in)
            .map(|(at, what)| (position(text, &at), what))
            .or_else(|| own_secrets::secret(text));
        match mistake {
            None => {
                manifest.own_text = Some(text.to_owned());
                Ok(manifest)
            }
            Some(((line, column), what)) => Err(ManifestError {
                file: file.to_owned(),
                line,
                column,
                what,
            }),
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
        None
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
