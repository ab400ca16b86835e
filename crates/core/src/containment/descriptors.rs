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
    /// What it may have of the keys.
    pub right: Right,
}

impl Wiring {
    /// Which descriptor the terminal is drawn on, given the one that stands for it.
    pub fn screen(&self, terminal: usize) -> usize {
        let mut outputs = [1, 2].into_iter();
        outputs
            .find(|number| self.ends[*number] == End::Terminal)
            .unwrap_or(terminal)
    }
}

/// Where we stand at the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The terminal is our session's own.
    pub is_of_our_session: bool,
    /// We lead our process group: a shell with job control started us, as the first of a job.
    pub leads_group: bool,
}

/// What a process inside may have of the operator's keys. That our group is in the foreground says
/// too little: it is so for every process of a script or a pipeline, also for the one that asks for
/// a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// From the start: input and output are the terminal, whoever types sees whom it is for.
    AtOnce,
    /// Once something inside asks, and never while somebody else hides what is typed: others on
    /// the same terminal (a pager, say) may want keys, too.
    OnceAsked,
    /// Never: input has ended.
    Never(Because),
}

/// Why there are no keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    InputIsNotTheTerminal,
    AnotherSession,
    PartOfAnotherJob,
}

impl Because {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::InputIsNotTheTerminal => {
                "standard input is not the terminal, so keys are not read for the command: its \
                 input has ended"
            }
            Self::AnotherSession => {
                "the terminal belongs to another session, so keys are not read for the command: \
                 its input has ended (with su, try --pty)"
            }
            Self::PartOfAnotherJob => {
                "output is not the terminal and another program leads this job, so keys are not \
                 read for the command: its input has ended"
            }
        }
    }
}

/// Decides what may be had of the keys, where these descriptors are stood in for.
fn right(ends: [End; 3], standing: Standing) -> Right {
    match (ends[0], ends[1], standing) {
        (End::Nothing | End::Pipe | End::SharedPipe, _, _) => {
            Right::Never(Because::InputIsNotTheTerminal)
        }
        (
            End::Terminal,
            _,
            Standing {
                is_of_our_session: false,
                ..
            },
        ) => Right::Never(Because::AnotherSession),
        (End::Terminal, End::Terminal, _) => Right::AtOnce,
        (
            End::Terminal,
            _,
            Standing {
                leads_group: true, ..
            },
        ) => Right::OnceAsked,
        (End::Terminal, _, _) => Right::Never(Because::PartOfAnotherJob),
    }
}

/// Decides what each descriptor inside is. Only one terminal is stood in for: bytes to a second one
/// go through a pipe and arrive where they belong. `standing` is at standard input, where that is a
/// terminal.
pub fn wire(held: [Held; 3], standing: Standing) -> Wiring {
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
        right: right(ends, standing),
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

/// What is known when keys might be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Something inside asked for keys.
    pub is_asked: bool,
    pub turn: Turn,
    /// Somebody else has what is typed not shown: they ask for a password, or draw themselves.
    pub is_hidden: bool,
}

/// May keys be read for the process inside?
pub fn keys(right: Right, now: Moment) -> Keys {
    match (right, now.turn) {
        (Right::Never(_), _) | (_, Turn::AnotherSession) => Keys::Ended,
        (_, Turn::Background) => Keys::Wait,
        (Right::AtOnce, Turn::Ours) => Keys::Read,
        (Right::OnceAsked, Turn::Ours) if now.is_asked && !now.is_hidden => Keys::Read,
        (Right::OnceAsked, Turn::Ours) => Keys::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADS: Standing = Standing {
        is_of_our_session: true,
        leads_group: true,
    };
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
            let wiring = wire(held, LEADS);
            for (held, end) in held.iter().zip(wiring.ends) {
                assert_eq!(*held == TTY, end == End::Terminal, "{held:?}");
            }
            assert_eq!(wiring.terminal.is_some(), bits != 0);
            assert_eq!(wiring.right == Right::AtOnce, bits & 3 == 3);
        }
    }

    #[test]
    fn outputs_to_one_place_share_a_pipe() {
        let ends = |held| wire(held, LEADS).ends;
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
        let wiring = wire([TTY, OTHER_TTY, TTY], LEADS);
        assert_eq!(wiring.ends, [End::Terminal, End::Pipe, End::Terminal]);
        assert_eq!(wiring.right, Right::OnceAsked);
        assert_eq!(
            wire([FILE, TTY, OTHER_TTY], LEADS).ends,
            [End::Pipe, End::Terminal, End::Pipe]
        );
    }

    #[test]
    fn who_has_a_right_to_keys() {
        let never = Right::Never;
        // Input, output, our session's, leading.
        let table = [
            (TTY, TTY, true, true, Right::AtOnce),
            (TTY, TTY, true, false, Right::AtOnce),
            (TTY, TTY, false, true, never(Because::AnotherSession)),
            (TTY, TTY, false, false, never(Because::AnotherSession)),
            (TTY, PIPE, true, true, Right::OnceAsked),
            (TTY, PIPE, true, false, never(Because::PartOfAnotherJob)),
            (TTY, PIPE, false, true, never(Because::AnotherSession)),
            (TTY, PIPE, false, false, never(Because::AnotherSession)),
        ];
        for (input, output, is_of_our_session, leads_group, expected) in table {
            let standing = Standing {
                is_of_our_session,
                leads_group,
            };
            for error in [TTY, PIPE, Held::Nothing] {
                let wiring = wire([input, output, error], standing);
                assert_eq!(wiring.right, expected, "{output:?} {standing:?}");
                // What is not the terminal never stands for its keys, whatever else is.
                for input in [PIPE, FILE, Held::Nothing] {
                    let wiring = wire([input, output, error], standing);
                    let expected = never(Because::InputIsNotTheTerminal);
                    assert_eq!(wiring.right, expected, "{input:?} {output:?} {standing:?}");
                }
            }
        }
    }

    #[test]
    fn when_keys_are_read() {
        let rights = [
            Right::AtOnce,
            Right::OnceAsked,
            Right::Never(Because::InputIsNotTheTerminal),
            Right::Never(Because::AnotherSession),
            Right::Never(Because::PartOfAnotherJob),
        ];
        for right in rights {
            for turn in [Turn::Ours, Turn::Background, Turn::AnotherSession] {
                for (is_asked, is_hidden) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let now = Moment {
                        is_asked,
                        turn,
                        is_hidden,
                    };
                    let found = keys(right, now);
                    let has_ended =
                        matches!(right, Right::Never(_)) || turn == Turn::AnotherSession;
                    let may = right == Right::AtOnce || (is_asked && !is_hidden);
                    let expected = match (has_ended, turn == Turn::Ours && may) {
                        (true, _) => Keys::Ended,
                        (false, true) => Keys::Read,
                        (false, false) => Keys::Wait,
                    };
                    assert_eq!(found, expected, "{right:?} {now:?}");
                }
            }
        }
    }
}
