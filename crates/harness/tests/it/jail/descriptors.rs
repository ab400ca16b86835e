//! Descriptors 0–2 of a jail without a terminal: pipes of ours in every place, byte for byte, and
//! nothing of what the operator holds within reach.

use std::fs;

use crate::fixtures::people::people;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn all_three_can_be_opened_by_name() {
    let line = "echo in | $cto exec -- sh -c 'cat < /dev/stdin; cat < /proc/self/fd/0; echo out > /dev/stdout; echo err > /dev/stderr; echo fd > /dev/fd/1'";
    for person in people() {
        for redirect in ["", " > file", " >> file", " | cat", " 2> /dev/full"] {
            let output = person.shell(&format!("{line}{redirect}; cat file 2> /dev/null; exit 0"));
            let shown = text(&output.stdout) + &text(&output.stderr);
            for word in ["in\n", "out\n", "fd\n"] {
                assert!(shown.contains(word), "{}{redirect}: {shown}", person.name);
            }
            assert!(
                shown.contains("err\n") || redirect.contains("full"),
                "{}: {shown}",
                person.name
            );
            let _ = fs::remove_file(person.at("ws/file"));
        }
    }
}

#[test]
fn a_run_of_the_harness_gives_openable_ones_too() {
    let house = crate::house();
    let case = house.case(&cto_testkit::Case::new("quick"));
    let line = "cat < /dev/stdin; echo named-out > /dev/stdout; echo named-err > /dev/stderr";
    let script = cto_testkit::script(&[cto_testkit::shell(line), cto_testkit::exit(3)]);
    let (answer, bundle) = house.run(&case, &script, &[]);
    let log: String = cto_testkit::files_below(&bundle.dir)
        .into_iter()
        .filter_map(|(path, _)| fs::read_to_string(bundle.dir.join(path)).ok())
        .collect();
    for word in ["named-out", "named-err"] {
        assert!(log.contains(word), "{word}: {answer:?}");
    }
}

#[test]
fn a_pipeline_cannot_be_read_back_or_written_into() {
    for person in people() {
        // What somebody else put into the same pipe is not there for the command.
        let output = person.shell(
            "(echo neighbour; $cto exec -- sh -c 'timeout 1 cat <&1 >&2; timeout 1 cat < /dev/stdout >&2; timeout 1 cat /proc/self/fd/1 >&2') | (sleep 3; cat)",
        );
        assert_eq!(text(&output.stdout), "neighbour\n", "{}", person.name);
        assert!(
            !text(&output.stderr).contains("neighbour"),
            "{}: {}",
            person.name,
            text(&output.stderr)
        );
        // Nor does what it writes to its input go to whoever reads there next. It may wait for room
        // that only its own reading would make.
        let output = person.shell(
            "printf 'one\\ntwo\\n' | (read x; $cto exec -- sh -c 'timeout 1 sh -c \"echo planted > /proc/self/fd/0\"; true'; cat)",
        );
        assert!(
            !text(&output.stdout).contains("planted"),
            "{}: {}",
            person.name,
            text(&output.stdout)
        );
    }
}

#[test]
fn an_appended_log_is_only_appended_to() {
    for person in people() {
        for (number, attack) in [
            ": > /proc/self/fd/1",
            "echo gone > /dev/stdout",
            "truncate -s 0 /proc/self/fd/1",
            "python3 -c \"import os; os.lseek(1, 0, 0); os.write(1, b\\\"gone\\\")\"",
            "python3 -c \"import os; os.ftruncate(1, 0)\"",
            "dd if=/dev/zero of=/proc/self/fd/1 bs=1 count=4 conv=notrunc",
        ]
        .iter()
        .enumerate()
        {
            let log = format!("log-{number}");
            fs::write(person.at("outside").join(&log), "written before\n").unwrap();
            if person.as_user {
                let owner = Some(65534);
                std::os::unix::fs::chown(person.at("outside").join(&log), owner, owner).unwrap();
            }
            person.shell(&format!(
                "$cto exec -- sh -c '{attack}' >> ../outside/{log} 2>&1"
            ));
            let now = fs::read(person.at("outside").join(&log)).unwrap();
            assert!(
                text(&now).starts_with("written before\n"),
                "{}: {attack}: {}",
                person.name,
                text(&now)
            );
            // The same through what it may not truncate: a file that is not appended to.
            person.shell(&format!(
                "(echo first; $cto exec -- sh -c '{attack}' 2>&1) > ../outside/plain"
            ));
            let now = fs::read(person.at("outside/plain")).unwrap();
            assert!(
                text(&now).starts_with("first\n"),
                "{}: {attack}: {}",
                person.name,
                text(&now)
            );
        }
    }
}

