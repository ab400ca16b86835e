//! Asks an endpoint which models it has: one GET to the same host, for a person who chooses.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cto_core::wire::calls::{Outcome, RefusalReason};
use cto_core::wire::http::{BodyReader, ResponseHead, response_head};
use cto_core::wire::profiles::model_list::{self, Listed};

use crate::Route;
use crate::call_context::{Broken, CallContext, PIECE};
use crate::endpoint_side::outbound;
use crate::endpoint_side::upstream::Upstream;
use crate::ledger::Ledger;
use crate::questions::attended::{GivenUp, attended};
use crate::reply::Reply;

/// A longer list is not read.
const MAX_BODY: usize = 4 << 20;
/// No model has to be loaded for a list.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why there is no list. None of it is reason to stop: a name can be typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListError {
    #[error(transparent)]
    GivenUp(#[from] GivenUp),
    #[error("the endpoint lists no models (status {0})")]
    Status(u16),
    #[error("the endpoint could not be asked: {}", .0.sentence())]
    Unreachable(RefusalReason),
    #[error("the endpoint gave no answer in time")]
    Slow,
    #[error("what the endpoint answered is no list of models")]
    NoList,
}

impl From<Broken> for ListError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken(_, Some(why)) => Self::Unreachable(why),
            Broken(Outcome::EngineClosed, None) => Self::GivenUp(GivenUp::Cancelled),
            Broken(..) => Self::Slow,
        }
    }
}

/// The models an endpoint offers, in its order. `still` as for an interview.
pub fn list_models(
    route: &Route,
    still: &mut dyn FnMut(Duration) -> bool,
) -> Result<Vec<Listed>, ListError> {
    let mut route = route.clone();
    route.timeouts.first_byte = route.timeouts.first_byte.min(PATIENCE);
    route.timeouts.stall = route.timeouts.stall.min(PATIENCE);
    attended(move |leash| ask(&route, leash), still)?
}

fn ask(route: &Route, leash: &UnixStream) -> Result<Vec<Listed>, ListError> {
    let ledger = Ledger::new(route.protocol, route.budget);
    let mut reply = Reply::to_nobody(route.protocol, Some(leash));
    let mut context = CallContext {
        route,
        ledger: &ledger,
        reply: &mut reply,
        sent: Instant::now(),
        begun: false,
    };
    let mut upstream = Upstream::connect(route).map_err(ListError::Unreachable)?;
    context.still_wanted()?;
    upstream
        .send(outbound::list_head(route).as_bytes())
        .map_err(|_| ListError::Unreachable(RefusalReason::Reset))?;
    let (head, rest) = head(&mut context, &mut upstream)?;
    let is_plain = head
        .headers
        .all("content-encoding")
        .all(|coding| coding.eq_ignore_ascii_case("identity"));
    if !(200..300).contains(&head.status) || !is_plain {
        return Err(ListError::Status(head.status));
    }
    let body = body(&mut context, &mut upstream, &head, rest)?;
    model_list::read(route.protocol, &body).ok_or(ListError::NoList)
}

fn head(
    context: &mut CallContext<'_, '_>,
    upstream: &mut Upstream,
) -> Result<(ResponseHead, Vec<u8>), ListError> {
    let garbled = ListError::Unreachable(RefusalReason::Garbled);
    let mut got = Vec::new();
    let mut buffer = vec![0u8; PIECE];
    loop {
        if let Some((head, used)) = response_head(&got).map_err(|_| garbled)? {
            return Ok((head, got.split_off(used)));
        }
        match context.read(upstream, &mut buffer)? {
            0 => return Err(garbled),
            n => got.extend_from_slice(&buffer[..n]),
        }
        context.begun = true;
    }
}

fn body(
    context: &mut CallContext<'_, '_>,
    upstream: &mut Upstream,
    head: &ResponseHead,
    rest: Vec<u8>,
) -> Result<Vec<u8>, ListError> {
    let mut reader = BodyReader::new(head.body);
    let mut whole = Vec::new();
    let mut buffer = rest;
    let mut filled = buffer.len();
    loop {
        reader
            .push(&buffer[..filled], &mut |piece| {
                whole.extend_from_slice(piece)
            })
            .map_err(|_| ListError::NoList)?;
        if whole.len() > MAX_BODY {
            return Err(ListError::NoList);
        }
        if reader.is_done() {
            return Ok(whole);
        }
        buffer.resize(PIECE, 0);
        filled = context.read(upstream, &mut buffer)?;
        if filled == 0 {
            return match reader.closed_well() {
                true => Ok(whole),
                false => Err(ListError::NoList),
            };
        }
    }
}
