//! Names, places and settings that programs expect of any Linux, and what of the host they do not
//! tell.

use std::fs;
use std::path::Path;

use super::has;
use crate::fixtures::people::people;

#[test]
fn its_own_name_leads_to_itself() {
    for person in people() {
        let ask = "import socket; print(socket.gethostbyname(socket.gethostname()))";
        let (code, text) =
            person.jailed(&format!("python3 -c '{ask}' && getent hosts $(hostname)"));
        assert_eq!(code, Some(0), "{}: {text}", person.name);
        assert_eq!(text.lines().next(), Some("127.0.0.1"), "{}", person.name);
    }
}

#[test]
fn files_that_are_the_same_on_every_host_are_there() {
    for person in people() {
        for file in ["services", "os-release", "mime.types", "protocols"] {
            let path = format!("/etc/{file}");
            let Ok(text) = fs::read(&path) else { continue };
            let shown = person.cto(&["exec", "--", "cat", &path]);
            assert_eq!(shown.stdout, text, "{}: {path}", person.name);
        }
        let users = "getent passwd 0 && getent group 0 && getent passwd $(id -u) && id -un";
        let (code, text) = person.jailed(users);
        assert!(
            code == Some(0) && text.starts_with("root:x:0:0:"),
            "{}: {text}",
            person.name
        );
        assert!(text.ends_with("\nengine\n"), "{}: {text}", person.name);
    }
}

#[test]
fn var_tmp_can_be_written_and_is_not_the_hosts() {
    for person in people() {
        let name = format!("cto-ordinary-{}", std::process::id());
        let line = format!("echo kept > /var/tmp/{name} && cat /var/tmp/{name} && ls /var");
        assert_eq!(
            person.jailed(&line),
            (Some(0), "kept\ntmp\n".into()),
            "{}",
            person.name
        );
        assert!(!Path::new("/var/tmp").join(&name).exists());
        // A workspace below it is the host's, as everywhere.
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        if person.as_user {
            continue;
        }
        let dir = place.path().display().to_string();
        let made = person.cto(&["exec", "--workspace", &dir, "--", "touch", "here"]);
        assert!(made.status.success(), "{made:?}");
        assert!(place.path().join("here").exists());
        // Beside a kept `/tmp` it is private all the same.
        let kept = tempfile::tempdir_in("/var/tmp").unwrap();
        let tmp = kept.path().display().to_string();
        let line = format!("echo more > /var/tmp/{name} && touch /tmp/kept");
        let flags = [
            "exec",
            "--workspace",
            &dir,
            "--tmp",
            &tmp,
            "--",
            "sh",
            "-c",
            &line,
        ];
        let made = person.cto(&flags);
        assert!(made.status.success(), "{made:?}");
        assert!(kept.path().join("kept").exists() && !kept.path().join(&name).exists());
        assert!(!Path::new("/var/tmp").join(&name).exists());
    }
}

#[test]
fn settings_can_be_read_by_name() {
    for person in people() {
        for line in [
            "test \"$(cat /proc/sys/kernel/ostype)\" = Linux",
            "test \"$(cat /proc/sys/kernel/osrelease)\" = \"$(uname -r)\"",
            "test \"$(getconf NGROUPS_MAX)\" -gt 32",
            "test \"$(cat /proc/sys/kernel/pid_max)\" -gt 1000",
            "test \"$(cat /proc/sys/kernel/random/uuid)\" != \"$(cat /proc/sys/kernel/random/uuid)\"",
            "grep -q 0 /sys/devices/system/cpu/online",
            "test -d /sys/devices/system/cpu/cpu0",
        ] {
            let (code, text) = person.jailed(line);
            assert_eq!(code, Some(0), "{}: {line}: {text}", person.name);
        }
    }
}

/// What is beside what is shown, in other spellings too.
#[test]
fn nothing_that_names_the_host_or_can_be_set_is_shown() {
    for person in people() {
        for line in [
            "ls /proc/sys",
            "ls /proc/sys/../sys/.",
            "cat /proc/sys/kernel/random/boot_id",
            "cat /proc/self/task/../../sys/kernel/random/boot_id",
            "cat /proc/sys/kernel/hostname",
            "cat /proc/sys/kernel/core_pattern",
            "echo 1 > /proc/sys/kernel/pid_max",
            "echo 1 > /run/settings/kernel/pid_max",
            "chmod 777 /proc/sys",
            "ls /run/settings",
            "ls /sys/kernel",
            "ls /sys/class",
            "ls /sys/fs",
            "echo 0 > /sys/devices/system/cpu/cpu1/online",
            "touch /sys/x",
            "cat /etc/machine-id",
            "cat /etc/hostname",
            "ls /etc/ssl/private",
            "ls /etc/ssl/certs/../private",
            "cat /etc/maven/settings.xml",
            "cat /etc/environment",
            "echo x >> /etc/hosts",
            "echo x >> /etc/gitconfig",
            "ls /var/lib",
        ] {
            let (code, text) = person.jailed(line);
            assert_ne!(code, Some(0), "{}: {line}: {text}", person.name);
        }
    }
}

#[test]
fn java_finds_its_settings() {
    if !has("java") || !has("javac") {
        return;
    }
    let source = "public class H { public static void main(String[] a) throws Exception {\n\
                  java.security.MessageDigest.getInstance(\"SHA-256\");\n\
                  new java.security.SecureRandom().nextInt();\n\
                  System.out.println(java.net.InetAddress.getLocalHost().getHostAddress());\n} }\n";
    for person in people() {
        fs::write(person.at("ws/H.java"), source).unwrap();
        let (code, text) = person.jailed("java H.java");
        assert_eq!(
            (code, text.as_str()),
            (Some(0), "127.0.0.1\n"),
            "{}",
            person.name
        );
    }
}

#[test]
fn git_has_an_identity_and_the_repositorys_own_wins() {
    for person in people() {
        let make = "git init -q r 2>/dev/null && cd r && git commit -q --allow-empty -m one";
        let line = format!(
            "{make} && git log -1 --format='%an <%ae>' && git config user.name Me && \
             git config user.email me@example.org && git commit -q --allow-empty -m two && \
             git log -1 --format='%an <%ae>'"
        );
        let said = "engine <engine@cto.invalid>\nMe <me@example.org>\n";
        let output = person.cto(&["exec", "--", "sh", "-c", &line]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text, said, "{}: {output:?}", person.name);
    }
}
