//! A jail at a terminal: whose keys are read, whose modes are changed, and what a program inside
//! sees of it. As root and as an ordinary user.

use std::fs;

use cto_testkit::wait_until;

use crate::fixtures::people::{Person, alive, desks, people};

// Commands that are stopped `exec` what they start: a shell that is stopped between `vfork` and the
// start of its child waits for a child that is stopped, and no shell outside is told, with or without a jail.

/// Lines typed at a prompt reach the shell, all of them, with this in the background.
fn keys_stay_outside(person: &Person, start: impl FnOnce(&mut cto_testkit::Desk)) {
    let mut desk = person.desk();
    start(&mut desk);
    for number in 0..12 {
        let shown = desk.line(&format!("echo mine-$(({number} + 100))"));
        assert!(
            shown.contains(&format!("mine-{}", number + 100)),
            "{}: {shown}",
            person.name
        );
    }
    assert!(desk.is_as_found(), "{}", person.name);
    let taken = fs::read_to_string(person.at("ws/taken")).unwrap_or_default();
    assert_eq!(taken, "", "{}", person.name);
}

#[test]
fn a_command_in_the_background_reads_no_keys() {
    for person in people() {
        for command in [
            "cat",
            "sh -c 'cat < /dev/tty'",
            "sh -c 'cat < /dev/stdin & wait'",
            "sh -c 'setsid cat'",
            "python3 -uc 'import os\nwhile 1: os.write(1, os.read(0, 99))'",
        ] {
            keys_stay_outside(&person, |desk| {
                let line = format!("$cto exec -- {command} > taken & sleep 0.5");
                desk.line(&line.replace('\n', "\\n").replace("'import", "$'import"));
            });
        }
    }
}

#[test]
fn after_a_stop_keys_are_the_shells_and_afterwards_the_commands() {
    for person in people() {
        keys_stay_outside(&person, |desk| {
            desk.starts("$cto exec -- sh -c 'echo up >&2; exec cat' > taken", "up");
            desk.types("\x1a");
            desk.sees("Stopped");
            desk.prompt();
        });
        let mut desk = person.desk();
        desk.starts("$cto exec -- sh -c 'echo up; exec cat'", "up\n");
        desk.types("before\n");
        desk.sees("before\nbefore\n");
        desk.types("\x1a");
        desk.sees("Stopped");
        desk.prompt();
        desk.types("fg\n");
        desk.sees("cat'\n");
        desk.types("after\n");
        desk.sees("after\nafter\n");
        desk.types("\x04");
        desk.prompt();
        assert!(desk.is_as_found(), "{}", person.name);
    }
}

#[test]
fn a_stopped_command_that_goes_on_in_the_background_reads_no_keys() {
    for person in people() {
        keys_stay_outside(&person, |desk| {
            desk.starts("$cto exec -- sh -c 'echo up >&2; exec cat' > taken", "up");
            desk.types("\x1a");
            desk.sees("Stopped");
            desk.prompt();
            desk.line("bg");
            desk.line("sleep 0.5");
        });
    }
}

#[test]
fn keys_typed_ahead_of_the_end_are_nobodys_but_the_shells_afterwards() {
    for (person, mut desk) in desks() {
        // A child that stays behind in the jail would read them.
        desk.line("$cto exec -- sh -c 'cat > taken & true'");
        let shown = desk.line("echo mine-$((1 + 1))");
        assert!(shown.contains("mine-2"), "{}: {shown}", person.name);
        let taken = fs::read_to_string(person.at("ws/taken")).unwrap_or_default();
        assert_eq!(taken, "", "{}", person.name);
    }
}

#[test]
fn a_pager_after_the_command_has_the_keys() {
    for (person, mut desk) in desks() {
        // The command never reads: what is typed is for the one that reads the terminal itself.
        let pager = "(read -r x < /dev/tty; echo \"pager: $x\"; cat > /dev/null)";
        desk.types(format!(
            "$cto exec -- sh -c 'echo up >&2; sleep 2' | {pager}\n"
        ));
        desk.sees("up\n");
        desk.types("for-the-pager\n");
        desk.sees("pager: for-the-pager");
        desk.prompt();
        assert!(desk.is_as_found(), "{}", person.name);
    }
}

