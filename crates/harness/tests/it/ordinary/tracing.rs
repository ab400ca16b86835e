//! Sanitizers, debuggers and tracers: who may use them where.

use std::fs;

use cto_testkit::{Case, Repo, script, shell, write};

use super::{CONTROL, has};
use crate::assert_good;
use crate::fixtures::people::people;
use crate::house;

const LEAKS: &str = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(10); p[1] = 1; p = 0; return 0; }\n";
const OVERFLOWS: &str = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(10); p[10] = 1; free((void *)p); return 0; }\n";
const BUILD: &str = "gcc -g -fsanitize=address";

/// Ends with 0 where a process may trace its child, and with 3 where it may not.
const LOOK: &str = "import ctypes, os\nr, w = os.pipe()\np = os.fork()\nif not p:\n    os.read(r, 1)\n    os._exit(0)\n\
                libc = ctypes.CDLL(None, use_errno=True)\nok = libc.ptrace(16, p, 0, 0) == 0\n\
                os.kill(p, 9)\nraise SystemExit(0 if ok else 3)\n";

#[test]
fn address_sanitizer_works() {
    if !has("gcc") {
        return;
    }
    for person in people() {
        fs::write(person.at("ws/leaks.c"), LEAKS).unwrap();
        fs::write(person.at("ws/overflows.c"), OVERFLOWS).unwrap();
        let (code, text) = person.jailed(&format!("{BUILD} leaks.c -o l && ./l"));
        assert_eq!((code, text.as_str()), (Some(0), ""), "{}", person.name);
        let (code, text) = person.jailed(&format!("{BUILD} overflows.c -o o && ./o"));
        assert!(
            code == Some(1) && text.contains("heap-buffer-overflow"),
            "{}: {text}",
            person.name
        );
    }
}

/// Memory that is only set aside is not used, whatever the contract allows to be used.
#[test]
fn address_sanitizer_works_in_checks_with_a_limit_of_memory() {
    if !has("gcc") {
        return;
    }
    let house = house();
    let command = format!("{BUILD} answer.c -o /tmp/a && /tmp/a && grep -qx fine control.txt");
    let case = Case::new("quick")
        .allowed("[\"answer.c\"]")
        .commands(&format!("[{}]", serde_json::to_string(&command).unwrap()))
        .extra("[limits]\nmemory_mib = 512")
        .file("workspace/answer.c", OVERFLOWS);
    let case = house.case(&case);
    for (text, code) in [(LEAKS, 0), (OVERFLOWS, 1)] {
        let change = format!("{text}/* changed */\n");
        let (answer, bundle) = house.run(&case, &script(&[write("answer.c", &change)]), &[]);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(code), "{answer:?} {log}");
        assert_eq!(log.contains("heap-buffer-overflow"), code != 0, "{log}");
        assert_good(&bundle);
    }
}

#[test]
fn leaks_are_found_where_tracing_is_allowed() {
    if !has("gcc") {
        return;
    }
    for person in people() {
        fs::write(person.at("ws/leaks.c"), LEAKS).unwrap();
        let build = person.jailed(&format!("{BUILD} leaks.c -o l"));
        assert_eq!(build.0, Some(0), "{}: {}", person.name, build.1);
        let traced = person.cto(&["exec", "--trace", "--", "./l"]);
        let text = String::from_utf8_lossy(&traced.stderr).into_owned();
        assert!(
            traced.status.code() != Some(0) && text.contains("detected memory leaks"),
            "{}: {text}",
            person.name
        );
        assert!(text.contains("note: --trace"), "{}: {text}", person.name);
        // What the user set is kept and added to.
        let set = |args: &[&str]| {
            let output = person
                .command(args)
                .env("LSAN_OPTIONS", "exitcode=7")
                .output();
            String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
        };
        let ask = ["sh", "-c", "echo $LSAN_OPTIONS"];
        let with = |flags: &[&str]| set(&[&["exec"], flags, &["--"], &ask[..]].concat());
        assert_eq!(with(&[]), "detect_leaks=0\n", "{}", person.name);
        let passed = ["--env", "LSAN_OPTIONS"];
        assert_eq!(
            with(&passed),
            "exitcode=7:detect_leaks=0\n",
            "{}",
            person.name
        );
        let traced = [&passed[..], &["--trace"]].concat();
        assert_eq!(with(&traced), "exitcode=7\n", "{}", person.name);
    }
}

