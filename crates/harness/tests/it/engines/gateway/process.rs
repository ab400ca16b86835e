//! The gateway and the scripted model as processes of their own: TLS with a made-up authority,
//! memory, the command line of both.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use cto_core::wire::calls::{GatewayReport, Outcome, RefusalReason};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

const KEY: &str = "key-of-the-operator-0123456789";

/// Ends its process with itself.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Gateway {
    child: Ended,
    stdin: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
    port: u16,
    token: String,
}

impl Gateway {
    fn open(dir: &Path, base: &str, roots: Option<&Path>) -> Self {
        Self::open_with(dir, base, roots, None)
    }

    /// `variable` is the `SSL_CERT_FILE` of its environment.
    fn open_with(dir: &Path, base: &str, roots: Option<&Path>, variable: Option<&Path>) -> Self {
        fs::write(dir.join("url"), base).unwrap();
        let mut command = Command::new(crate::program());
        command.args([
            "__gateway",
            "--protocol",
            "openai-chat",
            "--key-env",
            "LAB_KEY",
            "--model",
            "lab-1",
            "--base-url-file",
        ]);
        command
            .arg(dir.join("url"))
            .env("LAB_KEY", KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(roots) = roots {
            command.arg("--ca-file").arg(roots);
        }
        if let Some(variable) = variable {
            command.env("SSL_CERT_FILE", variable);
        }
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let opened = line(&mut lines);
        let (port, token) = (
            opened["port"].as_u64().unwrap(),
            opened["token"].as_str().unwrap().to_owned(),
        );
        Self {
            child: Ended(child),
            stdin,
            lines,
            port: u16::try_from(port).unwrap(),
            token,
        }
    }

    /// The whole answer, as bytes.
    fn ask(&self) -> String {
        let body = json!({"model": "lab-1", "stream": true, "messages": []}).to_string();
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let token = &self.token;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}"
        );
        socket
            .write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn finish(mut self) -> GatewayReport {
        drop(self.stdin.take());
        serde_json::from_value(line(&mut self.lines)).unwrap()
    }
}

