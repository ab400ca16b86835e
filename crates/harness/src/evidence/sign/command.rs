//! A signing program of the operator: the bytes to sign on its standard input, base64 of the
//! signature on its standard output. It is named by `cto keys use` alone; no case, contract or
//! repository can name one.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cto_core::bundle::attest::dsse;

use super::SignError;

/// Long enough for a person to touch a token.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_ANSWER: u64 = 4096;

pub fn sign(argv: &[String], message: &[u8]) -> Result<Vec<u8>, SignError> {
    let program = argv.first().cloned().unwrap_or_default();
    let failed = |what: String| SignError::Command {
        program: program.clone(),
        what,
    };
    let rest = argv.get(1..).unwrap_or_default();
    let mut child = Command::new(&program)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed(format!("could not be started: {error}")))?;
    let answer = converse(&mut child, message);
    if answer.is_err() {
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(|error| failed(format!("could not be waited for: {error}")))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("ended with {status}")));
    }
    let text = String::from_utf8_lossy(&answer);
    let text: String = text.split_ascii_whitespace().collect();
    dsse::decode(&text).ok_or_else(|| failed("did not print base64".into()))
}

/// Hands over the message and takes the answer, both at once: either pipe may be the one that
/// fills.
fn converse(child: &mut Child, message: &[u8]) -> io::Result<Vec<u8>> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let message = message.to_vec();
    let writer = thread::spawn(move || {
        // A program that does not read to the end may still answer.
        stdin.map_or(Ok(()), |mut pipe| pipe.write_all(&message))
    });
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        stdout
            .map_or(Ok(0), |pipe| pipe.take(MAX_ANSWER).read_to_end(&mut answer))
            .map(|_| answer)
    });
    let since = Instant::now();
    while child.try_wait()?.is_none() {
        if since.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("gave no answer within {} s", PATIENCE.as_secs()),
            ));
        }
        thread::sleep(Duration::from_millis(2));
    }
    drop(writer);
    // A child it left behind may hold the pipe open; its answer does not count then.
    while !reader.is_finished() {
        if since.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "left its output open",
            ));
        }
        thread::sleep(Duration::from_millis(1));
    }
    reader
        .join()
        .map_err(|_| io::Error::other("its answer could not be read"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str) -> Result<Vec<u8>, String> {
        sign(
            &["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
            b"message",
        )
        .map_err(|error| error.to_string())
    }

    #[test]
    fn answers_and_refusals() {
        assert_eq!(
            ask("cat >/dev/null; echo aGVs; echo bG8="),
            Ok(b"hello".to_vec())
        );
        assert_eq!(
            ask("echo aGVsbG8="),
            Ok(b"hello".to_vec()),
            "without reading"
        );
        assert!(
            ask("echo '*'")
                .unwrap_err()
                .contains("did not print base64")
        );
        assert!(ask("exit 3").unwrap_err().contains("ended with"));
        let missing = sign(&["/nonexistent/signer".to_owned()], b"")
            .unwrap_err()
            .to_string();
        assert!(missing.contains("could not be started"), "{missing}");
        assert!(sign(&[], b"").is_err());
    }
}
