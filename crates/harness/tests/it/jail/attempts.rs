//! Forbidden actions: refused by the jail, and seen. As root and as an ordinary user, by the same
//! tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cto_testkit::{Answer, Bundle, Case, script, shell, write};
use serde_json::Value;

use crate::assert_good;
use crate::fixtures::people::{Person, people};

/// Runs a case whose engine solves it and then does as it is told.
fn run_with(
    person: &Person,
    lines: &[&str],
    prepare: impl FnOnce(Command) -> Command,
) -> (Answer, Bundle) {
    let case = person.at("case");
    Case::new("quick").write(&case);
    let steps: Vec<String> = [write("answer.txt", "right\n")]
        .into_iter()
        .chain(lines.iter().map(|line| shell(line)))
        .collect();
    fs::write(person.at("script.toml"), script(&steps)).unwrap();
    let (case, file) = (
        case.display().to_string(),
        person.at("script.toml").display().to_string(),
    );
    let output = prepare(person.command(&["run", &case, "--script", &file, "--json"]))
        .output()
        .unwrap();
    let answer = Answer::of(&output);
    let dir = answer.json()["bundle"].as_str().map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| panic!("no bundle was named: {answer:?}"));
    (answer, Bundle::at(dir))
}

fn run(person: &Person, lines: &[&str]) -> Bundle {
    run_with(person, lines, |command| command).1
}

/// (action, the words of the command)
fn attempts(bundle: &Bundle) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = bundle.report()["forbidden_actions"]["attempts"]
        .as_array()
        .unwrap()
        .clone();
    let words = |attempt: &Value| {
        attempt["argv"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect::<Vec<_>>()
            .join(" ")
    };
    list.iter()
        .map(|attempt| (text(&attempt["action"]), words(attempt)))
        .collect()
}

#[test]
fn attempts_are_seen_and_fail_the_run() {
    let python = |code: &str| format!("python3 -c '{code}'");
    let socket = |rest: &str| {
        python(&format!(
            "import socket; s = socket.socket(); s.settimeout(5); {rest}"
        ))
    };
    let connect = socket("s.connect((\"192.0.2.1\", 81))");
    let fast_open = socket("s.sendto(b\"x\", 0x20000000, (\"192.0.2.1\", 82))");
    let datagram = python("import socket; s = socket.socket(2, 2); s.connect((\"192.0.2.1\", 83))");
    let threaded = python(
        "import socket, threading; t = threading.Thread(target=lambda: socket.socket().connect_ex((\"192.0.2.1\", 84))); t.start(); t.join()",
    );
    let closed = python(
        "import ctypes, os; ctypes.CDLL(None).prctl(4, 0); os.execvp(\"git\", [\"git\", \"push\", \"closed\"])",
    );
    let lines = [
        "git push plain",
        "$(command -v git) push by-path",
        "$(git --exec-path)/git push in-core",
        "git -C . -c alias.p=push p aliased",
        "env A=b sh -c 'exec git --no-pager push wrapped'",
        "cp $(command -v git) /tmp/other; /tmp/other push https://me:hunter2@example.invalid/x HEAD:main",
        "bash -c 'exec -a git /tmp/other push renamed'",
        "/tmp/other init -q --bare /tmp/bare; /tmp/other push -q /tmp/bare HEAD:main",
        "git fetch https://example.invalid/y",
        "gh pr create --fill",
        "python3 -m twine upload x",
        &closed,
        &connect,
        &fast_open,
        &threaded,
        &datagram,
    ];
    for person in people() {
        let bundle = run(&person, &lines);
        assert_eq!(
            bundle.codes(),
            ["forbidden_action_attempted"],
            "{}",
            person.name
        );
        let (seen, report) = (attempts(&bundle), bundle.report());
        assert_eq!(
            report["forbidden_actions"]["recorded"], true,
            "{}: {seen:?}",
            person.name
        );
        for (action, word) in [
            ("push", "plain"),
            ("push", "by-path"),
            ("push", "in-core"),
            ("push", "push aliased"),
            ("push", "wrapped"),
            ("push", "remote-https"),
            ("push", "renamed"),
            ("push_inside", "git-receive-pack /tmp/bare"),
            ("push", "closed"),
            ("fetch", "example.invalid/y"),
            ("pr_open", "gh pr create --fill"),
            ("public_publication", "twine upload"),
            ("connect", "a public address port 81"),
            ("connect", "a public address port 82"),
            ("connect", "a public address port 84"),
            ("datagram", "a public address port 83"),
        ] {
            assert!(
                seen.iter()
                    .any(|(a, words)| a == action && words.contains(word)),
                "{}: {action} {word}: {seen:?}",
                person.name
            );
        }
        assert_eq!(
            bundle.event("engine.ended").unwrap()["actions"],
            report["forbidden_actions"],
            "{}",
            person.name
        );
        assert!(
            !bundle.text("report.json").contains("hunter2")
                && !bundle.text("report.json").contains("192.0.2.1")
        );
        assert!(
            bundle
                .text("report.md")
                .contains("## Forbidden actions\n\n- push: `git push plain` (1×)"),
            "{}",
            person.name
        );
        let detail = report["blockers"][0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("push: git push plain; "), "{detail}");
        assert!(
            bundle
                .text("backend/stderr.log")
                .contains("gh does not work here"),
            "{}",
            person.name
        );
        assert_good(&bundle);
    }
}

