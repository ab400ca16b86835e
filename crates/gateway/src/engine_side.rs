//! Reads the requests of an engine from its connection, one after another. The engine may be slow,
//! wrong or hostile.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use cto_core::wire::calls::RefusalReason;
use cto_core::wire::http::{BodyReader, Framing, RequestHead, request_head};

/// How long a connection may be idle between two requests.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// How much of a refused request is still read, so that the engine receives the refusal.
const MAX_DISCARDED: usize = 8 * 1024 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(2);
const PIECE: usize = 16 * 1024;

pub struct EngineSide {
    pub socket: TcpStream,
    /// Bytes read and not used yet: the next request may have come with this one.
    ahead: Vec<u8>,
}

pub enum Next {
    Head(RequestHead),
    /// Nothing more comes.
    Closed,
    Bad(RefusalReason),
}

pub enum BodyEnd {
    Whole,
    EngineClosed,
    Refused(RefusalReason),
}

impl EngineSide {
    pub fn new(socket: TcpStream, write_timeout: Duration) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(write_timeout))?;
        Ok(Self {
            socket,
            ahead: Vec::new(),
        })
    }

    /// The next request's head. All of it must arrive within the time-out, however its bytes are
    /// spread.
    pub fn next_head(&mut self, timeout: Duration) -> Next {
        let mut deadline = None;
        loop {
            match request_head(&self.ahead) {
                Ok(Some((head, used))) => {
                    self.ahead.drain(..used);
                    return Next::Head(head);
                }
                Ok(None) => {}
                Err(error) => return Next::Bad(error.refusal_reason()),
            }
            if !self.ahead.is_empty() && deadline.is_none() {
                deadline = Some(Instant::now() + timeout);
            }
            let left = deadline.map_or(MAX_IDLE, |deadline: Instant| {
                deadline.saturating_duration_since(Instant::now())
            });
            match self.read_more(left) {
                Ok(0) if self.ahead.is_empty() => return Next::Closed,
                Ok(0) => return Next::Bad(RefusalReason::BadHttp),
                Ok(_) => {}
                Err(error) if is_timeout(&error) && deadline.is_some() => {
                    return Next::Bad(RefusalReason::SlowRequest);
                }
                Err(_) => return Next::Closed,
            }
        }
    }

    fn read_more(&mut self, left: Duration) -> io::Result<usize> {
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        let from = self.ahead.len();
        self.ahead.resize(from + PIECE, 0);
        let read = loop {
            match self.socket.read(&mut self.ahead[from..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.ahead.truncate(from + *read.as_ref().unwrap_or(&0));
        read
    }

    /// Hands out the body as it comes. Each part must arrive within the time-out, all of it within
    /// ten times that.
    pub fn body(
        &mut self,
        framing: Framing,
        timeout: Duration,
        each: &mut dyn FnMut(&[u8]) -> Result<(), RefusalReason>,
    ) -> BodyEnd {
        let mut reader = BodyReader::new(framing);
        let deadline = Instant::now() + timeout * 10;
        loop {
            let mut refused = None;
            let used = reader.push(&self.ahead, &mut |bytes| {
                if refused.is_none() {
                    refused = each(bytes).err();
                }
            });
            match (used, refused) {
                (_, Some(why)) => return BodyEnd::Refused(why),
                (Err(_), _) => return BodyEnd::Refused(RefusalReason::BadHttp),
                (Ok(used), None) => self.ahead.drain(..used),
            };
            if reader.is_done() {
                if self.ahead.is_empty() {
                    // The answer may take long; what the request needed is given back.
                    self.ahead = Vec::new();
                }
                return BodyEnd::Whole;
            }
            let left = timeout.min(deadline.saturating_duration_since(Instant::now()));
            match self.read_more(left) {
                Ok(0) => return BodyEnd::EngineClosed,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {
                    return BodyEnd::Refused(RefusalReason::SlowRequest);
                }
                Err(_) => return BodyEnd::EngineClosed,
            }
        }
    }

    /// Closes the connection so that the engine still receives what was written: with bytes left
    /// unread the kernel would discard it.
    pub fn hang_up(&mut self) {
        let deadline = Instant::now() + DISCARD_FOR;
        let mut discarded = self.ahead.len();
        self.ahead = Vec::new();
        if self.socket.shutdown(Shutdown::Write).is_err() {
            return;
        }
        while discarded < MAX_DISCARDED {
            match self.read_more(deadline.saturating_duration_since(Instant::now())) {
                Ok(1..) => {
                    discarded += self.ahead.len();
                    self.ahead.clear();
                }
                _ => return,
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