#[test]
fn a_command_before_a_pipe_has_keys_once_it_asks() {
    for (person, mut desk) in desks() {
        desk.types("$cto exec -- sh -c 'read x; echo \"got $x\"' | cat\n");
        desk.sees("\n");
        desk.types("word\n");
        desk.sees("got word\n");
        desk.prompt();
        // A secret is not shown, whoever is asked for it.
        let ask = "import getpass; print(\"got\", getpass.getpass(\"sa\" + \"y: \"))";
        desk.types(format!("$cto exec -- python3 -c '{ask}' | cat\n"));
        desk.sees("say: ");
        desk.types("hidden-word\n");
        let shown = desk.sees("got hidden-word");
        assert!(!shown.contains("hidden"), "{}: {shown}", person.name);
        desk.prompt();
        assert!(desk.is_as_found(), "{}", person.name);
    }
}

#[test]
fn a_shell_inside_has_jobs_of_its_own() {
    for (person, mut desk) in desks() {
        desk.starts(
            "$cto exec --env PS1 -- bash --norc --noprofile --noediting -i",
            "ready> ",
        );
        desk.types("sleep 1000\n");
        desk.sees("sleep 1000\n");
        assert!(
            wait_until(|| alive("sleep\u{0}1000") > 0),
            "{}",
            person.name
        );
        desk.types("\x1a");
        desk.sees("Stopped");
        desk.prompt();
        let jobs = desk.line("jobs; hostname");
        assert!(
            jobs.contains("Stopped") && jobs.contains("cto"),
            "{}: {jobs}",
            person.name
        );
        // Both shells have the same prompt; which of them waits is told by whose the modes are.
        // A shell does not end by `exit` while it has not noticed that a stopped job is gone.
        desk.types("kill -9 %1; exec true\n");
        assert!(wait_until(|| desk.is_as_found()), "{}", person.name);
    }
}

#[test]
fn interrupts_reach_the_command_as_interrupts() {
    for (_person, mut desk) in desks() {
        let line = "$cto exec -- sh -c 'trap \"echo heard; exit 9\" INT; echo up; while :; do sleep 0.1; done'; echo code-$?";
        desk.starts(line, "up\n");
        desk.types("\x03");
        desk.sees("heard");
        desk.sees("code-9");
        desk.prompt();
        desk.starts(
            "$cto exec -- sh -c 'echo up; exec sleep 600'; echo code-$?",
            "up\n",
        );
        desk.types("\x03");
        desk.sees("code-130");
    }
}

