//! The page of Pi, run by a person at a terminal: from an installed agent and an endpoint to an applied patch in the
//! four commands it has. With the real agent from npm and a scripted model, as root and as an ordinary user, and with
//! endpoints as people have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cto_testkit::{Answer, House, Repo, is_root, skip, talk, wait_until};
use serde_json::json;

use crate::fixtures::pi_lab::{KEY, KEY_VARIABLE, pi};
use crate::house;

/// Lines and columns that one screen has.
const SCREEN: (usize, usize) = (40, 200);
/// Where the page installs the agent.
const PREFIX: &str = "~/.local/share/pi";
const ORDINARY: u32 = 65534;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/engines/pi.md");
    fs::read_to_string(path).unwrap()
}

/// The commands of its only block.
fn commands() -> Vec<String> {
    let text = page();
    let mut blocks = text.split("```sh\n").skip(1);
    let block = blocks.next().unwrap().split("```").next().unwrap();
    assert!(blocks.next().is_none(), "one block is enough");
    block.lines().map(str::to_owned).collect()
}

#[test]
fn the_page_is_one_screen_of_four_commands() {
    let text = page();
    assert!(text.lines().count() <= SCREEN.0, "{}", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= SCREEN.1));
    let starts = [
        "npm install ",
        "cto setup pi ",
        "cto try --engine pi --task ",
        "cto apply ",
    ];
    let commands = commands();
    assert_eq!(commands.len(), starts.len(), "{commands:?}");
    for (command, start) in commands.iter().zip(starts) {
        assert!(command.starts_with(start), "{command}");
    }
    // The version that is installed is one that the harness was tried with, as is every one that is named.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines/pi.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let line = manifest
        .lines()
        .find(|line| line.starts_with("tested_versions"));
    let tested: Vec<&str> = line.unwrap().split('"').skip(1).step_by(2).collect();
    for version in &tested {
        assert!(text.contains(version), "{version} is not on the page");
    }
    let installed = commands[0].rsplit_once('@').unwrap().1;
    assert!(tested.contains(&installed), "{installed}: {tested:?}");
}

/// Works on whichever of the two it stands in: the case of the proof, or the repository of the page.
fn scenario(more: &str) -> String {
    let strings = r#"import re\n\n\ndef slugify(text):\n    \"\"\"Return `text` as a URL slug.\"\"\"\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n"#;
    let fix = r#"if [ -f strings.py ]; then python3 - <<'END'
import json
open("strings.py", "w").write(json.loads('"STRINGS"'))
END
fi
if [ -f greet.py ]; then sed -i 's/return "hello"/return "hello " + name/' greet.py; fi"#
        .replace("STRINGS", &strings.replace('\\', "\\\\"));
    let call = json!({"command": fix});
    format!(
        "key = \"{KEY}\"\n{more}\n[[turn]]\ntext = \"I will fix it.\"\ntool = [{{ name = \"bash\", raw = '''{call}''' }}]\n[[turn]]\ntext = \"Done.\"\n"
    )
}

/// A scripted model that listens; dropping it ends it, and whatever stands before it.
struct Endpoint {
    children: Vec<Child>,
    url: String,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Endpoint {
    fn open(house: &House, more: &str) -> Self {
        let place = house.root().join("model");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("scenario.toml"), scenario(more)).unwrap();
        house.hand_over(&place);
        let file = |name: &str| place.join(name).display().to_string();
        let child = house.start(&[
            "__model",
            &file("scenario.toml"),
            "--port-file",
            &file("port"),
        ]);
        assert!(
            wait_until(|| place.join("port").exists()),
            "no model listens"
        );
        let port = fs::read_to_string(place.join("port")).unwrap();
        Self {
            children: vec![child],
            url: format!("http://127.0.0.1:{port}/v1"),
        }
    }

    /// The same behind TLS, by a certificate that only its own authority vouches for.
    fn behind_tls(mut self, house: &House) -> Option<(Self, PathBuf)> {
        let dir = house.root().join("tls");
        fs::create_dir(&dir).unwrap();
        let made = Command::new("sh")
            .arg("-c")
            .arg(CERTIFICATES)
            .current_dir(&dir)
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            skip("openssl is not installed");
            return None;
        }
        fs::write(dir.join("front.py"), FRONT).unwrap();
        let plain = self
            .url
            .split(':')
            .nth(2)
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let front = Command::new("python3")
            .args(["front.py", plain])
            .current_dir(&dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.children.push(front);
        assert!(
            wait_until(|| dir.join("port").exists()),
            "nothing stands before it"
        );
        let port = fs::read_to_string(dir.join("port")).unwrap();
        self.url = format!("https://localhost:{port}/v1");
        house.hand_over(&dir);
        let authority = dir.join("ca.pem");
        Some((self, authority))
    }
}

const CERTIFICATES: &str = "set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=own-ca
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out own.csr -subj /CN=localhost
printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > ext
openssl x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile ext
chmod 644 ca.pem
";

/// Ends TLS and passes bytes on.
const FRONT: &str = r#"
import os, socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", 0))
with open("part", "w") as file:
    file.write(str(listener.getsockname()[1]))