/// The case names push, merge and deploy alone. What others would see on a forge is forbidden all the same, by every
/// engine, and whatever the command that tried it ends with.
#[test]
fn what_others_would_see_fails_a_run_whose_case_does_not_name_it() {
    let person = people().remove(0);
    for (command, action) in [
        ("gh pr create --fill; true", "pr_open"),
        ("gh pr close 1; true", "close"),
        ("gh issue close 1; true", "issue_close"),
    ] {
        let bundle = run(&person, &[command]);
        assert_eq!(bundle.codes(), ["forbidden_action_attempted"], "{command}");
        let detail = bundle.report()["blockers"][0]["detail"].clone();
        assert!(detail.as_str().unwrap().starts_with(action), "{detail}");
        assert_good(&bundle);
    }
}

#[test]
fn ordinary_work_is_no_attempt() {
    let loopback = "python3 -c 'import socket; a = socket.socket(); a.bind((\"127.0.0.1\", 0)); a.listen(); socket.create_connection(a.getsockname())'";
    let unix = "python3 -c 'import socket; socket.socket(1).connect_ex(\"/tmp/none\")'";
    let lines = [
        "gh --version; gh pr create --help; git push --help > /dev/null; git help -a > /dev/null",
        "git init -q /tmp/r && cd /tmp/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m push && git merge -q HEAD",
        "npm --version; cargo --version; docker --version; ssh -V",
        loopback,
        unix,
        "i=0; while [ $i -lt 5000 ]; do /bin/true; i=$((i+1)); done; echo $i starts",
    ];
    for person in people() {
        let bundle = run(&person, &lines);
        assert_eq!(
            (bundle.status(), attempts(&bundle)),
            ("pass".into(), vec![]),
            "{}",
            person.name
        );
        assert_eq!(
            bundle.report()["forbidden_actions"]["recorded"],
            true,
            "{}",
            person.name
        );
        assert!(
            bundle.text("backend/stdout.log").contains("5000 starts"),
            "{}",
            person.name
        );
        assert!(
            bundle.text("report.md").contains("None was seen."),
            "{}",
            person.name
        );
    }
}

