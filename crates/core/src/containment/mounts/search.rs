//! Where a jail looks for programs: the operator's PATH, entry by entry and in its order, as far as
//! each may be shown.
//!
//! A directory is searched as it is where it belongs to the system or to a place that was granted.
//! Of any other, programs are offered one by one, by links in a directory of ours at the same place
//! of PATH. A program that is not shown is never exchanged for a later one of its name in silence:
//! where there is one, a stand-in says so.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{Granted, HostPlace, House, Place, PlaceKind, is_system};

/// One entry of PATH, as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// As PATH has it.
    pub typed: PathBuf,
    pub place: Place,
    pub held: Vec<Held>,
}

/// What there is behind an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// A directory of an installation or an environment, and what of the host it needs.
    Whole { dir: PathBuf, mounts: Vec<Granted> },
    /// Programs looked at one by one.
    Programs(Vec<Candidate>),
    /// Nothing of it, and why.
    Nothing(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub name: String,
    pub offer: Offer,
    /// A later entry has another of that name.
    pub hides_another: bool,
}

impl Candidate {
    fn is_offered(&self) -> bool {
        !matches!(self.offer, Offer::NotShown(_))
    }
}

/// How a program is offered in a directory of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Offer {
    /// A link.
    Link { to: PathBuf, mounts: Vec<Granted> },
    /// A script of ours that starts one of several.
    Choice { text: String, mounts: Vec<Granted> },
    /// Not at all, and why.
    NotShown(String),
}

/// What a jail searches, in order, and what was left out of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchPath {
    pub parts: Vec<Part>,
    /// Directories of the system that every jail searches in the end. PATH does not have them, so
    /// nothing is said to be found there.
    pub last: Vec<PathBuf>,
    pub left_out: Vec<LeftOut>,
    /// Programs that are not offered, by name, and why.
    pub not_shown: BTreeMap<String, String>,
    /// What of the host programs need beside it, and the variables by which they find it.
    pub also: Vec<Granted>,
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A directory under its own name.
    Dir { dir: PathBuf, mounts: Vec<Granted> },
    /// A directory of ours.
    Ours(BTreeMap<String, Offer>),
}

/// An entry of PATH, or a part of one, that no jail searches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// With the operator's home written as `~`.
    pub path: String,
    pub why: Why,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It means another directory in each process.
    Relative,
    Missing,
    /// PATH cannot name where it really lies.
    Unspeakable,
    /// Somebody else owns it, or what it lies in.
    Owner(String),
    /// Others may write to it, or to what it lies in.
    Open(String),
    /// It is part of the repository that is copied, and no environment.
    InRepository,
    /// So many of its programs are not shown.
    Programs(usize),
    Refused(String),
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative => write!(out, "no absolute path"),
            Self::Missing => write!(out, "no directory"),
            Self::Unspeakable => write!(out, "its name is not UTF-8, or holds a colon"),
            Self::Owner(path) => write!(out, "{path} belongs to somebody else"),
            Self::Open(path) => write!(out, "others may write to {path}"),
            Self::InRepository => write!(out, "part of the repository"),
            Self::Programs(1) => write!(out, "one program of it"),
            Self::Programs(count) => write!(out, "{count} programs of it"),
            Self::Refused(why) => write!(out, "{why}"),
        }
    }
}

/// What decides beside the entries themselves.
#[derive(Clone, Copy, Debug)]
pub struct Searching<'a> {
    pub house: &'a House,
    /// The repository that is copied, without links.
    pub copied: Option<&'a Path>,
}

/// The jail's own PATH.
pub fn arrange(entries: Vec<Entry>, with: Searching<'_>) -> SearchPath {
    let mut search = SearchPath::default();
    for entry in entries {
        let name = with.house.shorten(&entry.typed);
        if let Some(why) = with.flaw(&entry) {
            search.leave_out(name, why);
            continue;
        }
        if is_system(&entry.place.path) {
            let own_name = is_system(&entry.typed);
            let dir = if own_name {
                entry.typed
            } else {
                entry.place.path
            };
            search.push(Part::Dir {
                dir,
                mounts: Vec::new(),
            });
            continue;
        }
        for held in entry.held {
            match held {
                Held::Whole { dir, .. } if !is_speakable(&dir) => {
                    search.leave_out(name.clone(), Why::Unspeakable);
                }
                Held::Nothing(why) => search.leave_out(name.clone(), Why::Refused(why)),
                Held::Whole { dir, mounts } if is_in(&dir, &mounts) || with.is_copied(&dir) => {
                    let mounts = with.beside_the_copy(mounts);
                    search.push(Part::Dir { dir, mounts });
                }
                Held::Whole { .. } => search.leave_out(name.clone(), Why::InRepository),
                Held::Programs(found) => search.offer(name.clone(), found, with),
            }
        }
    }
    search
}

