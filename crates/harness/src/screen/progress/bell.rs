//! The end of a long run, for somebody who has looked away: a notification where the terminal is known to
//! take one, else a bell.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::host::Env;

/// Nobody looks away for less.
const LONG: Duration = Duration::from_secs(10);

/// What a terminal does with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    Nothing,
    Bell,
    /// OSC 9: text that the desktop shows.
    Notification,
}

/// Does the terminal take a cursor that moves?
pub(super) fn takes_escapes(env: &Env) -> bool {
    let term = env.get("TERM");
    term.is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Who is known to show OSC 9. A multiplexer stands between, and passes a bell on.
fn takes(env: &Env) -> Takes {
    let text = |name: &str| {
        let value = env.get(name);
        value.map_or_else(String::new, |value| value.to_string_lossy().into_owned())
    };
    let term = text("TERM");
    if !takes_escapes(env) {
        return Takes::Nothing;
    }
    let multiplexed = term.starts_with("screen")
        || term.starts_with("tmux")
        || !text("TMUX").is_empty()
        || !text("STY").is_empty();
    let known = ["iTerm.app", "WezTerm", "ghostty"].contains(&text("TERM_PROGRAM").as_str())
        || ["xterm-kitty", "xterm-ghostty", "foot", "wezterm"].contains(&term.as_str());
    match known && !multiplexed {
        true => Takes::Notification,
        false => Takes::Bell,
    }
}

/// The bytes that call somebody after so long; none for a run that was watched to its end anyway.
fn call(took: Duration, takes: Takes, words: &str) -> Option<String> {
    let plain: String = words.chars().filter(|c| matches!(c, ' '..='~')).collect();
    match takes {
        _ if took < LONG => None,
        Takes::Nothing => None,
        Takes::Bell => Some("\x07".to_owned()),
        Takes::Notification => Some(format!("\x1b]9;{plain}\x07")),
    }
}

/// Calls whoever looked away, where standard error is a terminal.
pub fn ring(since: Instant, env: &Env, words: &str) {
    let mut stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return;
    }
    if let Some(bytes) = call(since.elapsed(), takes(env), words) {
        // Nobody is called by a terminal that is gone.
        let _ = stderr.write_all(bytes.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_run_calls() {
        let after = |seconds| call(Duration::from_secs(seconds), Takes::Bell, "x");
        assert_eq!((after(0), after(9)), (None, None));
        assert_eq!(after(10).as_deref(), Some("\x07"));
        let long = |takes| call(LONG, takes, "cto: PASS a\x1b]0;b\x07");
        assert_eq!(long(Takes::Nothing), None);
        let sent = long(Takes::Notification).unwrap();
        assert_eq!(sent, "\x1b]9;cto: PASS a]0;b\x07");
    }

    #[test]
    fn terminals_get_what_they_take() {
        for (pairs, want) in [
            (&[][..], Takes::Nothing),
            (&[("TERM", "dumb")], Takes::Nothing),
            (
                &[("TERM", "dumb"), ("TERM_PROGRAM", "WezTerm")],
                Takes::Nothing,
            ),
            (&[("TERM", "xterm-256color")], Takes::Bell),
            (&[("TERM", "xterm-kitty")], Takes::Notification),
            (
                &[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")],
                Takes::Notification,
            ),
            (
                &[("TERM", "tmux-256color"), ("TERM_PROGRAM", "iTerm.app")],
                Takes::Bell,
            ),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], Takes::Bell),
        ] {
            assert_eq!(takes(&Env::from_pairs(pairs)), want, "{pairs:?}");
        }
    }
}
