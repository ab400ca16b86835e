//! A command line, split into options and words, and matched against a row of the table.

/// A command line, split into options and words.
pub(super) struct Line<'a> {
    pub(super) all: &'a [&'a [u8]],
    /// Words that are neither options nor their values, with their places.
    pub(super) words: Vec<(usize, &'a [u8])>,
    pub(super) options: Vec<(usize, &'a [u8])>,
}

impl<'a> Line<'a> {
    pub(super) fn read(all: &'a [&'a [u8]], valued: &str) -> Self {
        let (mut words, mut options) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(word) = all.get(at) {
            match word {
                [b'-', _, ..] if *word != b"--" => {
                    options.push((at, *word));
                    at += usize::from(valued.split(' ').any(|option| option.as_bytes() == *word));
                }
                // A toolchain, for `cargo`.
                [b'+', ..] if words.is_empty() => {}
                word if **word == *b"--" => {}
                word => words.push((at, *word)),
            }
            at += 1;
        }
        Self {
            all,
            words,
            options,
        }
    }

    /// The place of the last word a row matched.
    pub(super) fn matches(&self, row: &str) -> Option<usize> {
        let is =
            |pattern: &str, word: &[u8]| pattern.split('|').any(|name| name.as_bytes() == word);
        if row.is_empty() {
            return self.words.is_empty().then_some(0);
        }
        if let Some(pattern) = row.strip_prefix("* ") {
            let last_part = |word: &[u8]| {
                is(
                    pattern,
                    word.rsplit(|b| *b == b':').next().unwrap_or_default(),
                )
            };
            return self
                .words
                .iter()
                .find(|(_, word)| is(pattern, word) || last_part(word))
                .map(|(at, _)| *at);
        }
        let mut last = 0;
        let mut words = self.words.iter();
        for pattern in row.split(' ') {
            if pattern.starts_with("--") {
                self.options
                    .iter()
                    .find(|(_, option)| is(pattern, option))?;
                continue;
            }
            last = words.next().filter(|(_, word)| is(pattern, word))?.0;
        }
        Some(last)
    }

    /// Help or a version was asked for instead: before the last word that counts, or right after
    /// it. Further on, such a word may be the value of an option and excuses nothing.
    pub(super) fn asks_for_help(&self, at: usize) -> bool {
        let asks = |word: &[u8]| matches!(word, b"--help" | b"-h" | b"-help");
        let before = self
            .options
            .iter()
            .any(|(place, word)| *place <= at && (asks(word) || *word == b"--version"));
        let first = self.words.first().is_some_and(|(_, word)| *word == b"help");
        before
            || first
            || self
                .all
                .get(at + 1)
                .is_some_and(|word| asks(word) || *word == b"help")
    }
}
