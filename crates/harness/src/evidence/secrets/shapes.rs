//! Well-known shapes of tokens. Byte-oriented: Unicode tables would cost more than the whole run.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = [
        r"sk-[A-Za-z0-9_-]{20,}",
        r"gh[pousr]_[A-Za-z0-9]{36,}",
        r"github_pat_[A-Za-z0-9_]{22,}",
        r"glpat-[A-Za-z0-9_-]{20,}",
        r"(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"xox[abprs]-[A-Za-z0-9-]{10,}",
        r"AIza[0-9A-Za-z_-]{35}",
        r"npm_[A-Za-z0-9]{36}",
        r"hf_[A-Za-z0-9]{30,}",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*",
    ]
    .join("|");
    // The pattern is a constant and a test compiles it.
    RegexBuilder::new(&pattern).unicode(false).build().ok()
});

/// Where a token begins and ends.
pub fn each(text: &[u8], found: &mut dyn FnMut(usize, usize)) {
    if let Some(shapes) = SHAPES.as_ref() {
        shapes
            .find_iter(text)
            .for_each(|token| found(token.start(), token.end()));
    }
}