impl Searching<'_> {
    /// What of the host is shown for a program. What lies in the repository is there by its copy or not
    /// at all: the original would cover what was changed, with files that nobody hid or watches.
    fn beside_the_copy(&self, mut mounts: Vec<Granted>) -> Vec<Granted> {
        mounts.retain(|granted| !self.is_copied(granted.path()));
        mounts
    }

    fn is_copied(&self, path: &Path) -> bool {
        self.copied.is_some_and(|top| path.starts_with(top))
    }

    /// Why an entry is not searched at all.
    fn flaw(&self, entry: &Entry) -> Option<Why> {
        if !entry.typed.is_absolute() {
            return Some(Why::Relative);
        }
        if entry.place.kind != PlaceKind::Directory {
            return Some(Why::Missing);
        }
        if !is_speakable(&entry.typed) || !is_speakable(&entry.place.path) {
            return Some(Why::Unspeakable);
        }
        if is_system(&entry.place.path) {
            return None;
        }
        let chain = &entry.place.chain;
        let operator = self.house.operator;
        let foreign = chain
            .iter()
            .find(|step| step.owner != 0 && step.owner != operator);
        if let Some(step) = foreign {
            return Some(Why::Owner(self.house.shorten(&step.path)));
        }
        if let Some(step) = chain.iter().find(|step| step.open) {
            return Some(Why::Open(self.house.shorten(&step.path)));
        }
        let copied = self.is_copied(&entry.place.path);
        let offers = |held: &Held| match held {
            Held::Programs(found) => found.iter().any(Candidate::is_offered),
            Held::Whole { .. } | Held::Nothing(_) => false,
        };
        let other = entry.held.is_empty() || entry.held.iter().any(offers);
        (copied && other).then_some(Why::InRepository)
    }
}

/// Can PATH have this as one entry? A colon makes two of it, and the second may be relative: it would
/// be looked for in the repository.
fn is_speakable(dir: &Path) -> bool {
    dir.to_str()
        .is_some_and(|name| !name.contains([':', '\n', '\0']))
}

/// Is a directory or program in one of these places, as a jail shows them, or in the system?
fn is_in(path: &Path, mounts: &[Granted]) -> bool {
    is_system(path)
        || mounts
            .iter()
            .any(|granted| path.starts_with(granted.target()))
}

impl SearchPath {
    fn leave_out(&mut self, path: String, why: Why) {
        self.left_out.push(LeftOut { path, why });
    }

    /// A directory that is searched already is not searched again.
    fn push(&mut self, part: Part) {
        let known = |other: &Part| match (other, &part) {
            (Part::Dir { dir: one, .. }, Part::Dir { dir: other, .. }) => one == other,
            _ => false,
        };
        if !self.parts.iter().any(known) {
            self.parts.push(part);
        }
    }

    fn offer(&mut self, entry: String, found: Vec<Candidate>, with: Searching<'_>) {
        let mut ours = BTreeMap::new();
        let mut not_shown = 0;
        for candidate in found {
            let Candidate {
                name,
                offer,
                hides_another,
            } = candidate;
            let offer = match offer {
                Offer::Link { to, mounts } if !is_in(&to, &mounts) && !with.is_copied(&to) => {
                    Offer::NotShown(format!("{} is not shown", to.display()))
                }
                Offer::Link { to, mounts } => Offer::Link {
                    to,
                    mounts: with.beside_the_copy(mounts),
                },
                offer => offer,
            };
            match &offer {
                Offer::NotShown(why) => {
                    not_shown += 1;
                    if self.offers(&name).is_none() && !self.not_shown.contains_key(&name) {
                        self.not_shown.insert(name.clone(), why.clone());
                    }
                    if !hides_another {
                        continue;
                    }
                }
                Offer::Link { .. } | Offer::Choice { .. } => {}
            }
            ours.insert(name, offer);
        }
        if not_shown > 0 {
            self.leave_out(entry, Why::Programs(not_shown));
        }
        if !ours.is_empty() {
            self.push(Part::Ours(ours));
        }
    }

    /// What a directory of ours has under a name.
    pub fn offers(&self, name: &str) -> Option<&Offer> {
        self.parts.iter().find_map(|part| match part {
            Part::Ours(ours) => ours.get(name),
            Part::Dir { .. } => None,
        })
    }

    /// Everything of the host this shows.
    pub fn mounts(&self) -> impl Iterator<Item = &Granted> {
        self.parts
            .iter()
            .flat_map(|part| {
                let lists: Vec<&[Granted]> = match part {
                    Part::Dir { mounts, .. } => vec![mounts],
                    Part::Ours(ours) => ours.values().map(Offer::mounts).collect(),
                };
                lists.into_iter().flatten()
            })
            .chain(&self.also)
    }

    /// PATH as a jail has it, with our directories below `ours`.
    pub fn variable(&self, ours: &str) -> String {
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(at, part)| match part {
            Part::Dir { dir, .. } => dir.display().to_string(),
            Part::Ours(_) => format!("{ours}/{at}"),
        });
        let last = self.last.iter().map(|dir| dir.display().to_string());
        parts.chain(last).collect::<Vec<_>>().join(":")
    }

    /// Where a directory of ours is needed.
    pub fn has_ours(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Ours(_)))
    }

    /// What was left out, as evidence names it. What is not there is not worth a word.
    pub fn not_searched(&self) -> Vec<HostPlace> {
        self.left_out
            .iter()
            .filter(|left| left.why != Why::Missing)
            .map(|left| HostPlace {
                path: left.path.clone(),
                what: left.why.to_string(),
            })
            .collect()
    }
}

impl Offer {
    /// The script of ours that stands under a name; a link needs none.
    pub fn script(&self, name: &str) -> Option<String> {
        match self {
            Self::Link { .. } => None,
            Self::Choice { text, .. } => Some(text.clone()),
            Self::NotShown(why) => {
                let said = format!("cto: {name} is not shown to this jail: {why}");
                let quoted = said.replace('\'', "'\\''");
                Some(format!("#!/bin/sh\necho '{quoted}' >&2\nexit 127\n"))
            }
        }
    }

    pub fn mounts(&self) -> &[Granted] {
        match self {
            Self::Link { mounts, .. } | Self::Choice { mounts, .. } => mounts,
            Self::NotShown(_) => &[],
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
