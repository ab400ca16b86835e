use super::*;

fn paths(names: &[&str]) -> Vec<TreePath> {
    names.iter().map(|name| TreePath::new(*name)).collect()
}

/// A patch that puts lines of one list in the place of others.
fn exchanged(list: &str, removed: &[&str], added: &[&str]) -> AskedFor {
    let mut text = format!(
        "diff --git a/{list} b/{list}\n@@ -1,{} +1,{} @@\n",
        removed.len(),
        added.len()
    );
    let removed = removed.iter().map(|line| format!("-{line}\n"));
    let added = added.iter().map(|line| format!("+{line}\n"));
    text.extend(removed.chain(added));
    AskedFor::of(text.as_bytes())
}

#[test]
fn what_a_list_named_before_is_not_asked_for() {
    let wheel = |version: &str| {
        format!(
            "{{ url = \"https://files.example/aa/numpyx-{version}-py3-none-any.whl\", hash = \"sha256:{version}\" }},"
        )
    };
    for (list, removed, added, module) in [
        // A comma, a version, an order, a spelling, a source.
        (
            "pyproject.toml",
            "x = [\"numpyx>=1\"]",
            "x = [\"numpyx>=1\", ]",
            "numpyx",
        ),
        (
            "pyproject.toml",
            "x = [\"numpyx>=1\"]",
            "x = [\"numpyx>=2\"]",
            "numpyx",
        ),
        (
            "pyproject.toml",
            "x = [\"b\", \"numpyx\"]",
            "x = [\"numpyx\", \"b\"]",
            "numpyx",
        ),
        ("requirements.txt", "Numpy.X", "numpy-x", "numpy_x"),
        (
            "requirements.txt",
            "numpyx",
            "numpyx @ git+https://h.example/n/numpyx.git",
            "numpyx",
        ),
        ("requirements.txt", "PyYAML==5", "pyyaml==6", "yaml"),
        ("uv.lock", &wheel("1.0"), &wheel("1.1"), "numpyx"),
        (
            "package.json",
            "\"left-pad\": \"1\"",
            "\"left-pad\": \"2\",",
            "left-pad",
        ),
        (
            "yarn.lock",
            "left-pad@1.0.0:",
            "left-pad@1.1.0:",
            "left-pad",
        ),
        (
            "package-lock.json",
            "\"left-pad\": {",
            "\"node_modules/left-pad\": {",
            "left-pad",
        ),
        ("pnpm-lock.yaml", "/@x/y@1.0.0:", "'@x/y@2.0.0':", "@x/y"),
        (
            "Cargo.toml",
            "serde = \"1\"",
            "[dependencies.serde]",
            "serde",
        ),
        (
            "go.mod",
            "require github.com/x/y v1",
            "\tgithub.com/x/y v2",
            "github.com/x/y/z",
        ),
    ] {
        let path = TreePath::new(list);
        let asked = exchanged(list, &[removed], &[added]);
        assert!(!asked.asks(&path, module), "{removed} -> {added}");
        let asked = exchanged(list, &[], &[added]);
        assert!(asked.asks(&path, module), "{added}");
        // Another list is another one.
        let other = exchanged("requirements-dev.txt", &[removed], &[]);
        assert_eq!(other, AskedFor::default());
    }
    for (list, removed, added, module) in [
        (
            "setup.cfg",
            "x = requests-mock",
            "x = requests-mock, requests",
            "requests",
        ),
        (
            "setup.cfg",
            "x = google-auth",
            "x = google-auth, google-cloud-x",
            "google",
        ),
        (
            "setup.py",
            "import numpyx",
            "    install_requires=[\"numpyx\"],",
            "numpyx",
        ),
        (
            "package.json",
            "\"@types/pad\": \"1\"",
            "\"@types/pad\": \"1\", \"pad\": \"1\"",
            "pad",
        ),
        (
            "go.mod",
            "require github.com/x/y v1",
            "github.com/x/y/v2 v2",
            "github.com/x/y/v2/z",
        ),
    ] {
        let asked = exchanged(list, &[removed], &[added]);
        assert!(
            asked.asks(&TreePath::new(list), module),
            "{removed} -> {added}"
        );
    }
    // What was there and is not read may be anything.
    let long = format!("{}numpyx", " ".repeat(64 << 10));
    let asked = exchanged("setup.cfg", &[&long], &["numpyx"]);
    assert_eq!(asked, AskedFor::default());
}

#[test]
fn only_what_could_have_been_written_is_looked_up() {
    let names: Vec<String> = (0..=MOST).map(|n| format!("p{n}")).collect();
    let asked = exchanged("package.json", &[], &[&names.join(" ")]);
    let list = paths(&["package.json"]);
    let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert!(asked.accounts_for(&names[..MOST], &list));
    assert!(asked.accounts_for(&own(&["p1"]), &list));
    assert!(!asked.accounts_for(&names, &list), "too many");
    assert!(!asked.accounts_for(&own(&["p1", "p1"]), &list), "twice");
    assert!(
        !asked.accounts_for(&own(&["p2", "p1"]), &list),
        "another order"
    );
    assert!(
        !asked.accounts_for(&own(&["p1", "q"]), &list),
        "not asked for"
    );
    assert!(!asked.accounts_for(&own(&["p1 "]), &list), "no name");
    assert!(!asked.accounts_for(&[], &list), "none");
    assert!(!asked.accounts_for(&[], &[]), "nothing");
    let twice = paths(&["package.json", "package.json"]);
    assert!(!asked.accounts_for(&own(&["p1"]), &twice), "a list twice");
    let more = paths(&["go.mod", "package.json"]);
    assert!(
        !asked.accounts_for(&own(&["p1"]), &more),
        "a list that asks for none"
    );
}

/// Many words are no way to have removed lines not read.
#[test]
fn a_list_that_is_not_read_to_its_end_asks_for_nothing() {
    let text = "diff --git a/setup.cfg b/setup.cfg\n@@ -1 +1,2 @@\n+numpyx\n+a\n-numpyx\n";
    let list = TreePath::new("setup.cfg");
    for room in 0..5 {
        let mut reader = AskedReader {
            names: MOST_NAMES - room,
            ..AskedReader::default()
        };
        reader.feed(text.as_bytes());
        let asked = reader.finish();
        assert!(!asked.asks(&list, "numpyx"), "{room}");
        assert_eq!(asked.asks(&list, "a"), room >= 3, "{room}");
    }
}