fn line(lines: &mut impl BufRead) -> Value {
    let mut text = String::new();
    lines.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn openssl(dir: &Path, args: &[&str]) {
    let ran = Command::new("openssl")
        .current_dir(dir)
        .args(args)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// An authority, a certificate of it for `localhost`, and an authority that signed nothing.
fn certificates(dir: &Path) {
    for name in ["ca", "stranger"] {
        let (key, cert, subject) = (
            format!("{name}.key"),
            format!("{name}.pem"),
            format!("/CN=test {name}"),
        );
        openssl(
            dir,
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-keyout",
                &key,
                "-out",
                &cert,
                "-subj",
                &subject,
            ],
        );
    }
    openssl(
        dir,
        &[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
            "-subj",
            "/CN=localhost",
        ],
    );
    fs::write(
        dir.join("ext"),
        "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    for (days, name) in [("2", "server.pem"), ("0", "expired.pem")] {
        openssl(
            dir,
            &[
                "x509",
                "-req",
                "-in",
                "server.csr",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                days,
                "-extfile",
                "ext",
                "-out",
                name,
            ],
        );
    }
}

/// Answers every request over TLS; returns its port.
fn tls_model(dir: &Path, certificate: &str) -> u16 {
    let chain = CertificateDer::pem_file_iter(dir.join(certificate))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let key = PrivateKeyDer::from_pem_file(dir.join("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(chain, key)
    .unwrap();
    let config = Arc::new(config);
    // Both families: `localhost` may be either first.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let mut stream = rustls::StreamOwned::new(
                    rustls::ServerConnection::new(config).unwrap(),
                    socket,
                );
                let mut request = [0u8; 65536];
                while let Ok(n @ 1..) = stream.read(&mut request) {
                    assert!(String::from_utf8_lossy(&request[..n]).contains(KEY));
                    let events = "data: {\"model\":\"lab-1\",\"choices\":[{\"delta\":{\"content\":\"over tls\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
                        events.len()
                    );
                    if stream
                        .write_all(format!("{head}{events}").as_bytes())
                        .and_then(|()| stream.flush())
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn gateway_over_tls_believes_whom_the_system_believes() {
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path());
    let port = tls_model(dir.path(), "server.pem");
    let expired = tls_model(dir.path(), "expired.pem");
    // Its last second is over.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let (ca, stranger) = (dir.path().join("ca.pem"), dir.path().join("stranger.pem"));
    let trusted = Gateway::open(
        dir.path(),
        &format!("https://localhost:{port}/v1"),
        Some(&ca),
    );
    for _ in 0..2 {
        let answer = trusted.ask();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("over tls"),
            "{answer}"
        );
    }
    assert!(
        trusted
            .finish()
            .calls
            .iter()
            .all(|call| call.outcome == Outcome::Ok)
    );
    let here = format!("https://localhost:{port}/v1");
    for (base, roots, variable, why) in [
        (&here, Some(&stranger), None, RefusalReason::TlsUntrusted),
        // No variable makes anybody believed.
        (&here, None, Some(ca.as_path()), RefusalReason::TlsUntrusted),
        (
            &format!("https://127.0.0.1:{port}/v1"),
            Some(&ca),
            None,
            RefusalReason::TlsName,
        ),
        (
            &format!("https://localhost:{expired}/v1"),
            Some(&ca),
            None,
            RefusalReason::TlsExpired,
        ),
    ] {
        let roots = roots.map(|file| file.as_path());
        let gateway = Gateway::open_with(dir.path(), base, roots, variable);
        assert!(gateway.ask().starts_with("HTTP/1.1 502"), "{base}");
        let call = gateway.finish().calls.remove(0);
        assert_eq!(
            (call.outcome, call.why),
            (Outcome::Transport, Some(why)),
            "{base}"
        );
    }
}

/// Starts the scripted model; its base URL.
fn scripted(dir: &Path, scenario: &str) -> (Ended, String) {
    fs::write(dir.join("scenario.toml"), scenario).unwrap();
    let mut command = Command::new(crate::program());
    command
        .arg("__model")
        .arg(dir.join("scenario.toml"))
        .arg("--port-file")
        .arg(dir.join("port"));
    let mut child = command
        .arg("--log")
        .arg(dir.join("log"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    (Ended(child), format!("{}/v1", address.trim()))
}

#[test]
fn gateway_keeps_little_of_a_line_of_a_hundred_megabytes() {
    let dir = tempfile::tempdir().unwrap();
    let (_model, base) = scripted(
        dir.path(),
        &format!("key='{KEY}'\n[[turn]]\ntext='x'\nhuge_line=100000000\n"),
    );
    let gateway = Gateway::open(dir.path(), &base, None);
    let before = gateway.peak_kib();
    let length = gateway.ask().len();
    assert!(length > 100_000_000, "{length}");
    let grown = gateway.peak_kib() - before;
    assert!(grown < 16 * 1024, "{grown} KiB more");
    assert_eq!(gateway.finish().calls[0].outcome, Outcome::Ok);
}

#[test]
fn gateway_probe_and_model_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let (_model, base) = scripted(dir.path(), &format!("key='{KEY}'\n[probe]\ntext='ready'\n"));
    assert_eq!(
        fs::read_to_string(dir.path().join("port")).unwrap(),
        base.rsplit(':').next().unwrap().trim_end_matches("/v1")
    );
    fs::write(dir.path().join("url"), &base).unwrap();
    let mut command = Command::new(crate::program());
    command.args([
        "__gateway",
        "--probe",
        "--protocol",
        "anthropic-messages",
        "--key-env",
        "LAB_KEY",
        "--model",
        "lab-1",
    ]);
    let ran = command
        .arg("--base-url-file")
        .arg(dir.path().join("url"))
        .env("LAB_KEY", KEY)
        .output()
        .unwrap();
    let call: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&call["outcome"], &call["content"]),
        (&json!("ok"), &json!(true)),
        "{call}"
    );
    let schema = cto_core::operator::schema::all_schemas()
        .into_iter()
        .find(|(name, _)| *name == "model-call")
        .unwrap()
        .1;
    assert!(
        jsonschema::validator_for(&schema).unwrap().is_valid(&call),
        "{call}"
    );
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains("(hidden)") && !log.contains(KEY), "{log}");
    for (scenario, words) in [
        ("[[turn]]\ntxet='x'\n", "scenario.toml:2:1"),
        ("[[turn]", "scenario.toml:1"),
    ] {
        fs::write(dir.path().join("scenario.toml"), scenario).unwrap();
        let ran = Command::new(crate::program())
            .arg("__model")
            .arg(dir.path().join("scenario.toml"))
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&ran.stderr).contains(words),
            "{ran:?}"
        );
    }
    fs::write(dir.path().join("url"), "https://user:hidden@example.com/v1").unwrap();
    let mut command = Command::new(crate::program());
    command
        .args([
            "__gateway",
            "--protocol",
            "openai-chat",
            "--model",
            "lab-1",
            "--base-url-file",
        ])
        .arg(dir.path().join("url"));
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        ran.status.code() == Some(2)
            && told.contains("carries a credential")
            && !told.contains("hidden"),
        "{told}"
    );
}
