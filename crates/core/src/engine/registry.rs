//! Every engine there is: those of the house, and the operator's own. One list for help, validation
//! and dispatch; a manifest that is broken is named, and refuses its own engine alone.

use crate::engine::manifest::Manifest;
use crate::values::ids::EngineId;

/// The engines of one command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registry {
    built_in: Vec<Manifest>,
    own: Vec<Manifest>,
    broken: Vec<Broken>,
}

/// A manifest of the operator's own that is not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The engine that its file is named after, where that is a name.
    pub id: Option<EngineId>,
    pub file: String,
    pub why: String,
}

/// Where an engine comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    House,
    Operator,
}

impl From {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::House => "built-in",
            Self::Operator => "own",
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named<'a> {
    Known(&'a Manifest),
    Broken(&'a Broken),
    Unknown,
}

impl Registry {
    /// Engines of the house come first, `fake` before all.
    pub fn new(mut built_in: Vec<Manifest>, mut own: Vec<Manifest>, broken: Vec<Broken>) -> Self {
        built_in.sort_by(|a, b| (a.is_gated(), &a.id).cmp(&(b.is_gated(), &b.id)));
        own.sort_by(|a, b| a.id.cmp(&b.id));
        // Nothing of the operator's stands for an engine of the house.
        own.retain(|manifest| !built_in.iter().any(|have| have.id == manifest.id));
        Self {
            built_in,
            own,
            broken,
        }
    }

    pub fn all(&self) -> impl Iterator<Item = (From, &Manifest)> {
        let house = self.built_in.iter().map(|manifest| (From::House, manifest));
        let own = self.own.iter().map(|manifest| (From::Operator, manifest));
        house.chain(own)
    }

    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    pub fn named(&self, id: &str) -> Named<'_> {
        let known = self.all().find(|(_, manifest)| manifest.id.as_str() == id);
        if let Some((_, manifest)) = known {
            return Named::Known(manifest);
        }
        let is_it = |broken: &&Broken| broken.id.as_ref().is_some_and(|have| have.as_str() == id);
        match self.broken.iter().find(is_it) {
            Some(broken) => Named::Broken(broken),
            None => Named::Unknown,
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
