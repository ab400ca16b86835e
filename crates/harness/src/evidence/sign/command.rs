//! A signing program of the operator: the bytes to sign on its standard input, base64 of the
//! signature on its standard output. It is named by `cto keys use` alone; no case, contract or
//! repository can name one.

use std::time::Duration;

use cto_core::bundle::attest::dsse;
use cto_gateway::operator_program::{self, Limits, OperatorProgram};

use super::SignError;

const LIMITS: Limits = Limits {
    // Long enough for a person to touch a token.
    time: Duration::from_secs(60),
    output_bytes: 4096,
};

pub fn sign(program: &OperatorProgram, message: &[u8]) -> Result<Vec<u8>, SignError> {
    sign_within(program, message, LIMITS)
}

fn sign_within(
    program: &OperatorProgram,
    message: &[u8],
    limits: Limits,
) -> Result<Vec<u8>, SignError> {
    let failed = |what: String| SignError::Command {
        program: program.path.display().to_string(),
        what,
    };
    let answer = operator_program::run(program, message, limits)
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&answer);
    let text: String = text.split_ascii_whitespace().collect();
    dsse::decode(&text).ok_or_else(|| failed("did not print base64".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str) -> Result<Vec<u8>, String> {
        sign(&shell(script), b"message").map_err(|error| error.to_string())
    }

    fn shell(script: &str) -> OperatorProgram {
        OperatorProgram {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }
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
        let missing = OperatorProgram {
            path: "/nonexistent/signer".into(),
            ..shell("")
        };
        let missing = sign(&missing, b"").unwrap_err().to_string();
        assert!(missing.contains("could not be started"), "{missing}");
    }

    #[test]
    fn a_slow_signer_and_its_child_are_killed() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().display();
        let script = format!(
            "trap '' TERM; sleep 60 & echo $! >{here}/child; echo $$ >{here}/program; wait"
        );
        let limits = Limits {
            time: Duration::from_millis(500),
            ..LIMITS
        };
        let error = sign_within(&shell(&script), b"message", limits).unwrap_err();
        assert!(error.to_string().contains("gave no answer within 0.5 s"));
        for file in ["child", "program"] {
            let pid = std::fs::read_to_string(dir.path().join(file)).unwrap();
            // A killed process may stay a zombie where nobody reaps orphans.
            let runs = || {
                std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                    .is_ok_and(|stat| !stat.contains(") Z "))
            };
            let is_gone = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                !runs()
            });
            assert!(is_gone, "the {file} outlived its deadline");
        }
    }
}