#[test]
fn the_terminal_cannot_be_reached_through_its_stand_in() {
    const TRY: &str = "import fcntl, termios, struct
for fd in (0, 1, 2):
    for name, request, value in ((\"sti\", termios.TIOCSTI, b\"x\"), (\"setd\", 0x5423, struct.pack(\"i\", 27))):
        try: fcntl.ioctl(fd, request, value); print(name, fd, \"through\")
        except OSError as error: print(name, fd, \"refused\")
print(\"tried\")";
    for person in people() {
        fs::write(person.at("ws/try.py"), TRY).unwrap();
        let mut desk = person.desk();
        desk.types("$cto exec -- python3 try.py\n");
        let shown = desk.sees("tried");
        assert!(
            !shown.contains("through") && shown.matches("refused").count() == 6,
            "{}: {shown}",
            person.name
        );
        desk.prompt();
        assert!(desk.is_as_found(), "{}", person.name);
        let shown = desk.line("echo still-$((2 + 2))");
        assert!(shown.contains("still-4"), "{}: {shown}", person.name);
    }
}

#[test]
fn each_of_the_three_is_a_terminal_where_it_was_one() {
    for (person, mut desk) in desks() {
        for bits in 0..8u32 {
            let redirect: String = [" < /dev/zero", " > out", " 2> err"]
                .iter()
                .enumerate()
                .filter(|(n, _)| bits & (1 << n) == 0)
                .map(|(_, text)| *text)
                .collect();
            // Written to a file of the workspace: there may be no output to read.
            let inside = "exec 3> is; for n in 0 1 2; do test -t $n && echo $n >&3; done; for n in stdout stderr; do echo seen > /dev/$n && echo $n >&3; done; head -c 0 < /dev/stdin && echo stdin >&3";
            desk.line(&format!("$cto exec -- sh -c '{inside}'{redirect}"));
            let is = fs::read_to_string(person.at("ws/is")).unwrap();
            let expected: String = (0..3)
                .filter(|n| bits & (1 << n) != 0)
                .map(|n| format!("{n}\n"))
                .chain(["stdout\nstderr\nstdin\n".to_owned()])
                .collect();
            assert_eq!(is, expected, "{}: {redirect}", person.name);
        }
    }
}

#[test]
fn a_change_of_size_is_told() {
    for (_person, mut desk) in desks() {
        desk.resize(33, 77);
        let line = "$cto exec -- sh -c 'trap \"stty size\" WINCH; stty size; echo up; while :; do sleep 0.1; done'";
        desk.types(format!("{line}\n"));
        desk.sees("\n33 77\n");
        desk.sees("up\n");
        desk.resize(50, 132);
        desk.sees("50 132\n");
        desk.types("\x03");
        desk.prompt();
    }
}

#[test]
fn a_terminal_that_hangs_up_ends_the_jail() {
    for (number, person) in people().into_iter().enumerate() {
        // In the foreground with keys, without them, and in the background.
        for (spelling, rest) in [" > /dev/null", " | cat", " &"].iter().enumerate() {
            let mark = format!("60{number}{spelling}.25");
            let mut desk = person.desk();
            desk.types(format!(
                "$cto exec -- sh -c 'trap \"\" HUP; sleep {mark}'{rest}\n"
            ));
            desk.sees("\n");
            assert!(
                wait_until(|| alive(&format!("sleep\u{0}{mark}")) > 0),
                "{}",
                person.name
            );
            desk.hangs_up();
            assert!(
                wait_until(|| alive(&format!("sleep\u{0}{mark}")) == 0),
                "{}: {rest}",
                person.name
            );
        }
    }
}

#[test]
fn much_that_is_pasted_comes_back_whole() {
    for (person, mut desk) in desks() {
        let pasted: String = (0..4000)
            .map(|number| format!("{number:05} {}\n", "x".repeat(54)))
            .collect();
        desk.starts("$cto exec -- sh -c 'stty -echo; echo up; tee copy'", "up\n");
        desk.types(pasted.clone().into_bytes());
        let mut shown = desk.sees("03999 ");
        shown.push_str("03999 ");
        shown.push_str(&desk.sees("\n"));
        shown.push('\n');
        desk.types("\x04");
        desk.prompt();
        assert!(shown == pasted, "{}: {}", person.name, shown.len());
        let copy = fs::read_to_string(person.at("ws/copy")).unwrap();
        assert!(copy == pasted, "{}: {}", person.name, copy.len());
    }
}

#[test]
fn modes_are_given_back_however_it_ends() {
    for (person, mut desk) in desks() {
        desk.line("$cto exec -- sh -c 'stty raw -echo; kill -9 $$'");
        assert!(desk.is_as_found(), "{}: killed inside", person.name);
        desk.line("$cto exec -- sh -c 'stty raw -echo'");
        assert!(desk.is_as_found(), "{}: left raw inside", person.name);
        for signal in ["TERM", "INT", "HUP", "QUIT"] {
            // Only a program whose keys are read has them in other modes.
            let inside = "$cto exec -- sh -c 'stty -echo; echo up; exec cat'";
            desk.starts(
                &format!("sh -c 'echo $$ > pid; exec {}'", inside.replace('\'', "\"")),
                "up\n",
            );
            assert!(wait_until(|| !desk.is_as_found()), "{}", person.name);
            let pid = fs::read_to_string(person.at("ws/pid")).unwrap();
            let status = std::process::Command::new("kill")
                .args(["-s", signal, pid.trim()])
                .status()
                .unwrap();
            assert!(status.success());
            desk.prompt();
            assert!(desk.is_as_found(), "{}: {signal}", person.name);
        }
    }
}

/// Takes every key it can get at, from before anybody asks for a password until they have it.
const THIEF: &str = "import os, signal, time
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
try: keys = os.open('/dev/tty', os.O_RDWR)
except OSError: keys = 0
try: os.tcsetpgrp(keys, os.getpgrp())
except OSError: pass
os.set_blocking(keys, False)
def take():
    try: taken = os.read(keys, 100)
    except OSError: taken = b''
    if taken: open('taken', 'ab').write(taken)
for _ in range(20):
    take()
    time.sleep(0.05)
open('up', 'w').close()
while not os.path.exists('done'):
    take()
    time.sleep(0.001)
";

#[test]
fn a_password_for_another_program_of_the_same_job_is_not_the_commands() {
    const ASK: &str = "until test -e up; do sleep 0.1; done; read -s -r -p Pass\"\"word: x; echo; echo \"got[$x]\"; touch done";
    const THIEF_RUNS: &str = "$cto exec -- python3 thief.py";
    let spellings = [
        // In the background of a script, which has no jobs: all of it is in the foreground.
        format!("bash -c '{THIEF_RUNS} & {ASK}; wait'"),
        format!("bash -c '{THIEF_RUNS} > /dev/tty 2>&1 & {ASK}; wait'"),
        format!("sh -c '{THIEF_RUNS} &'; {ASK}; sleep 0.2"),
        // In a pipeline of a script, first and last.
        format!("bash -c '{THIEF_RUNS} | ({ASK}) < /dev/tty'"),
        format!("bash -c '({ASK}; true) < /dev/tty | {THIEF_RUNS}'"),
        // In a pipeline of a shell with jobs, where the first may have keys that are shown.
        format!("{THIEF_RUNS} | ({ASK}) < /dev/tty"),
    ];
    for person in people() {
        fs::write(person.at("ws/thief.py"), THIEF).unwrap();
        for line in &spellings {
            for name in ["up", "done", "taken"] {
                let _ = fs::remove_file(person.at("ws").join(name));
            }
            let mut desk = person.desk();
            desk.types(format!("{line}\n"));
            desk.sees("Password:");
            desk.types("hunter2\n");
            assert!(
                wait_until(|| person.at("ws/done").exists()),
                "{}: {line}",
                person.name
            );
            desk.prompt();
            let taken = fs::read_to_string(person.at("ws/taken")).unwrap_or_default();
            assert!(
                !taken.contains(char::is_alphanumeric),
                "{}: {line}: {taken:?}",
                person.name
            );
            assert!(desk.is_as_found(), "{}: {line}", person.name);
        }
    }
}

#[test]
fn a_terminal_is_the_same_by_any_name() {
    for (person, mut desk) in desks() {
        for redirect in ["< /dev/tty", "> /dev/tty 2> /dev/tty", "2> /dev/tty"] {
            let inside = "exec 3> is; for n in 0 1 2; do test -t $n && echo $n >&3; done; echo u\"\"p; read x; echo \"got[$x]\"";
            desk.starts(&format!("$cto exec -- sh -c '{inside}' {redirect}"), "up\n");
            desk.types("word\n");
            desk.sees("got[word]");
            desk.prompt();
            let is = fs::read_to_string(person.at("ws/is")).unwrap();
            assert_eq!(is, "0\n1\n2\n", "{}: {redirect}", person.name);
        }
    }
}

#[test]
fn a_command_without_keys_is_told_and_says_why() {
    for (person, mut desk) in desks() {
        let ask = "python3 -c 'input()'";
        let hidden = "python3 -c 'import getpass; getpass.getpass()'";
        for (line, why) in [
            (format!("setsid -w $cto exec -- {ask}"), "another session"),
            (format!("echo | $cto exec -- {hidden}"), "not the terminal"),
            (
                format!("bash -c \"$cto exec -- {ask} | cat\""),
                "leads this job",
            ),
        ] {
            let shown = desk.line(&line);
            assert!(
                shown.contains(why) && shown.contains("EOFError"),
                "{}: {line}: {shown}",
                person.name
            );
            assert!(desk.is_as_found(), "{}: {line}", person.name);
        }
    }
}
