//! May an engine be ended that stays when its work is done? What costs least is looked at first, and what was not looked at
//! is not known.

/// What is known by now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// It has itself said how its work ended.
    pub said_its_result: bool,
    /// It has shown no sign of life for as long as it may.
    pub is_silent: bool,
    /// HEAD of its copy is another commit than before it started. That there are commits says nothing: most repositories have some.
    pub head_moved: Option<bool>,
    /// Nothing changed that its contract does not allow.
    pub is_in_scope: Option<bool>,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    GoOn,
    LookAtHead,
    LookAtTree,
    End,
}

impl Standing {
    pub fn next(self) -> Next {
        if !(self.said_its_result || self.is_silent) {
            return Next::GoOn;
        }
        match (self.head_moved, self.is_in_scope) {
            (None, _) => Next::LookAtHead,
            (Some(false), _) | (Some(true), Some(false)) => Next::GoOn,
            (Some(true), None) => Next::LookAtTree,
            (Some(true), Some(true)) => Next::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_must_hold_and_nothing_is_looked_at_too_early() {
        const EACH: [Option<bool>; 3] = [None, Some(false), Some(true)];
        for said_its_result in [false, true] {
            for is_silent in [false, true] {
                for head_moved in EACH {
                    for is_in_scope in EACH {
                        let standing = Standing {
                            said_its_result,
                            is_silent,
                            head_moved,
                            is_in_scope,
                        };
                        let done = said_its_result || is_silent;
                        let want = match (done, head_moved, is_in_scope) {
                            (true, Some(true), Some(true)) => Next::End,
                            (true, Some(true), None) => Next::LookAtTree,
                            (true, None, _) => Next::LookAtHead,
                            _ => Next::GoOn,
                        };
                        assert_eq!(standing.next(), want, "{standing:?}");
                    }
                }
            }
        }
    }
}
