//! What may stand where in a request: a place is a row of an allow-list, and a walk holds a
//! document against the places as it is read. What no place names is refused, whatever it is.

use std::borrow::Cow;

use super::{media, schema};
use crate::wire::calls::RefusalReason;
use crate::wire::json_scan::Value;

/// What may stand at one place. `null` may stand everywhere: it says nothing.
#[derive(Debug)]
pub(super) enum Place {
    /// Anything at all: the engine's own words, such as the arguments of a call.
    Free,
    /// A schema: anything that refers to nothing outside of the request.
    Schema,
    /// A text, a number or a truth value.
    Scalar,
    /// Nothing but `null`.
    Null,
    /// `false`.
    Off,
    /// `1`: of several answers at once only one would be looked at as a whole.
    One,
    /// One of these texts, exactly.
    Word(&'static [&'static str]),
    /// The kind of a tool that runs where the engine is, exactly. Any other the provider would run.
    Kind(&'static [&'static str]),
    /// Bytes of a picture or a document in a `data:` URL. No other URL: the provider would fetch it.
    Inline,
    /// Bytes in base64, or as above.
    Encoded,
    /// As above, or any words in an object whose `type` is this.
    EncodedUnless(&'static str),
    /// An object of scalars, under any keys.
    Flat,
    /// An object of these keys and no others.
    Keys(&'static [(&'static str, Place)]),
    /// As above, and in it every key of at least one of these sets, with more than `null`: without
    /// them the provider would take it for something else.
    Whole(
        &'static [&'static [&'static str]],
        &'static [(&'static str, Place)],
    ),
    /// A tool whose kind is its key: these are the engine's, any other is the provider's.
    Tool(&'static [(&'static str, Place)]),
    List(&'static Place),
    /// One of several; no two of them take the same kind of value.
    Either(&'static [Place]),
    /// Described elsewhere, and so possibly within itself.
    At(&'static Place),
}

/// What of a value matters for the choice between places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Scalar,
    Object,
    List,
}

impl Sort {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::ObjectBegins | Value::ObjectEnds => Self::Object,
            Value::ArrayBegins | Value::ArrayEnds => Self::List,
            Value::Text { .. } | Value::Number(_) | Value::Bool(_) | Value::Null => Self::Scalar,
        }
    }
}

impl Place {
    /// The place behind references, and behind a choice the one for this sort of value.
    fn settled(&'static self, sort: Sort) -> Option<&'static Self> {
        match self {
            Self::At(place) => place.settled(sort),
            Self::Either(several) => several.iter().find_map(|one| one.settled(sort)),
            Self::Free | Self::Schema => Some(self),
            Self::Flat | Self::Keys(_) | Self::Whole(..) | Self::Tool(_) => {
                (sort == Sort::Object).then_some(self)
            }
            Self::List(_) => (sort == Sort::List).then_some(self),
            Self::Scalar
            | Self::Null
            | Self::Off
            | Self::One
            | Self::Word(_)
            | Self::Kind(_)
            | Self::Inline
            | Self::Encoded
            | Self::EncodedUnless(_) => (sort == Sort::Scalar).then_some(self),
        }
    }

    fn takes_scalar(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Free | Self::Schema | Self::Scalar, _) | (_, Value::Null) => true,
            (Self::Off, value) => *value == Value::Bool(false),
            (Self::One, value) => *value == Value::Number("1"),
            // Whether it may be words is known when its object ends.
            (Self::EncodedUnless(_), Value::Text { .. }) => true,
            (Self::Word(words) | Self::Kind(words), Value::Text { text, whole: true }) => {
                words.contains(text)
            }
            (Self::Inline, Value::Text { text, .. }) => media::is_inline(text),
            (Self::Encoded, Value::Text { text, .. }) => media::is_encoded(text),
            _ => false,
        }
    }

    fn keys(&self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Keys(keys) | Self::Whole(_, keys) | Self::Tool(keys) => keys,
            _ => &[],
        }
    }

    fn why(&self) -> RefusalReason {
        match self {
            Self::Kind(_) | Self::Tool(_) => RefusalReason::HostedTool,
            _ => RefusalReason::RequestField,
        }
    }
}

/// What was found that may not pass: why, and the place of it, in the words of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub why: RefusalReason,
    pub field: String,
}

/// A field is named in so many bytes at most.
const MAX_FIELD: usize = 160;
const MAX_WORD: usize = 40;
/// Stands for the keys that there was no room for.
const CUT: &str = "(longer)";

impl Refused {
    pub fn new(why: RefusalReason, path: &str) -> Self {
        Self {
            why,
            field: shown(path).into_owned(),
        }
    }

    /// The word that was refused is told too, where it is plainly a word.
    fn with_word(mut self, value: &Value<'_>) -> Self {
        if let Value::Text { text, whole: true } = value
            && is_word(text)
        {
            self.field = format!("{}={text}", self.field);
        }
        self
    }
}

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    !text.is_empty() && text.len() <= MAX_WORD && text.bytes().all(plain)
}

/// A path in letters that are safe to show and few enough.
fn shown(path: &str) -> Cow<'_, str> {
    let safe = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    if path.len() <= MAX_FIELD && path.chars().all(safe) {
        return Cow::Borrowed(path);
    }
    let tame: String = path
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    let mut shown = String::new();
    // Whole keys only: of a secret in one nobody would find the half that is left.
    for part in tame.split_inclusive('.') {
        if shown.len() + part.len() > MAX_FIELD - CUT.len() {
            shown.push_str(CUT);
            break;
        }
        shown.push_str(part);
    }
    Cow::Owned(shown)
}

