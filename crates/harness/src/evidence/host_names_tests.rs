use proptest::prelude::*;

use super::*;

fn names(repository: &str, home: &str) -> HostNames {
    HostNames::of(&[Path::new(repository)], &[Path::new(home)])
}

fn replaced(names: &HostNames, text: &str) -> String {
    String::from_utf8(names.replace(text.as_bytes()).0.into_owned()).unwrap()
}

#[test]
fn whole_components_and_the_longest() {
    let names = names("/home/me/code/app", "/home/me");
    for (text, want) in [
        ("/home/me/code/app", "{repo}"),
        ("/home/me/code/app/src/x.py:3", "{repo}/src/x.py:3"),
        ("in /home/me/code/app.", "in {repo}."),
        ("in /home/me/code/app.\nnext", "in {repo}.\nnext"),
        ("/home/me/code/app.egg-info", "~/code/app.egg-info"),
        ("/home/me/code/app2", "~/code/app2"),
        ("/home/me/code/app-old/x", "~/code/app-old/x"),
        ("/home/me/code/appé", "~/code/appé"),
        ("/home/me/code/", "~/code/"),
        ("/home/me2/x /home/mel", "/home/me2/x /home/mel"),
        ("-I/home/me/code/app/inc", "-I{repo}/inc"),
        ("file:///home/me/code/app", "file://{repo}"),
        ("a=/home/me;b='/home/me/code/app'", "a=~;b='{repo}'"),
        (r#"{"cwd":"/home/me/code/app"}"#, r#"{"cwd":"{repo}"}"#),
        (r"x\n/home/me/code/app\n", r"x\n{repo}\n"),
        ("~/code/app/x ~/code/apple", "{repo}/x ~/code/apple"),
        ("home/me/code/app", "home/me/code/app"),
        ("/home/me/code/app/home/me/code/app", "{repo}{repo}"),
    ] {
        assert_eq!(replaced(&names, text), want, "{text}");
    }
}

#[test]
fn as_json_urls_and_shells_write_it() {
    let path = r#"/home/jör/a b/"q"\x"#;
    let names = names(path, "/home/jör");
    for text in [
        path,
        r#"/home/jör/a b/\"q\"\\x"#,
        r#"/home/j\u00f6r/a b/\"q\"\\x"#,
        "/home/j%C3%B6r/a%20b/%22q%22%5Cx",
        r#"/home/jör/a\ b/\"q\"\\x"#,
    ] {
        assert_eq!(replaced(&names, text), "{repo}", "{text}");
    }
    assert_eq!(replaced(&names, r"/home/j\u00f6r/x"), "~/x");
    assert_eq!(replaced(&names, "file:///home/j%C3%B6r"), "file://~");
}

#[test]
fn as_programs_write_it_that_escape_more() {
    let names = names("/home/jör/it's/a", "/home/jör");
    for text in [
        r"\/home\/jör\/it's\/a",
        r"\/home\/j\u00f6r\/it's\/a",
        r"/home/j\\u00f6r/it's/a",
        "%2Fhome%2Fj%C3%B6r%2Fit%27s%2Fa",
        "%2fhome%2fj%c3%b6r%2fit%27s%2fa",
        r#"/home/jör/it'"'"'s/a"#,
        r"/home/jör/it'\''s/a",
        r"/home/j\303\266r/it's/a",
        r"/home/j\xf6r/it's/a",
    ] {
        assert_eq!(replaced(&names, text), "{repo}", "{text}");
    }
    assert_eq!(replaced(&names, "x=%2Fhome%2Fj%C3%B6r%2Fb"), "x=~%2Fb");
}

#[test]
fn a_short_path_is_no_part_of_another_one() {
    let names = names("/src", "/root");
    for (text, want) in [
        ("/src/a /root/b", "{repo}/a ~/b"),
        ("lib/src/a https://x/root/y", "lib/src/a https://x/root/y"),
        ("-I/src/a -isystem/src", "-I{repo}/a -isystem{repo}"),
        (r"a\n/src\t/root", r"a\n{repo}\t~"),
        ("\x1b[0m/src \x1b[1;31m/root", "\x1b[0m{repo} \x1b[1;31m~"),
        ("0m/src com/root", "0m/src com/root"),
        ("/srcs /rooted /src-2", "/srcs /rooted /src-2"),
        ("'/src':/root", "'{repo}':~"),
    ] {
        assert_eq!(replaced(&names, text), want, "{text}");
    }
    for nobodys in ["/", "", "relative"] {
        assert!(HostNames::of(&[Path::new(nobodys)], &[]).is_empty());
    }
}

#[test]
fn documents_of_ours_keep_paths_of_trees_and_words_of_the_operator() {
    let names = names("/home/me/app", "/home/me");
    let mut document = serde_json::json!({
        "detail": "cannot read /home/me/app/x: gone",
        "changed": ["fixtures/home/me/app/x"],
        "command": "/home/me/app/.venv/bin/pytest -q",
        "label": "check: /home/me/app/.venv/bin/pytest -q",
        "tool": "~/app/.venv/bin/python",
        "count": 3,
    });
    let contract = serde_json::json!({"test": ["/home/me/app/.venv/bin/pytest -q", "x"]});
    let spoken = names.spoken(&contract);
    assert_eq!(spoken, ["/home/me/app/.venv/bin/pytest -q"]);
    assert!(names.rename(&mut document, &spoken));
    assert_eq!(
        document,
        serde_json::json!({
            "detail": "cannot read {repo}/x: gone",
            "changed": ["fixtures/home/me/app/x"],
            "command": "/home/me/app/.venv/bin/pytest -q",
            "label": "check: /home/me/app/.venv/bin/pytest -q",
            "tool": "{repo}/.venv/bin/python",
            "count": 3,
        })
    );
    assert!(!names.rename(&mut document, &spoken));
}

#[test]
fn a_home_in_the_repository_is_the_home() {
    let names = names("/srv/app", "/srv/app/home");
    assert_eq!(
        replaced(&names, "/srv/app/home/x /srv/app/src"),
        "~/x {repo}/src"
    );
}

proptest! {
    #[test]
    fn nothing_is_left_and_nothing_else_is_lost(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "/home/me/app", "/home/me", "/home", " ", "x", "/", ".", "\n", "-", "é", "/app",
        ]), 0..24),
    ) {
        let names = names("/home/me/app", "/home/me");
        let text = pieces.concat();
        let out = replaced(&names, &text);
        prop_assert_eq!(names.find(b"", out.as_bytes()), []);
        let back = out.replace("{repo}", "/home/me/app").replace('~', "/home/me");
        prop_assert_eq!(back, text);
    }
}