#[test]
fn tracers_work_where_they_are_asked_for_and_nowhere_else() {
    let lines = [
        ("strace", "strace -f -o /dev/null true"),
        (
            "gdb",
            "gdb -batch -ex run -ex quit --args /bin/true | grep 'exited normally'",
        ),
        ("python3", "python3 look.py"),
    ];
    for person in people() {
        fs::write(person.at("ws/look.py"), LOOK).unwrap();
        for (tool, line) in lines {
            if !has(tool) {
                continue;
            }
            let (code, text) = person.jailed(line);
            assert_ne!(code, Some(0), "{}: {line}: {text}", person.name);
            let traced = person.cto(&["exec", "--trace", "--", "sh", "-c", line]);
            assert!(
                traced.status.success(),
                "{}: {line}: {traced:?}",
                person.name
            );
        }
        // Whoever may trace still does not get at pid 1 or past the filter.
        for line in [
            "python3 -c 'import ctypes; raise SystemExit(0 if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else 3)'",
            "cat /proc/1/mem",
            "cat /proc/1/environ",
            "touch f; strace -o /dev/null chmod u+s f",
            "strace -o /dev/null unshare -U true",
            "strace -o /dev/null --inject=chmod,fchmodat:retval=0 chmod 4755 look.py && test -u look.py",
        ] {
            let output = person.cto(&["exec", "--trace", "--", "sh", "-c", line]);
            assert!(
                !output.status.success(),
                "{}: {line}: {output:?}",
                person.name
            );
        }
    }
}

/// The word of `look.py`, wherever a command of the run was started.
#[test]
fn only_visible_checks_of_a_try_trace_and_the_verdict_says_so() {
    let house = house();
    let repo = Repo::new(&house, "traced");
    repo.write("look.py", LOOK);
    repo.write("answer.txt", "wrong\n");
    repo.write("control.txt", "fine\n");
    repo.commit("a bug");
    let ask = "python3 look.py; echo looked: $?";
    let test = format!("{ask}; grep -qx right answer.txt && grep -qx fine control.txt");
    let steps = script(&[shell(ask), write("answer.txt", "right\n")]);
    let control = house.script("control", CONTROL);
    let asked = ["--test", &test, "--setup", ask, "--control", &control];
    for (more, looks) in [(&[][..], [3, 3]), (&["--trace"][..], [0, 3])] {
        let (answer, bundle) = house.try_on(&repo, &steps, &[&asked[..], more].concat());
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(0), "{answer:?} {log}");
        let said = |text: &str| -> Vec<i32> {
            let codes = text
                .lines()
                .filter_map(|line| line.strip_prefix("looked: "));
            codes.map(|code| code.trim().parse().unwrap()).collect()
        };
        // Setup and check of the verified copy, then those of the control's, then of the loading control's.
        let all = [3, looks[0], 3, looks[1], 3, looks[0]];
        assert_eq!(said(&log), all, "{log}");
        assert_eq!(said(&bundle.text("backend/stdout.log")), [3]);
        assert_eq!(said(&bundle.text("backend/setup-1.log")), [3]);
        let allowed = looks[0] == 0;
        let guard = &bundle.report()["workspace_guard"];
        assert_eq!(guard["traced_checks"].as_bool().unwrap_or(false), allowed);
        assert_eq!(guard["untraced"][0], "LSAN_OPTIONS=detect_leaks=0");
        let plan = bundle.event("plan.updated").unwrap()["summary"].to_string();
        assert_eq!(
            plan.contains("tracing: allowed in visible checks"),
            allowed,
            "{plan}"
        );
        let run = bundle.report()["run_id"].as_str().unwrap().to_owned();
        let shown = house.cto(&["show", &run]).stdout;
        assert_eq!(shown.contains("tracing in checks"), allowed, "{shown}");
        assert_good(&bundle);
    }
}
