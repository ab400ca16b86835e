//! `cto __ask`: asks a model, or a gateway before one, many times or at many places at once, and
//! says how long it took. The measuring half of `scripts/bench.d/gateway.py`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use cto_core::wire::http::{BodyReader, response_head};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Port of the loopback interface
    port: u16,
    /// The variable that holds what to show as a bearer token
    #[arg(long, value_name = "NAME")]
    token_env: String,
    #[arg(long)]
    model: String,
    /// So many connections at once
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// So many requests on each, one after another
    #[arg(long, default_value_t = 1)]
    requests: usize,
    /// Letters of the prompt
    #[arg(long, default_value_t = 2000)]
    prompt: usize,
}

/// Times in microseconds.
#[derive(Serialize, Default)]
struct Asked {
    status: u16,
    first_us: u128,
    total_us: u128,
    bytes: u64,
    /// Between two reads that brought something, the first aside.
    longest_gap_us: u128,
    whole: bool,
}

pub fn play(args: &Args) -> u8 {
    let asked: Vec<Vec<Asked>> = thread::scope(|scope| {
        let started: Vec<_> = (0..args.streams)
            .map(|_| scope.spawn(|| connection(args).unwrap_or_default()))
            .collect();
        started
            .into_iter()
            .map(|stream| stream.join().unwrap_or_default())
            .collect()
    });
    let all: Vec<Asked> = asked.into_iter().flatten().collect();
    let complete = all.len() == args.streams * args.requests
        && all.iter().all(|one| one.whole && one.status == 200);
    let _ = writeln!(
        io::stdout(),
        "{}",
        serde_json::to_string(&all).unwrap_or_default()
    );
    u8::from(!complete)
}

fn connection(args: &Args) -> io::Result<Vec<Asked>> {
    let mut socket = TcpStream::connect(("127.0.0.1", args.port))?;
    socket.set_nodelay(true)?;
    let token = std::env::var(&args.token_env).unwrap_or_default();
    let messages = serde_json::json!([{"role": "user", "content": "x".repeat(args.prompt)}]);
    let body =
        serde_json::json!({"model": args.model, "stream": true, "messages": messages}).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    (0..args.requests)
        .map(|_| ask(&mut socket, request.as_bytes()))
        .collect()
}

fn ask(socket: &mut TcpStream, request: &[u8]) -> io::Result<Asked> {
    let begun = Instant::now();
    socket.write_all(request)?;
    let mut asked = Asked::default();
    let (mut got, mut buffer) = (Vec::new(), [0u8; 16 * 1024]);
    let mut body: Option<BodyReader> = None;
    let mut last = begun;
    loop {
        if body.is_none()
            && let Some((head, used)) = response_head(&got).map_err(io::Error::other)?
        {
            got.drain(..used);
            asked.status = head.status;
            body = Some(BodyReader::new(head.body));
        }
        if let Some(reader) = &mut body {
            let used = reader
                .push(&got, &mut |bytes| asked.bytes += bytes.len() as u64)
                .map_err(io::Error::other)?;
            got.drain(..used);
            if reader.is_done() {
                break;
            }
        }
        let n = socket.read(&mut buffer)?;
        if n == 0 {
            return Ok(asked);
        }
        let now = Instant::now();
        if asked.first_us == 0 {
            asked.first_us = (now - begun).as_micros();
        } else {
            asked.longest_gap_us = asked.longest_gap_us.max((now - last).as_micros());
        }
        last = now;
        got.extend_from_slice(&buffer[..n]);
    }
    asked.total_us = begun.elapsed().as_micros();
    asked.whole = true;
    Ok(asked)
}