fn key_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A container that is being read.
struct Open {
    place: &'static Place,
    /// Which of its keys had a value, by their position in the list.
    had: u64,
    /// What its `type` says, as a word of the list.
    kind: Option<&'static str>,
    /// A key that holds words, and what the `type` must then be.
    words: Option<(&'static str, &'static str)>,
}

impl Open {
    /// The key that an object should have had, and why it does not pass without.
    fn lacks(&self) -> Option<(&'static str, RefusalReason)> {
        if let Some((key, kind)) = self.words
            && self.kind != Some(kind)
        {
            return Some((key, RefusalReason::RequestField));
        }
        let Place::Whole(sets, keys) = self.place else {
            return None;
        };
        let place_of = |wanted: &str| keys.iter().position(|(name, _)| *name == wanted);
        let has = |wanted: &&str| place_of(wanted).is_some_and(|at| self.had >> at & 1 == 1);
        if sets.iter().any(|set| set.iter().all(has)) {
            return None;
        }
        let first = sets.first()?.first()?;
        let why = place_of(first).map_or(RefusalReason::RequestField, |at| keys[at].1.why());
        Some((first, why))
    }
}

/// Where in the places a document is being read.
pub(super) struct Walk<'a> {
    /// Paths that the operator allows beyond the list, exactly as a refusal names them.
    further: &'a [String],
    open: Vec<Open>,
    /// Containers open inside of what is free, or refused already.
    unjudged: usize,
}

impl<'a> Walk<'a> {
    pub fn new(further: &'a [String]) -> Self {
        Self {
            further,
            open: Vec::new(),
            unjudged: 0,
        }
    }

    /// Holds one value against its place. A container that is refused is refused as a whole.
    pub fn see(
        &mut self,
        root: &'static Place,
        path: &str,
        value: &Value<'_>,
    ) -> Result<(), Refused> {
        let begins = matches!(value, Value::ObjectBegins | Value::ArrayBegins);
        let ends = matches!(value, Value::ObjectEnds | Value::ArrayEnds);
        if self.unjudged > 0 {
            self.unjudged = self.unjudged + usize::from(begins) - usize::from(ends);
            return Ok(());
        }
        if ends {
            let lacks = self.open.pop().and_then(|open| open.lacks());
            return lacks.map_or(Ok(()), |(key, why)| {
                Err(Refused::new(why, &format!("{path}.{key}")))
            });
        }
        self.note(path, value);
        let judged = self.judge(root, path, value);
        if begins {
            match &judged {
                Ok(place) if !matches!(place, Place::Free) => {
                    self.open.push(Open {
                        place,
                        had: 0,
                        kind: None,
                        words: None,
                    });
                }
                _ => self.unjudged = 1,
            }
        }
        judged.map(|_| ())
    }

    /// Keeps in mind which key of the open object has a value, and what the object is by them.
    fn note(&mut self, path: &str, value: &Value<'_>) {
        let Some(open) = self.open.last_mut().filter(|_| *value != Value::Null) else {
            return;
        };
        let keys = open.place.keys();
        let Some(at) = keys.iter().position(|(name, _)| *name == key_of(path)) else {
            return;
        };
        open.had |= 1 << at.min(63);
        match (&keys[at], value) {
            (("type", Place::Word(words)), Value::Text { text, whole: true }) => {
                open.kind = words.iter().copied().find(|word| word == text);
            }
            ((key, Place::EncodedUnless(kind)), Value::Text { text, .. })
                if !media::is_encoded(text) =>
            {
                open.words = Some((key, kind));
            }
            _ => {}
        }
    }

    fn judge(
        &self,
        root: &'static Place,
        path: &str,
        value: &Value<'_>,
    ) -> Result<&'static Place, Refused> {
        let Some(place) = self.place_of(root, path)? else {
            return Ok(&Place::Free);
        };
        let sort = Sort::of(value);
        match place.settled(sort) {
            Some(Place::Schema) if !schema::stays_inside(key_of(path), value) => {
                if self.allows(path) {
                    Ok(&Place::Free)
                } else {
                    Err(Refused::new(RefusalReason::RequestField, path))
                }
            }
            Some(found) if sort != Sort::Scalar || found.takes_scalar(value) => Ok(found),
            _ if *value == Value::Null => Ok(place),
            _ if matches!(place, Place::Null) && self.allows(path) => Ok(&Place::Free),
            Some(found @ (Place::Word(_) | Place::Kind(_))) => {
                Err(Refused::new(found.why(), path).with_word(value))
            }
            Some(found) => Err(Refused::new(found.why(), path)),
            None => Err(Refused::new(place.why(), path)),
        }
    }

    /// The place of what stands at a path; nothing where the operator allows it unread.
    fn place_of(
        &self,
        root: &'static Place,
        path: &str,
    ) -> Result<Option<&'static Place>, Refused> {
        let Some(Open { place: parent, .. }) = self.open.last() else {
            return Ok(Some(root));
        };
        let key = key_of(path);
        match parent {
            Place::List(each) => Ok(Some(each)),
            Place::Flat => Ok(Some(&Place::Scalar)),
            Place::Schema => Ok(Some(&Place::Schema)),
            Place::Keys(keys) | Place::Whole(_, keys) | Place::Tool(keys) => {
                match keys.iter().find(|(name, _)| *name == key) {
                    Some((_, place)) => Ok(Some(place)),
                    None if self.allows(path) => Ok(None),
                    None => Err(Refused::new(parent.why(), path)),
                }
            }
            _ => Ok(None),
        }
    }

    fn allows(&self, path: &str) -> bool {
        self.further.iter().any(|field| field == path)
    }
}
