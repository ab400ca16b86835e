//! `SHA256SUMS`: exactly the format that `sha256sum -c` reads; anything else is refused.

use std::collections::BTreeMap;

use crate::bundle;
use crate::values::digest::Digest;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SumsError {
    #[error("line {0} is not `<64 hex digits><two spaces><path>`")]
    Line(usize),
    #[error("line {0} names a path twice or out of order")]
    Order(usize),
    #[error("line {0} names a path that is absolute, empty or climbs out of the bundle")]
    Path(usize),
    #[error("the last line has no line end")]
    Unterminated,
    #[error("is not UTF-8")]
    NotUtf8,
}

/// Sorted by path, one line each, so that one set of files has one spelling.
pub fn format_sums(digests: &BTreeMap<String, Digest>) -> String {
    digests
        .iter()
        .map(|(path, digest)| format!("{digest}  {path}\n"))
        .collect()
}

pub fn parse_sums(bytes: &[u8]) -> Result<BTreeMap<String, Digest>, SumsError> {
    let text = std::str::from_utf8(bytes).map_err(|_| SumsError::NotUtf8)?;
    let mut out = BTreeMap::new();
    if text.is_empty() {
        return Ok(out);
    }
    let body = text.strip_suffix('\n').ok_or(SumsError::Unterminated)?;
    let mut last: Option<&str> = None;
    for (index, line) in body.split('\n').enumerate() {
        let number = index + 1;
        let (hex, path) = line.split_once("  ").ok_or(SumsError::Line(number))?;
        let digest: Digest = hex.parse().map_err(|_| SumsError::Line(number))?;
        if !bundle::is_safe_name(path) {
            return Err(SumsError::Path(number));
        }
        if last.is_some_and(|before| before >= path) {
            return Err(SumsError::Order(number));
        }
        last = Some(path);
        out.insert(path.to_owned(), digest);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> BTreeMap<String, Digest> {
        ["a", "backend/stdout.log", "z z"]
            .iter()
            .map(|p| ((*p).to_owned(), Digest::of(p.as_bytes())))
            .collect()
    }

    #[test]
    fn round_trip() {
        assert_eq!(parse_sums(format_sums(&sample()).as_bytes()), Ok(sample()));
        assert_eq!(parse_sums(b""), Ok(BTreeMap::new()));
    }

    #[test]
    fn refusals() {
        let hex = Digest::of(b"").to_hex();
        for (text, error) in [
            (format!("{hex}  a"), SumsError::Unterminated),
            (format!("{hex} *a\n"), SumsError::Line(1)),
            (format!("{}  a\n", hex.to_uppercase()), SumsError::Line(1)),
            (format!("{hex}  b\n{hex}  a\n"), SumsError::Order(2)),
            (format!("{hex}  a\n{hex}  a\n"), SumsError::Order(2)),
            (format!("{hex}  ../a\n"), SumsError::Path(1)),
            (format!("{hex}  /a\n"), SumsError::Path(1)),
            (format!("{hex}  \n"), SumsError::Path(1)),
            (format!("{hex}  a\n\n"), SumsError::Line(2)),
        ] {
            assert_eq!(parse_sums(text.as_bytes()), Err(error), "{text:?}");
        }
    }

    proptest! {
        /// What parses has one spelling: formatting it again gives the same bytes.
        #[test]
        fn one_spelling(at in 0usize..250, byte in any::<u8>()) {
            let mut bytes = format_sums(&sample()).into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Ok(map) = parse_sums(&bytes) {
                prop_assert_eq!(format_sums(&map).into_bytes(), bytes);
            }
        }
    }
}
