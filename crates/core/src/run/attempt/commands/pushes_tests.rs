//! What git starts on its own machine, and what only looks like it.

use super::*;

fn words(line: &str) -> Vec<&[u8]> {
    line.split('|').map(str::as_bytes).collect()
}

#[test]
fn a_push_of_gits_own() {
    for (path, line, want) in [
        ("/usr/bin/git", "git|push", true),
        (
            "/usr/bin/git",
            "git|-C|/x|-c|a=b|--git-dir=/y|push|origin",
            true,
        ),
        ("/tmp/other", "git|push|/tmp/bare", true),
        ("/usr/lib/git-core/git-push", "x|origin", true),
        ("/usr/bin/git", "git|send-pack|/tmp/bare", true),
        ("/usr/bin/git", "git|subtree|push|a", false),
        ("/usr/bin/git", "git|lfs|push", false),
        ("/usr/bin/git", "git|-C|push|status", false),
        ("/usr/bin/sudo", "sudo|git|push", false),
        ("/usr/bin/git", "git|remote-https|push", false),
        ("/tmp/x", "x|push", false),
    ] {
        assert_eq!(is_own_push(path.as_bytes(), &words(line)), want, "{line}");
    }
}

#[test]
fn one_shape_of_command_is_the_local_transport() {
    let own = "/bin/sh|-c|git-receive-pack '/tmp/bare'|git-receive-pack '/tmp/bare'";
    let path = b"/bin/sh";
    assert_eq!(local_transport(path, &words(own)), Some(&b"/tmp/bare"[..]));
    for line in [
        // Another program, and one that hides behind it.
        "/bin/sh|-c|./x '/tmp/bare'|./x '/tmp/bare'",
        "/bin/sh|-c|./git-receive-pack '/tmp/bare'|./git-receive-pack '/tmp/bare'",
        "/bin/sh|-c|git-receive-pack '/tmp/bare'; x|git-receive-pack '/tmp/bare'; x",
        "/bin/sh|-c|git-receive-pack '/tmp/bare' \"$@\"|git-receive-pack '/tmp/bare'|host",
        "/bin/sh|-c|git-receive-pack '/tmp/a' '/tmp/b'|git-receive-pack '/tmp/a' '/tmp/b'",
        "/bin/sh|-c|git-receive-pack '/tmp/a'\\''b'|git-receive-pack '/tmp/a'\\''b'",
        "/bin/sh|-c|git-receive-pack '-x'|git-receive-pack '-x'",
        "/bin/sh|-c|git-receive-pack ''|git-receive-pack ''",
        "/bin/sh|-c|git-receive-pack /tmp/bare|git-receive-pack /tmp/bare",
        "/bin/sh|-c|git-receive-pack '/tmp/bare'|other",
        "/bin/sh|-c|git-receive-pack '/tmp/bare'",
        "/bin/sh|-e|git-receive-pack '/tmp/bare'|git-receive-pack '/tmp/bare'",
        "ssh|-c|git-receive-pack '/tmp/bare'|git-receive-pack '/tmp/bare'",
    ] {
        assert_eq!(local_transport(path, &words(line)), None, "{line}");
    }
    assert_eq!(local_transport(b"/tmp/x", &words(own)), None);
}

#[test]
fn where_a_receiver_receives() {
    for (path, line, want) in [
        (
            "/usr/bin/git-receive-pack",
            "git-receive-pack|/tmp/bare",
            Some("/tmp/bare"),
        ),
        ("/usr/bin/git", "git-receive-pack|.", Some(".")),
        ("/usr/bin/git", "git|receive-pack|a b", Some("a b")),
        ("/usr/bin/git", "git|receive-pack|--stateless-rpc|/x", None),
        ("/usr/bin/git", "git|receive-pack|--help", None),
        ("/usr/bin/git", "git|-C|/|receive-pack|x", None),
        ("/usr/bin/git", "git|push|x", None),
        ("/usr/bin/ssh", "ssh|git-receive-pack", None),
    ] {
        let found = received_in(path.as_bytes(), &words(line));
        assert_eq!(found, want.map(str::as_bytes), "{line}");
    }
}
