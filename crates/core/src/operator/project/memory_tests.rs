//! Documents that were edited, and typed flags over remembered ones.

use super::*;

fn path() -> TreePath {
    TreePath::new(b"/home/me/app".to_vec())
}

fn kept(values: &[&str]) -> Kept {
    Kept {
        values: values.iter().map(|v| (*v).to_owned()).collect(),
        from: "typed".into(),
    }
}

fn values(rows: &[(&str, &[&str])]) -> Values {
    rows.iter()
        .map(|(key, values)| ((*key).to_owned(), kept(values)))
        .collect()
}

fn memory() -> Memory {
    let repository = Repository {
        git_dir: TreePath::new(b"/home/me/app/.git".to_vec()),
        git_dir_inode: "12".into(),
        first_commit: "a".repeat(40),
        known_head: "b".repeat(40),
    };
    let mut memory = Memory::new(path(), repository);
    let rows: &[(&str, &[&str])] = &[
        ("test", &["npm test"]),
        ("allow", &["src/"]),
        ("forbid", &["*/tests/"]),
        ("runner", &["jest"]),
        ("setup", &["make x"]),
    ];
    memory.take(values(rows)).unwrap();
    memory
}

#[test]
fn what_was_written_is_read_again() {
    let bytes = memory().to_bytes().unwrap();
    assert_eq!(Memory::read(&bytes, &path()).unwrap(), memory());
}

#[test]
fn an_edited_document_is_refused() {
    let text = String::from_utf8(memory().to_bytes().unwrap()).unwrap();
    for (from, to) in [
        ("\"test\"", "\"engine\""),
        ("\"test\"", "\"env\""),
        ("\"test\"", "\"accept_unproven\""),
        ("\"schema_version\": 1", "\"schema_version\": 2"),
        ("/home/me/app\"", "/home/you/app\""),
        ("npm test", "npm\\u001b[2J"),
        ("npm test", ""),
        ("src/", "../src"),
        ("src/", "/etc/"),
        ("\"jest\"", "\"no-such\""),
        ("\"first_commit\"", "\"first\""),
        ("\"remembered\": {", "\"more\": 1, \"remembered\": {"),
        ("\"from\": \"typed\"", "\"from\": \"\\u202e\""),
        ("}", ""),
    ] {
        assert!(text.contains(from), "{from}");
        let edited = text.replacen(from, to, 1);
        assert!(
            Memory::read(edited.as_bytes(), &path()).is_err(),
            "{from} {to}"
        );
    }
    for bytes in [b"".as_slice(), b"null", b"[]", b"\xff", &[b'['; 4096]] {
        assert!(Memory::read(bytes, &path()).is_err());
    }
}

#[test]
fn typed_flags_win() {
    let remembered = memory().remembered;
    // What is typed; and for test, allow, forbid, setup and runner what comes of it.
    type Row<'a> = (&'a [(&'a str, &'a [&'a str])], &'a [&'a str], [&'a str; 5]);
    let rows: &[Row<'_>] = &[
        (&[], &[], ["npm test", "src/", "*/tests/", "make x", "jest"]),
        (
            &[("test", &["sh t.sh"])],
            &["test"],
            ["sh t.sh", "src/", "*/tests/", "make x", ""],
        ),
        // A scope that is typed is the whole scope.
        (
            &[("allow", &["tests/"])],
            &["allow"],
            ["npm test", "tests/", "", "make x", "jest"],
        ),
        (
            &[("forbid", &["src/a"])],
            &["forbid"],
            ["npm test", "src/", "src/a */tests/", "make x", "jest"],
        ),
        (
            &[("allow", &["a"]), ("forbid", &["b"])],
            &["allow", "forbid"],
            ["npm test", "a", "b", "make x", "jest"],
        ),
        (
            &[],
            &["control"],
            ["npm test", "src/", "*/tests/", "make x", ""],
        ),
        (
            &[("setup", &["true"])],
            &["setup"],
            ["npm test", "src/", "*/tests/", "true", "jest"],
        ),
    ];
    for (given, typed, want) in rows {
        let given = given
            .iter()
            .map(|(key, values)| (*key, kept(values).values))
            .collect();
        let settled = Settled::of(&given, typed, &remembered);
        let got =
            ["test", "allow", "forbid", "setup", "runner"].map(|key| settled.get(key).join(" "));
        assert_eq!(got, *want, "{typed:?}");
        for (field, ..) in settled.remembered() {
            let own = given.contains_key(field.key);
            assert_eq!(own, settled.said(field.key) == Some(Said::Added));
        }
    }
}

#[test]
fn taking_values_in_is_like_typing_them() {
    let mut memory = memory();
    memory.take(values(&[("allow", &["lib/"])])).unwrap();
    assert!(!memory.remembered.contains_key("forbid"));
    assert_eq!(memory.remembered["test"].values, ["npm test"]);
    let before = memory.clone();
    assert!(memory.take(values(&[("allow", &["/x"])])).is_err());
    assert!(memory.take(values(&[("env", &["A=1"])])).is_err());
    assert_eq!(memory, before);
}
