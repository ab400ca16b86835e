//! Descriptors 0–2 of a process in a jail: what each of them is, given what the operator's own are,
//! and when keys of the operator's terminal may be read for it.

/// One of the operator's descriptors 0–2, as the kernel describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// A terminal, by its device.
    Terminal { device: u64 },
    /// `/dev/null`, or nothing that could be read or written.
    Nothing,
    /// A file, pipe, socket or device, by its identity.
    Other { device: u64, inode: u64 },
}

/// What the process inside has in its place. Never what the operator holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The jail's own `/dev/null`.
    Nothing,
    /// A pipe of ours.
    Pipe,
    /// The pipe of standard output: what goes to one place stays in its order.
    SharedPipe,
    /// The one terminal of ours.
    Terminal,
}

/// Descriptors 0–2 as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wiring {
    pub ends: [End; 3],
    /// Which of them stands for the operator's terminal, if one does.
    pub terminal: Option<usize>,
    /// It has the keys from the start. Otherwise somebody else on the same terminal (a pager, say)
    /// may want them: they are read once it asks.
    pub keys_at_once: bool,
}

/// Decides what each descriptor inside is. Only one terminal is stood in for: bytes to a second one
/// go through a pipe and arrive where they belong.
pub fn wire(held: [Held; 3]) -> Wiring {
    let device = |held: &Held| match held {
        Held::Terminal { device } => Some(*device),
        Held::Nothing | Held::Other { .. } => None,
    };
    // Standard input first: it is where keys come from.
    let terminal = held.iter().position(|held| device(held).is_some());
    let stood_for = terminal.and_then(|at| device(&held[at]));
    let end = |held: &Held| match held {
        Held::Nothing => End::Nothing,
        Held::Terminal { device } if Some(*device) == stood_for => End::Terminal,
        Held::Terminal { .. } | Held::Other { .. } => End::Pipe,
    };
    let mut ends = held.each_ref().map(end);
    if ends[1] == End::Pipe && held[1] == held[2] {
        ends[2] = End::SharedPipe;
    }
    Wiring {
        ends,
        terminal,
        keys_at_once: ends[0] == End::Terminal && ends[1] == End::Terminal,
    }
}

/// Whose turn it is at the operator's terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Ours: the terminal is our session's, and our process group is in the foreground.
    Ours,
    /// Our session's, and somebody else is in the foreground: a shell, an editor.
    Background,
    /// Another session's. The kernel would let us read; whoever types does not mean us.
    AnotherSession,
}

/// What may be done with keys now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    Read,
    /// Not now; what is typed belongs to whoever is in the foreground.
    Wait,
    /// Not ever: the process inside is told that input has ended.
    Ended,
}

/// May keys be read for the process inside?
pub fn keys(is_wanted: bool, turn: Turn) -> Keys {
    match (turn, is_wanted) {
        (Turn::AnotherSession, _) => Keys::Ended,
        (Turn::Ours, true) => Keys::Read,
        (Turn::Ours, false) | (Turn::Background, _) => Keys::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTY: Held = Held::Terminal { device: 5 };
    const OTHER_TTY: Held = Held::Terminal { device: 6 };
    const FILE: Held = Held::Other {
        device: 1,
        inode: 7,
    };
    const PIPE: Held = Held::Other {
        device: 2,
        inode: 8,
    };

    #[test]
    fn each_of_the_eight_combinations_is_as_the_operator_holds_it() {
        for bits in 0..8 {
            let held = [0, 1, 2].map(|n| {
                if bits & (1 << n) != 0 {
                    TTY
                } else {
                    Held::Other {
                        device: 1,
                        inode: n,
                    }
                }
            });
            let wiring = wire(held);
            for (held, end) in held.iter().zip(wiring.ends) {
                assert_eq!(*held == TTY, end == End::Terminal, "{held:?}");
            }
            assert_eq!(wiring.terminal.is_some(), bits != 0);
            assert_eq!(wiring.keys_at_once, bits & 3 == 3);
        }
    }

    #[test]
    fn outputs_to_one_place_share_a_pipe() {
        let ends = |held| wire(held).ends;
        assert_eq!(
            ends([PIPE, FILE, FILE]),
            [End::Pipe, End::Pipe, End::SharedPipe]
        );
        assert_eq!(ends([FILE, PIPE, FILE]), [End::Pipe; 3]);
        assert_eq!(
            ends([FILE, Held::Nothing, Held::Nothing]),
            [End::Pipe, End::Nothing, End::Nothing]
        );
        assert_eq!(ends([Held::Nothing, TTY, TTY])[2], End::Terminal);
    }

    #[test]
    fn a_second_terminal_is_reached_through_a_pipe() {
        let wiring = wire([TTY, OTHER_TTY, TTY]);
        assert_eq!(wiring.ends, [End::Terminal, End::Pipe, End::Terminal]);
        assert!(!wiring.keys_at_once);
        assert_eq!(
            wire([FILE, TTY, OTHER_TTY]).ends,
            [End::Pipe, End::Terminal, End::Pipe]
        );
    }

    #[test]
    fn keys_are_read_only_in_the_foreground_and_when_wanted() {
        let table = [
            (true, Turn::Ours, Keys::Read),
            (false, Turn::Ours, Keys::Wait),
            (true, Turn::Background, Keys::Wait),
            (false, Turn::Background, Keys::Wait),
            (true, Turn::AnotherSession, Keys::Ended),
            (false, Turn::AnotherSession, Keys::Ended),
        ];
        for (wanted, turn, expected) in table {
            assert_eq!(keys(wanted, turn), expected, "{wanted} {turn:?}");
        }
    }
}
