//! One call: sends a checked request to the endpoint and waits for the head of its answer. What is
//! done with the answer's body is in `response_forwarder`.

use std::io;
use std::time::Instant;

use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::calls::{CallRecord, Outcome, RefusalReason};
use cto_core::wire::http::{ResponseHead, response_head};
use cto_core::wire::mask::SecretPatterns;
use cto_core::wire::needles::Needles;

use super::call_context::{Broken, CallContext, PIECE, micros};
use super::ledger::Ledger;
use super::reply::Reply;
use super::response_forwarder::ResponseForwarder;
use super::spill_buffer::SpillBuffer;
use super::{Proxy, Route};
use crate::endpoint_side::upstream::{Pool, Upstream};

const MAX_INTERIM: usize = 8;

/// A request as it goes to the endpoint.
pub struct Outbound<'a> {
    /// With the credential in it: it goes to the wire and nowhere else.
    pub head: String,
    pub body: &'a mut SpillBuffer,
}

/// What the calls of a run share.
pub struct Exchange {
    pub pool: Pool,
    pub known: Known,
}

/// What is looked for in answers.
pub struct Known {
    /// In a good answer: the credential. A short one could be any word, and is not looked for there.
    pub in_answers: Needles,
    /// In an error: the credential, and what is private of the endpoint.
    pub in_errors: Needles,
    pub private: Needles,
    /// What no record holds.
    pub patterns: SecretPatterns,
}

const MIN_IN_ANSWERS: usize = 8;
const MIN_IN_ERRORS: usize = 4;

impl Exchange {
    pub fn new(route: &Route) -> Self {
        let key = route
            .credential
            .as_ref()
            .map(|credential| credential.reveal().as_bytes().to_vec())
            .unwrap_or_default();
        let private: Vec<Vec<u8>> = route
            .endpoint
            .private_strings()
            .into_iter()
            .map(String::into_bytes)
            .collect();
        // Headers of the operator's and what opens the proxy are as private as the credential.
        let more: Vec<Vec<u8>> = route
            .headers
            .iter()
            .map(|(_, value)| value.known_value())
            .chain(route.proxy.iter().flat_map(Proxy::known_values))
            .collect();
        let at_least = |length: usize| {
            std::iter::once(&key[..])
                .chain(more.iter().map(Vec::as_slice))
                .filter(move |value| value.len() >= length)
        };
        Self {
            pool: Pool::default(),
            known: Known {
                in_answers: Needles::exact(at_least(MIN_IN_ANSWERS)),
                in_errors: Needles::exact(at_least(MIN_IN_ERRORS)),
                private: Needles::of_names(private.iter().map(Vec::as_slice)),
                patterns: SecretPatterns::new(
                    private.iter().chain(&more).cloned().chain([key.clone()]),
                ),
            },
        }
    }

    /// Makes the call and answers the engine. Returns whether another request may follow on its
    /// connection.
    pub fn run(
        &self,
        route: &Route,
        ledger: &Ledger,
        call: &mut CallRecord,
        request: Outbound<'_>,
        reply: &mut Reply<'_>,
    ) -> bool {
        let mut context = CallContext {
            route,
            ledger,
            reply,
            sent: Instant::now(),
            begun: false,
        };
        let arrived = self.send(&mut context, call, request);
        let ended = arrived.and_then(|(upstream, head, rest)| {
            self.answer(&mut context, call, upstream, &head, rest)
        });
        match ended {
            Ok(keep_alive) => keep_alive,
            Err(Broken(outcome, why)) => {
                call.ended(outcome, why);
                if outcome == Outcome::EngineClosed {
                    return false;
                }
                reply.fail(outcome, why)
            }
        }
    }

    /// Sends the request; returns the connection, the head of the answer and what came after it. An
    /// idle connection may turn out closed: then, and only when nothing at all came back, a new one
    /// is made.
    fn send(
        &self,
        context: &mut CallContext<'_, '_>,
        call: &mut CallRecord,
        mut request: Outbound<'_>,
    ) -> Result<(Upstream, ResponseHead, Vec<u8>), Broken> {
        if let Some(mut upstream) = self.pool.take() {
            match ask(context, call, &mut upstream, &mut request) {
                Ok((head, rest)) => return Ok((upstream, head, rest)),
                Err(Broken(Outcome::Transport, Some(RefusalReason::Reset)))
                    if call.first_byte_us == MaybeKnown::NotLookedAt => {}
                Err(broken) => return Err(broken),
            }
        }
        let mut upstream = Upstream::connect(context.route)?;
        context.still_wanted()?;
        let (head, rest) = ask(context, call, &mut upstream, &mut request)?;
        Ok((upstream, head, rest))
    }

    fn answer(
        &self,
        context: &mut CallContext<'_, '_>,
        call: &mut CallRecord,
        mut upstream: Upstream,
        head: &ResponseHead,
        rest: Vec<u8>,
    ) -> Result<bool, Broken> {
        call.status = MaybeKnown::Known(head.status);
        if (300..400).contains(&head.status) {
            return Err(Broken(Outcome::Redirected, None));
        }
        if head
            .headers
            .all("content-encoding")
            .any(|coding| !coding.eq_ignore_ascii_case("identity"))
        {
            return Err(RefusalReason::EncodedAnswer.into());
        }
        let is_success = (200..300).contains(&head.status);
        let mut forwarder =
            ResponseForwarder::new(context.route, call.path, head, is_success, &self.known);
        let done = forwarder.carry(context, call, &mut upstream, rest);
        forwarder.into_record(call);
        let whole = done?;
        if whole.may_be_used_again && head.keeps_alive() {
            self.pool.put(upstream);
        }
        Ok(whole.keep_alive)
    }
}

/// Sends a request and waits for the head of its answer; returns what came behind the head.
fn ask(
    context: &mut CallContext<'_, '_>,
    call: &mut CallRecord,
    upstream: &mut Upstream,
    request: &mut Outbound<'_>,
) -> Result<(ResponseHead, Vec<u8>), Broken> {
    let mut first = Some(request.head.as_bytes().to_vec());
    let sent = request.body.each(&mut |piece| match first.take() {
        Some(mut head) => {
            head.extend_from_slice(piece);
            upstream.send(&head)
        }
        None => upstream.send(piece),
    });
    if sent.is_err_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        )
    }) {
        return Err(Broken(Outcome::Stalled, None));
    }
    context.sent = Instant::now();
    let mut got = Vec::with_capacity(PIECE);
    let mut buffer = vec![0u8; PIECE];
    let mut interim = 0;
    loop {
        match response_head(&got).map_err(|_| RefusalReason::Garbled)? {
            // 101 would be another protocol; other interim answers say nothing.
            Some((head, used)) if (100..200).contains(&head.status) => {
                interim += 1;
                if head.status == 101 || interim > MAX_INTERIM {
                    return Err(RefusalReason::Garbled.into());
                }
                got.drain(..used);
                continue;
            }
            Some((head, used)) => {
                got.drain(..used);
                return Ok((head, got));
            }
            None => {}
        }
        // Not all of the request may have gone out: an early refusal is there to read all the same.
        let n = context.read(upstream, &mut buffer)?;
        if n == 0 {
            return Err(if got.is_empty() {
                RefusalReason::Reset
            } else {
                RefusalReason::Garbled
            }
            .into());
        }
        if call.first_byte_us == MaybeKnown::NotLookedAt {
            call.first_byte_us = MaybeKnown::Known(micros(context.sent));
        }
        context.begun = true;
        got.extend_from_slice(&buffer[..n]);
    }
}