os.rename("part", "port")
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
def serve(plain):
    try:
        near = context.wrap_socket(plain, server_side=True)
    except OSError:
        return
    far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=pump, args=(near, far), daemon=True).start()
    pump(far, near)
while True:
    plain, _ = listener.accept()
    threading.Thread(target=serve, args=(plain,), daemon=True).start()
"#;

/// A repository with a bug that its own test sees.
fn project(house: &House) -> Repo {
    let repo = Repo::new(house, "mine");
    repo.write("greet.py", "def greet(name):\n    return \"hello\"\n");
    repo.write(
        "test_greet.py",
        "import unittest\n\nfrom greet import greet\n\n\nclass Greets(unittest.TestCase):\n    def test_whom(self):\n        self.assertEqual(greet(\"Ada\"), \"hello Ada\")\n\n    def test_says_hello(self):\n        self.assertTrue(greet(\"Bob\").startswith(\"hello\"))\n",
    );
    repo.commit("a greeting");
    house.hand_over(&repo.dir);
    repo
}

/// One command of the page, typed in the repository; `more` is what this endpoint needs beside it.
fn typed(
    house: &House,
    repo: &Repo,
    line: &str,
    more: &[&str],
    answers: &[(&str, &str)],
) -> Answer {
    let installed = pi_prefix().display().to_string();
    let line = line.replace(PREFIX, &installed);
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    assert_eq!(words.remove(0), "cto");
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let mut command = house.command(&words);
    command.current_dir(&repo.dir);
    talk(command, 200, answers)
}

fn pi_prefix() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pi-0.74.2");
    own.canonicalize().unwrap()
}

/// Setup, try, apply; ends with the patch in the work tree and a clean word about everything.
fn walk(house: &House, endpoint: &Endpoint, setup_more: &[&str]) {
    let repo = project(house);
    let [_, setup, attempt, apply] = &commands()[..] else {
        panic!("four commands")
    };
    let credential = format!("env:{KEY_VARIABLE}");
    let answers = [
        ("Where is the model?", endpoint.url.as_str()),
        ("How does the credential come?", credential.as_str()),
        ("Send it?", "yes"),
        ("Which model?", "scripted"),
        ("as an alias?", "yes"),
        ("Who approves", "the owner"),
        ("to accept it", "MIT"),
        ("Type pi", "pi"),
    ];
    let done = typed(house, &repo, setup, setup_more, &answers);
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    let asked = answers
        .iter()
        .filter(|(words, _)| done.stdout.contains(words));
    assert!(asked.count() <= 8, "{}", done.stdout);
    assert!(!done.stdout.contains(KEY), "{}", done.stdout);

    let project = [("Which command tests", ""), ("What may change?", "")];
    let tried = typed(house, &repo, attempt, &[], &project);
    assert_eq!(tried.code, Some(0), "{}", tried.stdout);
    for want in ["PASS", "claimed", "observed"] {
        assert!(tried.stdout.contains(want), "{want}: {}", tried.stdout);
    }
    let taken = typed(house, &repo, apply, &[], &[]);
    assert_eq!(taken.code, Some(0), "{}", taken.stdout);
    assert_eq!(
        fs::read_to_string(repo.dir.join("greet.py")).unwrap(),
        "def greet(name):\n    return \"hello \" + name\n"
    );
    // Nothing of the way stands where it does not belong.
    for (dir, needle) in [
        ("state", KEY),
        ("state", endpoint.url.as_str()),
        ("home", KEY),
    ] {
        let mut grep = Command::new("grep");
        grep.args(["-rlF", needle]).arg(house.root().join(dir));
        let found = Answer::of(&grep.output().unwrap());
        assert_eq!(found.stdout, "", "{needle}");
    }
}

fn at_home() -> House {
    house().with(KEY_VARIABLE, KEY)
}

#[test]
fn four_commands_end_with_an_applied_patch() {
    let Some(_) = pi() else { return };
    let house = at_home();
    let endpoint = Endpoint::open(&house, "");
    walk(&house, &endpoint, &[]);
}

#[test]
fn an_ordinary_user_needs_no_more() {
    let Some(_) = pi() else { return };
    if !is_root() {
        return skip("whoever runs this is one already");
    }
    let house = at_home().let_to(ORDINARY);
    let endpoint = Endpoint::open(&house, "");
    walk(&house, &endpoint, &[]);
}

#[test]
fn an_endpoint_that_answers_with_a_dated_name() {
    let Some(_) = pi() else { return };
    let house = at_home();
    let endpoint = Endpoint::open(&house, "model = \"scripted-2026-05-01\"");
    walk(&house, &endpoint, &[]);
}

#[test]
fn an_endpoint_that_wants_max_completion_tokens() {
    let Some(_) = pi() else { return };
    let house = at_home();
    let endpoint = Endpoint::open(&house, "refuse_fields = [\"max_tokens\"]");
    walk(&house, &endpoint, &[]);
}

#[test]
fn an_endpoint_behind_an_authority_of_its_own() {
    let Some(_) = pi() else { return };
    let house = at_home();
    let Some((endpoint, authority)) = Endpoint::open(&house, "").behind_tls(&house) else {
        return;
    };
    walk(
        &house,
        &endpoint,
        &["--ca-file", authority.to_str().unwrap()],
    );
}
