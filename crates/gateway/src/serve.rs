//! The gateway's threads: one accepts, one serves each connection. Here a request is refused or
//! forwarded.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cto_core::values::digest::Hasher;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::calls::{CallRecord, GatewayReport, Outcome, RefusalReason};
use cto_core::wire::http::headers::is_json_type;
use cto_core::wire::http::path::{self, Asked, PathClass};
use cto_core::wire::http::{Framing, RequestHead, Version};
use cto_core::wire::request::{Checked, RequestCheck};
use rustix::event::{PollFd, PollFlags, poll};

use super::Route;
use super::call_context::micros;
use super::engine_side::{BodyEnd, EngineSide, Next};
use super::exchange::{Exchange, Outbound};
use super::ledger::Ledger;
use super::reply::{self, Reply};
use super::spill_buffer::{HeldTogether, SpillBuffer};
use crate::endpoint_side::outbound;

const MAX_CONNECTIONS: usize = 256;
const STACK: usize = 512 * 1024;
/// For calls that are about to end when the gateway is closed.
const CLOSING: Duration = Duration::from_secs(2);

pub struct Server {
    shared: Arc<Shared>,
    /// Closing it wakes and ends the accepting thread.
    wake: Option<UnixStream>,
    accepting: Option<thread::JoinHandle<()>>,
}

struct Shared {
    route: Route,
    ledger: Arc<Ledger>,
    exchange: Exchange,
    /// Requests that are not yet checked.
    held: HeldTogether,
    /// Engine sockets by number, so that closing reaches every thread that waits on one.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    closed: bool,
    sockets: BTreeMap<u64, TcpStream>,
}