#[test]
fn a_directory_as_input_gives_nothing() {
    for person in people() {
        fs::write(person.at("outside/secret"), "secret").unwrap();
        for attempt in [
            "ls /proc/self/fd/0/",
            "cat /proc/self/fd/0/secret",
            "cd /dev/stdin && cat secret",
            "python3 -c \"import os; print(os.open(\\\"secret\\\", 0, dir_fd=0))\"",
        ] {
            let output = person.shell(&format!(
                "$cto exec -- sh -c '{attempt}' < ../outside; echo code-$?"
            ));
            let shown = text(&output.stdout);
            assert!(
                !shown.contains("secret") && !shown.contains("code-0"),
                "{}: {attempt}: {shown}",
                person.name
            );
        }
        let output = person.shell("$cto exec -- cat < ../outside; echo code-$?");
        assert_eq!(text(&output.stdout), "code-0\n", "{}", person.name);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_writer() {
    for person in people() {
        let output = person.shell("$cto exec -- yes | head -1; echo ${PIPESTATUS[*]}");
        assert_eq!(text(&output.stdout), "y\n141 0\n", "{}", person.name);
        let output = person.shell(
            "$cto exec -- python3 -c 'import signal, sys\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\ntry:\n  while 1: sys.stdout.write(\"x\" * 9999)\nexcept BrokenPipeError: sys.stderr.write(\"EPIPE\\n\"); import os; os._exit(7)' | head -c 1; echo -${PIPESTATUS[*]}",
        );
        assert_eq!(text(&output.stdout), "x-7 0\n", "{}", person.name);
        assert!(text(&output.stderr).contains("EPIPE"), "{}", person.name);
    }
}

#[test]
fn much_passes_byte_for_byte() {
    const BYTES: u64 = 256 << 20;
    let make = format!("yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c {BYTES}");
    for person in people() {
        let expected = text(&person.shell(&format!("{make} | cksum")).stdout);
        for through in [
            format!("{make} | $cto exec -- cat | cksum"),
            format!("{make} > big; $cto exec -- cat < big | cksum"),
            "$cto exec -- cat < big > copy; cksum < copy".to_owned(),
            "cat big | $cto exec -- cat >> copy2; cksum < copy2".to_owned(),
        ] {
            let output = person.shell(&through);
            assert_eq!(
                text(&output.stdout),
                expected,
                "{}: {through}: {}",
                person.name,
                text(&output.stderr)
            );
        }
    }
}

#[test]
fn what_was_not_read_is_left_for_the_next() {
    for person in people() {
        fs::write(person.at("ws/lines"), "a\nb\nc\n").unwrap();
        let body = "while read x; do $cto exec -- echo got-$x; done";
        for line in [
            format!("{body} < lines"),
            format!("cat lines | {body}"),
            format!("printf 'a\\nb\\nc\\n' | {body}"),
        ] {
            let output = person.shell(&line);
            assert_eq!(
                text(&output.stdout),
                "got-a\ngot-b\ngot-c\n",
                "{}: {line}",
                person.name
            );
        }
        // And what was read is gone for it.
        for line in [
            "($cto exec -- head -c 2; cat) < lines",
            "cat lines | ($cto exec -- head -c 2; cat)",
        ] {
            let output = person.shell(line);
            assert_eq!(text(&output.stdout), "a\nb\nc\n", "{}: {line}", person.name);
        }
    }
}

#[test]
fn both_outputs_in_one_place_keep_their_order() {
    for person in people() {
        let inside = "for n in 1 2 3 4 5 6 7 8 9; do echo out-$n; echo err-$n >&2; done";
        let expected: String = (1..10).map(|n| format!("out-{n}\nerr-{n}\n")).collect();
        for redirect in [
            "2>&1",
            "2>&1 | cat",
            "> both 2>&1; cat both",
            ">> more 2>&1; cat more",
        ] {
            let output = person.shell(&format!("$cto exec -- sh -c '{inside}' {redirect}"));
            assert_eq!(
                text(&output.stdout),
                expected,
                "{}: {redirect}",
                person.name
            );
        }
    }
}

#[test]
fn output_that_cannot_be_written_is_said() {
    for person in people() {
        let output = person.shell("$cto exec -- echo lost > /dev/full; echo code-$?");
        assert_eq!(text(&output.stdout), "code-125\n", "{}", person.name);
        assert!(
            text(&output.stderr).contains("output_lost"),
            "{}: {}",
            person.name,
            text(&output.stderr)
        );
    }
}
