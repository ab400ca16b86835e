//! The engine's end of a connection: requests one after another, as slow and as wrong as it likes.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use cto_core::wire::calls::Why;
use cto_core::wire::http::{BodyReader, Framing, RequestHead, request_head};

/// Between two requests.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// What is still read of a request that was refused, so that the refusal arrives.
const MAX_DISCARDED: usize = 8 * 1024 * 1024;
const DISCARD_FOR: Duration = Duration::from_secs(2);
const PIECE: usize = 16 * 1024;

pub struct EngineSide {
    pub socket: TcpStream,
    /// Read and not used yet: the next request may have come with this one.
    ahead: Vec<u8>,
}

pub enum Next {
    Head(RequestHead),
    /// Nothing more comes.
    Closed,
    Bad(Why),
}

pub enum BodyEnd {
    Whole,
    EngineClosed,
    Refused(Why),
}

impl EngineSide {
    pub fn new(socket: TcpStream, write_patience: Duration) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(write_patience))?;
        Ok(Self {
            socket,
            ahead: Vec::new(),
        })
    }

    /// The next request's head. A head must be whole within the patience, however its bytes are
    /// spread.
    pub fn next_head(&mut self, patience: Duration) -> Next {
        let mut deadline = None;
        loop {
            match request_head(&self.ahead) {
                Ok(Some((head, used))) => {
                    self.ahead.drain(..used);
                    return Next::Head(head);
                }
                Ok(None) => {}
                Err(error) => return Next::Bad(error.why()),
            }
            if !self.ahead.is_empty() && deadline.is_none() {
                deadline = Some(Instant::now() + patience);
            }
            let left = deadline.map_or(MAX_IDLE, |deadline: Instant| {
                deadline.saturating_duration_since(Instant::now())
            });
            match self.read_more(left) {
                Ok(0) if self.ahead.is_empty() => return Next::Closed,
                Ok(0) => return Next::Bad(Why::BadHttp),
                Ok(_) => {}
                Err(error) if is_timeout(&error) && deadline.is_some() => {
                    return Next::Bad(Why::SlowRequest);
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

    /// Hands out the body as it comes. Each part must come within the patience, all of it within
    /// ten times that.
    pub fn body(
        &mut self,
        framing: Framing,
        patience: Duration,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Why>,
    ) -> BodyEnd {
        let mut reader = BodyReader::new(framing);
        let deadline = Instant::now() + patience * 10;
        loop {
            let mut refused = None;
            let used = reader.push(&self.ahead, &mut |bytes| {
                if refused.is_none() {
                    refused = each(bytes).err();
                }
            });
            match (used, refused) {
                (_, Some(why)) => return BodyEnd::Refused(why),
                (Err(_), _) => return BodyEnd::Refused(Why::BadHttp),
                (Ok(used), None) => self.ahead.drain(..used),
            };
            if reader.is_done() {
                if self.ahead.is_empty() {
                    // The answer may take long; what the request needed is given back.
                    self.ahead = Vec::new();
                }
                return BodyEnd::Whole;
            }
            let left = patience.min(deadline.saturating_duration_since(Instant::now()));
            match self.read_more(left) {
                Ok(0) => return BodyEnd::EngineClosed,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => return BodyEnd::Refused(Why::SlowRequest),
                Err(_) => return BodyEnd::EngineClosed,
            }
        }
    }

    /// Ends the connection so that what was written arrives: unread bytes would make the kernel
    /// throw it away.
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