impl Server {
    pub fn open(listener: TcpListener, route: Route) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let (wake, woken) = UnixStream::pair()?;
        let shared = Arc::new(Shared {
            ledger: Arc::new(Ledger::new(route.protocol, route.budget)),
            exchange: Exchange::new(&route),
            held: HeldTogether::default(),
            open: Mutex::default(),
            route,
        });
        let serving = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("gateway".into())
            .spawn(move || accept(&listener, &woken, &serving))?;
        Ok(Self {
            shared,
            wake: Some(wake),
            accepting: Some(accepting),
        })
    }

    pub fn route(&self) -> &Route {
        &self.shared.route
    }

    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.shared.ledger
    }

    pub fn close(mut self) -> GatewayReport {
        self.shut();
        self.shared.ledger.close(CLOSING)
    }

    fn shut(&mut self) {
        drop(self.wake.take());
        if let Some(accepting) = self.accepting.take() {
            // It holds no lock and waits for nothing but the wake.
            let _ = accepting.join();
        }
        self.shared.close_all();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Shared {
    fn admit(&self, socket: &TcpStream) -> Option<u64> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.closed || open.sockets.len() >= MAX_CONNECTIONS {
            return None;
        }
        let handle = socket.try_clone().ok()?;
        open.next += 1;
        let number = open.next;
        open.sockets.insert(number, handle);
        Some(number)
    }

    fn leave(&self, number: u64) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sockets
            .remove(&number);
    }

    /// Every thread that waits for its engine, or watches it, wakes and ends.
    fn close_all(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.closed = true;
        for socket in open.sockets.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, woken: &UnixStream, shared: &Arc<Shared>) {
    loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(woken, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !fds[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        let Ok((socket, _)) = listener.accept() else {
            // The engine left at once, or no descriptor is free; open connections go on.
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let Some(number) = shared.admit(&socket) else {
            shared.ledger.connection_refused();
            let _ = (&socket).write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            continue;
        };
        let serving = Arc::clone(shared);
        let started = thread::Builder::new()
            .name("gateway-call".into())
            .stack_size(STACK)
            .spawn(move || {
                serve(&serving, socket);
                serving.leave(number);
            });
        if started.is_err() {
            shared.leave(number);
        }
    }
}

/// Requests of one connection, one after another.
fn serve(shared: &Shared, socket: TcpStream) {
    let timeouts = shared.route.timeouts;
    let Ok(mut engine) = EngineSide::new(socket, timeouts.request) else {
        return;
    };
    loop {
        let next = engine.next_head(timeouts.request);
        let more = match next {
            Next::Closed => return,
            Next::Bad(why) => {
                if let Some(call) = shared.ledger.begin() {
                    refuse(shared, &engine, call, (Version::Http11, false), why);
                }
                false
            }
            Next::Head(head) => request(shared, &mut engine, &head),
        };
        if !more {
            return engine.hang_up();
        }
    }
}

fn refuse(
    shared: &Shared,
    engine: &EngineSide,
    mut call: CallRecord,
    (version, keep): (Version, bool),
    why: RefusalReason,
) -> bool {
    let mut reply = Reply::new(&engine.socket, shared.route.protocol, version, keep);
    let outcome = match why.is_budget() {
        true => Outcome::Budget,
        false => Outcome::Refused,
    };
    call.ended(outcome, Some(why));
    let field = call.field.clone();
    // Recorded before it is answered: the record lacks nothing the engine has seen.
    shared.ledger.end(call);
    reply.refuse(outcome, why, field.as_deref())
}

/// Handles one request, from its head to its record. Returns whether another may follow.
fn request(shared: &Shared, engine: &mut EngineSide, head: &RequestHead) -> bool {
    let begun = Instant::now();
    let way = (head.version, head.keeps_alive());
    let Some(mut call) = shared.ledger.begin() else {
        let mut reply = Reply::new(&engine.socket, shared.route.protocol, head.version, false);
        reply.fail(Outcome::Refused, Some(RefusalReason::TooManyRequests));
        return false;
    };
    let asked = match admissible(shared, head) {
        Ok(asked) => asked,
        // Its body is not read, so nothing can follow it.
        Err(why) => return refuse(shared, engine, call, (head.version, false), why),
    };
    call.path = asked.class;
    if asked.class == PathClass::ModelList {
        let keep = way.1 && head.body == Framing::Empty;
        call.total_us = micros(begun);
        shared.ledger.end(call);
        let mut reply = Reply::new(&engine.socket, shared.route.protocol, head.version, keep);
        return reply.document(
            200,
            &reply::model_list(shared.route.protocol, &shared.route.model),
            false,
        );
    }
    if head.headers.has("expect")
        && (&engine.socket)
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .is_err()
    {
        call.ended(Outcome::EngineClosed, None);
        shared.ledger.end(call);
        return false;
    }
    let mut body = SpillBuffer::among(&shared.held);
    let checked = match receive(shared, engine, head, &asked, &mut call, &mut body) {
        Ok(checked) => checked,
        Err(Some(why)) => return refuse(shared, engine, call, (head.version, false), why),
        Err(None) => {
            call.ended(Outcome::EngineClosed, None);
            call.total_us = micros(begun);
            shared.ledger.end(call);
            return false;
        }
    };
    call.streamed = checked.streamed || head.target.contains(":streamGenerateContent");
    call.model_asked = checked.model.map_or(MaybeKnown::NotLookedAt, |name| {
        MaybeKnown::Known(name.chars().take(256).collect())
    });
    call.field = checked.field;
    let admitted = checked
        .verdict
        .and_then(|()| shared.ledger.reserve())
        .and_then(|()| shared.ledger.moved(call.request_bytes));
    if let Err(why) = admitted {
        call.total_us = micros(begun);
        return refuse(shared, engine, call, way, why);
    }
    call.forwarded = true;
    let outbound = Outbound {
        head: outbound::head(&shared.route, &asked, &head.headers, body.len()),
        body: &mut body,
    };
    let mut reply = Reply::new(&engine.socket, shared.route.protocol, head.version, way.1);
    let more = shared.exchange.run(
        &shared.route,
        &shared.ledger,
        &mut call,
        outbound,
        &mut reply,
    );
    call.total_us = micros(begun);
    shared.ledger.end(call);
    more
}

/// Everything that can be decided from the head alone. The token is checked first: whoever lacks it
/// learns nothing else.
fn admissible(shared: &Shared, head: &RequestHead) -> Result<Asked, RefusalReason> {
    let asked = path::ask(shared.route.protocol, &head.method, &head.target);
    let in_query = asked.as_ref().ok().and_then(|asked| asked.key.as_deref());
    if !shows_token(shared.route.token.reveal(), head, in_query) {
        return Err(RefusalReason::BadToken);
    }
    if head.headers.has("upgrade") || head.headers.lists("connection", "upgrade") {
        return Err(RefusalReason::Upgrade);
    }
    let asked = asked?;
    if head
        .headers
        .all("expect")
        .any(|value| !value.eq_ignore_ascii_case("100-continue"))
    {
        return Err(RefusalReason::Expectation);
    }
    if head
        .headers
        .all("content-encoding")
        .any(|value| !value.eq_ignore_ascii_case("identity"))
    {
        return Err(RefusalReason::EncodedBody);
    }
    if !head.headers.all("content-type").all(is_json_type) {
        return Err(RefusalReason::EncodedBody);
    }
    match head.body {
        Framing::Length(length) if length > super::spill_buffer::MAX_HELD => {
            Err(RefusalReason::BodyTooLong)
        }
        _ => Ok(asked),
    }
}

fn shows_token(token: &str, head: &RequestHead, in_query: Option<&str>) -> bool {
    let bearer = head.headers.all("authorization").filter_map(|value| {
        let (scheme, rest) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
    });
    let keys = ["x-api-key", "x-goog-api-key", "api-key"]
        .into_iter()
        .flat_map(|name| head.headers.all(name));
    bearer
        .chain(keys)
        .chain(in_query)
        .any(|given| same(given.as_bytes(), token.as_bytes()))
}

/// Takes as long for a wrong token as for the right one.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0u8, |all, (a, b)| all | (a ^ b)) == 0
}

/// Receives the body and checks all of it before any of it is forwarded. `Err(None)`: the engine
/// closed the connection.
fn receive(
    shared: &Shared,
    engine: &mut EngineSide,
    head: &RequestHead,
    asked: &Asked,
    call: &mut CallRecord,
    body: &mut SpillBuffer,
) -> Result<Checked, Option<RefusalReason>> {
    let mut check = RequestCheck::new(
        shared.route.protocol,
        &shared.route.model,
        &shared.route.request_fields,
    );
    let mut hasher = Hasher::default();
    let end = engine.body(head.body, shared.route.timeouts.request, &mut |bytes| {
        if !body.has_room(bytes.len()) {
            return Err(RefusalReason::BodyTooLong);
        }
        hasher.update(bytes);
        body.push(bytes).map_err(|_| RefusalReason::BodyTooLong)?;
        check.push(bytes)
    });
    call.request_bytes = body.len();
    match end {
        BodyEnd::Whole => {
            call.request_sha256 = MaybeKnown::Known(hasher.finish());
            Ok(check.finish(asked.model.as_deref()))
        }
        BodyEnd::EngineClosed => Err(None),
        BodyEnd::Refused(why) => Err(Some(why)),
    }
}