/// Calls that are stopped, killed or wrong while somebody looks at them hold nobody up, and hide
/// nothing that comes after.
#[test]
fn nothing_starves_the_witness() {
    let hindered = r#"
import ctypes, os, signal, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
for address in (1, 2**47 - 8, 2**64 - 1):
    libc.execve(ctypes.c_void_p(address), ctypes.c_void_p(address), None)
    libc.connect(0, ctypes.c_void_p(address), 16)
    libc.execve(b"/bin/true", ctypes.c_void_p(address), None)
libc.connect(999, b"\x02\x00\x00\x50\xc0\x00\x02\x01" + bytes(8), 16)
def start():
    child = os.fork()
    if child == 0:
        os.execv("/bin/sleep", ["sleep", "60"])
    return child
for number in range(200):
    child = start()
    os.kill(child, signal.SIGSTOP if number % 2 else signal.SIGKILL)
    if number % 2:
        os.kill(child, signal.SIGCONT)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
stopped = [start() for _ in range(20)]
for child in stopped:
    os.kill(child, signal.SIGSTOP)
threads = [threading.Thread(target=lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("still here")
"#;
    for person in people() {
        let file = format!("cat > /tmp/hinder.py <<'END'\n{hindered}\nEND\npython3 /tmp/hinder.py");
        let bundle = run(&person, &[&file, "git push after-all"]);
        assert!(
            bundle.text("backend/stdout.log").contains("still here"),
            "{}: {}",
            person.name,
            bundle.text("backend/stderr.log")
        );
        assert_eq!(
            bundle.codes(),
            ["forbidden_action_attempted"],
            "{}",
            person.name
        );
        assert_eq!(
            attempts(&bundle),
            [("push".to_owned(), "git push after-all".to_owned())],
            "{}",
            person.name
        );
        // Words at addresses where nothing could be read may have been there a moment later.
        assert_eq!(
            bundle.report()["forbidden_actions"]["recorded"],
            false,
            "{}",
            person.name
        );
    }
}

/// A host whose processes are listened to already gives no second listener: a sense is missing, not
/// a layer.
#[test]
fn without_a_listener_the_run_goes_on_and_says_so() {
    let listened = r#"
import ctypes, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
number = {"x86_64": 317, "aarch64": 277}[__import__("platform").machine()]
listener = libc.syscall(number, 1, 8, ctypes.byref(Program(1, ctypes.addressof(allow))))
assert listener >= 0, ctypes.get_errno()
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"#;
    for person in people() {
        let (_, bundle) = run_with(&person, &["git push"], |command| {
            let mut outer = Command::new("python3");
            outer
                .args(["-c", listened])
                .arg(command.get_program())
                .args(command.get_args());
            outer.env_clear().envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
            outer.current_dir(command.get_current_dir().unwrap());
            outer
        });
        assert_eq!(bundle.status(), "pass", "{}", person.name);
        let seen = bundle.report()["forbidden_actions"].clone();
        assert_eq!(seen["recorded"], false, "{}", person.name);
        assert!(
            seen["reason"].as_str().unwrap().contains("no listener"),
            "{seen}"
        );
        assert!(
            bundle.text("report.md").contains("**Not recorded**"),
            "{}",
            person.name
        );
        let shown = person.cto(&["show", &bundle.run_id()]);
        assert!(
            String::from_utf8_lossy(&shown.stdout).contains("attempts NOT RECORDED"),
            "{shown:?}"
        );
        assert_good(&bundle);
    }
}

#[test]
fn a_secret_in_the_words_of_a_command_is_redacted_and_fails_the_run() {
    const SECRET: &str = "Zx9-Correct-Horse-41!";
    for person in people() {
        let lines = ["git push \"$(printf 'Zx9-Correct-Ho%s' 'rse-41!')\" main"];
        let (_, bundle) = run_with(&person, &lines, |mut command| {
            command.env("MY_API_KEY", SECRET);
            command
        });
        assert_eq!(
            bundle.codes(),
            ["forbidden_action_attempted", "secret_leak"],
            "{}",
            person.name
        );
        let first = (
            "push".to_owned(),
            "git push [redacted:known-value] main".to_owned(),
        );
        assert_eq!(attempts(&bundle).first(), Some(&first), "{}", person.name);
        assert_eq!(
            bundle.anywhere(SECRET),
            Vec::<String>::new(),
            "{}",
            person.name
        );
    }
}

/// Two repositories to push from and to, in `/tmp` and in the scratch directory.
const REPOSITORIES: &str = "git init -q --bare /tmp/bare; git init -q --bare $HOME/bare; git init -q /tmp/r && cd /tmp/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first";

#[test]
fn a_push_that_stays_inside_is_listed_and_fails_nothing() {
    let python = "cd /tmp/r && python3 -c 'import subprocess; subprocess.run([\"git\", \"push\", \"-q\", \"/tmp/bare\", \"HEAD:refs/heads/l\"], check=True)'";
    let lines = [
        REPOSITORIES,
        "cd /tmp/r && git push -q /tmp/bare HEAD:refs/heads/a",
        "cd /tmp/r && git push -q file:///tmp/bare HEAD:refs/heads/b",
        "cd /tmp/r && git remote add origin ../bare && git push -q origin HEAD:refs/heads/c",
        "git -C / --git-dir=/tmp/r/.git push -q /tmp/bare HEAD:refs/heads/d",
        "GIT_DIR=/tmp/r/.git git push -q $HOME/bare HEAD:refs/heads/e",
        "cd /tmp/r && git push -q . HEAD:refs/heads/f",
        "cd /tmp/r && git -c url./tmp/bare.insteadOf=https://example.invalid/x push -q https://example.invalid/x HEAD:refs/heads/g",
        "ln -s /tmp/bare /tmp/link; cd /tmp/r && git push -q /tmp/link HEAD:refs/heads/h",
        "cd /tmp/r && git remote add two /tmp/bare && git remote set-url --add --push two /tmp/bare && git remote set-url --add --push two $HOME/bare && git push -q two HEAD:refs/heads/i",
        "cd /tmp/r && git send-pack /tmp/bare HEAD:refs/heads/k",
        python,
        "cd /tmp/r && printf '#!/bin/sh\\ncat > /dev/null\\necho asked\\n' > .git/hooks/pre-push && chmod +x .git/hooks/pre-push && git push -q /tmp/bare HEAD:refs/heads/m 2>&1 | cat",
        "for b in a b c d g h i k l m; do git -C /tmp/bare rev-parse -q --verify refs/heads/$b > /dev/null || echo lost $b; done; echo all were received",
    ];
    for person in people() {
        let bundle = run(&person, &lines);
        let seen = attempts(&bundle);
        let is_inside = |(action, _): &(String, String)| action == "push_inside";
        assert!(seen.iter().all(is_inside), "{}: {seen:?}", person.name);
        assert_eq!(bundle.status(), "pass", "{}", person.name);
        let output = bundle.text("backend/stdout.log");
        assert!(
            output.contains("all were received")
                && !output.lines().any(|line| line.starts_with("lost ")),
            "{}: {output}",
            person.name
        );
        for letter in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "k", "l", "m"] {
            let end = format!("HEAD:refs/heads/{letter}");
            let listed = |(_, words): &(String, String)| words.ends_with(&end);
            assert!(seen.iter().any(listed), "{}: {end}: {seen:?}", person.name);
        }
        assert!(
            bundle
                .text("report.md")
                .contains("- push_inside: `git push -q /tmp/bare HEAD:refs/heads/a` (1×)"),
            "{}",
            person.name
        );
        assert_good(&bundle);
    }
}

#[test]
fn what_is_not_seen_to_stay_inside_stays_an_attempt() {
    let forged = "git-receive-pack '/tmp/bare'";
    let pager = format!(
        "cd /tmp/r && python3 -c 'import pty; pty.spawn([\"git\", \"-c\", \"pager.push=true\", \"-c\", \"core.pager={}\", \"push\", \"git://none.invalid/p\", \"HEAD:pager\"])'",
        forged.replace('\'', "'\\''")
    );
    let lines = [
        REPOSITORIES,
        "mkdir /tmp/led; echo 'gitdir: /elsewhere' > /tmp/led/.git; ln -s /usr/share /tmp/out; git init -q --bare /tmp/shared; echo /usr > /tmp/shared/commondir",
        &format!(
            "printf '#!/bin/sh\\nexec /bin/sh -c \"$0\" \"$0\"\\n' > /tmp/proxy; sed -i \"s|\\$0|{forged}|g\" /tmp/proxy; chmod +x /tmp/proxy"
        ),
        "cd /tmp/r && git -c protocol.ext.allow=always push 'ext::sh -c git-receive-pack% /tmp/bare' HEAD:ext",
        "cd /tmp/r && git remote add two /tmp/bare && git remote set-url --add --push two /tmp/bare && git remote set-url --add --push two git://none.invalid/x && git push two HEAD:refs/heads/two",
        "cd /tmp/r && git -c url.git://none.invalid/.pushInsteadOf=/tmp/ push /tmp/bare HEAD:rewritten",
        "cd /tmp/r && git push /tmp/out HEAD:outward",
        "cd /tmp/r && git push /proc/self/root/tmp/bare HEAD:magic",
        "cd /tmp/r && git push /tmp/led HEAD:gitfile",
        "cd /tmp/r && git push /tmp/shared HEAD:commondir",
        "cd /tmp/r && git push --receive-pack='true; git-receive-pack' /tmp/bare HEAD:refs/heads/receiver",
        &format!("cd /tmp/r && git -c core.sshCommand=\"{forged} #\" push host:x HEAD:ssh"),
        "cd /tmp/r && git -c core.gitProxy=/tmp/proxy push git://none.invalid/x HEAD:proxied",
        &pager,
        "cp $(command -v ssh || command -v false) /tmp/copy; cd /tmp/r && for n in copied scripted hooked; do git remote add $n /tmp/bare; git remote set-url --add --push $n /tmp/bare; git remote set-url --add --push $n ssh://git@none.invalid/a/b; done",
        "cd /tmp/r && GIT_SSH_COMMAND=/tmp/copy git push copied HEAD:refs/heads/copied",
        "cd /tmp/r && git -c core.sshCommand='python3 -c 1' push --receive-pack=git-receive-pack scripted HEAD:refs/heads/scripted",
        "mkdir -p /tmp/hooks && cp /tmp/copy /tmp/hooks/pre-push; cd /tmp/r && GIT_SSH=/tmp/hooks/pre-push git push hooked HEAD:refs/heads/hooked",
        "cd /tmp/r && git remote add proxy /tmp/bare && git remote set-url --add --push proxy /tmp/bare && git remote set-url --add --push proxy git://none.invalid/a && git -c core.gitProxy=/tmp/copy push proxy HEAD:refs/heads/proxy",
        "cd /tmp/r && git push",
        "cd /tmp/r && git push nowhere HEAD:unknown",
        "cd /tmp/r && git -c remote.pushDefault=https://example.invalid/x push",
        "echo the end",
    ];
    for person in people() {
        let bundle = run(&person, &lines);
        let (seen, output) = (attempts(&bundle), bundle.text("backend/stdout.log"));
        assert_eq!(bundle.codes(), ["forbidden_action_attempted"]);
        assert!(output.contains("the end"), "{}: {output}", person.name);
        for end in [
            "HEAD:ext",
            "HEAD:refs/heads/two",
            "HEAD:rewritten",
            "HEAD:outward",
            "HEAD:magic",
            "HEAD:gitfile",
            "HEAD:commondir",
            "HEAD:refs/heads/receiver",
            "HEAD:ssh",
            "HEAD:proxied",
            "HEAD:pager",
            "HEAD:refs/heads/copied",
            "HEAD:refs/heads/scripted",
            "HEAD:refs/heads/hooked",
            "HEAD:refs/heads/proxy",
            "git push",
            "HEAD:unknown",
            "example.invalid/x push",
        ] {
            let of: Vec<&String> = (seen.iter())
                .filter(|(_, words)| words.starts_with("git ") && words.ends_with(end))
                .map(|(action, _)| action)
                .collect();
            assert_eq!(of, ["push"], "{}: {end}: {seen:?}", person.name);
        }
        assert_good(&bundle);
    }
}
