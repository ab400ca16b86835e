use proptest::prelude::*;

use super::*;
use crate::values::digest::Digest;
use crate::workspace::tree::{Entry, FileKind};

fn tree<'a>(paths: impl IntoIterator<Item = &'a str>) -> Tree {
    let entry = Entry {
        kind: FileKind::Regular,
        bytes: 0,
        sha256: Digest::of(b""),
    };
    paths
        .into_iter()
        .map(|path| (TreePath::new(path), entry))
        .collect()
}

fn rules(texts: &[&str]) -> Vec<PathRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn names(paths: &[TreePath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// What is masked and what is shown.
fn decided(paths: &[&str], allowed: &[&str], forbidden: &[&str]) -> (Vec<String>, Vec<String>) {
    let found = decide_masks(
        &tree(paths.iter().copied()),
        &rules(allowed),
        &rules(forbidden),
    );
    (names(&found.masked), names(&found.shown))
}

const CONFIGURED: [&str; 14] = [
    ".claude/agents/x.md",
    ".claude/settings.json",
    ".codex",
    ".env",
    ".vscode/extensions.json",
    ".vscode/tasks.json",
    "app/.ENV",
    "app/.mcp.json",
    "app/.pi/settings.json",
    "app/main.py",
    "bunfig.toml",
    "notclaude/.claude.txt",
    "secrets/prod.json",
    "sub/bunfig.toml",
];

const HIDDEN: [&str; 9] = [
    ".claude",
    ".codex",
    ".env",
    ".vscode/tasks.json",
    "app/.ENV",
    "app/.mcp.json",
    "app/.pi",
    "bunfig.toml",
    "secrets",
];

#[test]
fn no_width_of_a_rule_shows_anything() {
    for wide in [
        &["app/main.py"][..],
        &["*", "*/"],
        &["*/"],
        &["app/"],
        &[".*"],
        &[".*", ".*/"],
        &["*env"],
        &[".env*"],
        &["app/.*"],
        &["*/.mcp.json"],
        &[".claud*/"],
        &[".env/", ".ENV", "Secrets/"],
    ] {
        let (masked, shown) = decided(&CONFIGURED, wide, &[]);
        assert_eq!(masked, HIDDEN, "{wide:?}");
        assert!(shown.is_empty(), "{wide:?}: {shown:?}");
    }
}

#[test]
fn a_name_that_is_spelled_out_shows_that_and_no_more() {
    for (allowed, gone, shown, instead) in [
        (&[".env"][..], &[".env"][..], &[".env"][..], &[][..]),
        (&[".claude/"], &[".claude"], &[".claude"], &[]),
        (
            &[".claude/settings.json"],
            &[".claude"],
            &[".claude/settings.json"],
            &[".claude/agents"],
        ),
        (
            &[".claude/agents/"],
            &[".claude"],
            &[".claude/agents"],
            &[".claude/settings.json"],
        ),
        (&["secrets/prod.json"], &["secrets"], &["secrets"], &[]),
        (&["*", "*/", "app/.ENV"], &["app/.ENV"], &["app/.ENV"], &[]),
    ] {
        let mut want: Vec<&str> = HIDDEN.into_iter().filter(|it| !gone.contains(it)).collect();
        want.extend(instead);
        want.sort_unstable();
        let found = decided(&CONFIGURED, allowed, &[]);
        assert_eq!(found.0, want, "{allowed:?}");
        assert_eq!(found.1, shown, "{allowed:?}");
    }
    // Forbidden beats allowed, here as everywhere.
    let (masked, shown) = decided(&[".env", "a"], &[".env"], &[".env*"]);
    assert_eq!((masked, shown.len()), (vec![".env".to_owned()], 0));
    // Each name on the way must be spelled out, not only the first.
    let nested = [".claude/.env", ".claude/a"];
    assert_eq!(
        decided(&nested, &[".claude/"], &[]),
        (vec![".claude/.env".into()], vec![".claude/a".into()])
    );
    assert_eq!(
        decided(&nested, &[".claude/.env"], &[]),
        (vec![".claude/a".into()], vec![".claude/.env".into()])
    );
}

#[test]
fn names_of_secrets_and_names_that_only_look_like_them() {
    for (path, hidden) in [
        (".env", true),
        (".Env", true),
        (".env.local", true),
        (".env.production", true),
        (".env.test", true),
        (".env-prod", true),
        (".env_prod", true),
        (".envrc", true),
        (".envrc.local", true),
        ("deep/down/.env", true),
        (".env.example.local", true),
        (".env.example", false),
        (".env.sample", false),
        (".env.template", false),
        (".env.dist", false),
        (".env.local.example", false),
        (".env-example", false),
        (".ENV.Example", false),
        (".envrc.example", false),
        ("env", false),
        (".environment", false),
        (".envoy.yaml", false),
        ("main.env.rs", false),
        (".netrc", true),
        ("deploy/id_rsa", true),
        ("deploy/id_rsa.pub", false),
        ("store/release.keystore", true),
        ("credentials", true),
        ("config/credentials.json", true),
        ("config/credentials.yml.enc", false),
        ("src/credentials.rs", false),
        ("src/secrets.py", false),
        ("certs/test.pem", false),
        (".npmrc", false),
        ("prod.env", true),
        ("deploy/Staging.ENV", true),
        ("example.env", false),
        ("config.sample.env", false),
        (".dev.vars", true),
        (".dev.vars.local", true),
        (".dev.vars.example", false),
        ("id_rsa.bak", true),
        ("id_rsa~", true),
        ("id_ed25519_sk", true),
        ("id_ecdsa.old", true),
        ("id_rsa_deploy", true),
        ("id_rsa_deploy.pub", false),
        ("id_rsa.example", false),
        ("src/id_rsa_reader.rs", false),
        ("id_rsakit", false),
        (".netrc.bak", true),
        ("credentials.json.orig", true),
        (".env.bak", true),
        (".vault_pass", true),
        (".vault_pass.txt", true),
        (".vault-password", true),
        (".docker/config.json", true),
        ("docker/config.json", false),
        ("terraform.tfvars", true),
        ("prod.auto.tfvars.json", true),
        ("example.tfvars", false),
        ("terraform.tfvars.example", false),
        ("gcp/service-account.json", true),
        ("service-account.example.json", false),
        ("kubeconfig", true),
        ("dev.kubeconfig", true),
        ("pkg/kubeconfig.go", false),
        ("pkg/kubeconfig/load.go", false),
        ("crush.json", true),
        (".claude.json", true),
        ("candy-crush.json", false),
        ("locales/en/credentials.json", false),
        ("i18n/secrets.yml", false),
        ("locales/en/credentials.csv", true),
        ("locales/.env", true),
    ] {
        let (masked, shown) = decided(&[path, "other"], &["*", "*/"], &[]);
        let want: Vec<String> = hidden.then(|| path.to_owned()).into_iter().collect();
        assert_eq!((masked, shown.len()), (want, 0), "{path}");
    }
}

#[test]
fn source_in_a_folder_with_the_name_of_secrets_is_shown_and_nothing_beside_it() {
    type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let rows: [Row<'_>; 15] = [
        (&["credentials/a.json", "x"], &["credentials"], &[]),
        (
            &["credentials/a.json", "credentials/mod.rs"],
            &["credentials/a.json"],
            &["credentials/mod.rs"],
        ),
        (
            &["src/secrets/store.go", "src/secrets/README.md"],
            &[],
            &["src/secrets"],
        ),
        (
            &["secrets/rotate.py", "secrets/prod.yaml", "secrets/live.key"],
            &["secrets/live.key", "secrets/prod.yaml"],
            &["secrets/rotate.py"],
        ),
        // However deep the source lies, what is beside its folder stays hidden whole.
        (
            &[
                "credentials/a/b/c/lib.go",
                "credentials/live/stripe",
                "credentials/live/x.txt",
            ],
            &["credentials/live"],
            &["credentials/a"],
        ),
        // No ending, an unknown one, and one that is all of the name.
        (
            &[
                "secrets/a.py",
                "secrets/token",
                "secrets/x.blob",
                "secrets/.py",
            ],
            &["secrets/.py", "secrets/token", "secrets/x.blob"],
            &["secrets/a.py"],
        ),
        // Source beside it is not source in it.
        (&["pkg/a.ts", "pkg/secrets/key.txt"], &["pkg/secrets"], &[]),
        (
            &[
                "credentials/mod.rs",
                "credentials/.env",
                "credentials/id_rsa",
            ],
            &["credentials/.env", "credentials/id_rsa"],
            &["credentials/mod.rs"],
        ),
        // A name with a dot holds no source, wherever it stands.
        (&[".aws/config", ".aws/x.js"], &[".aws"], &[]),
        (&[".ssh/gen.py", ".ssh/deploy"], &[".ssh"], &[]),
        (
            &[".secrets/a.rs", ".env/b.py", ".gnupg/c.go"],
            &[".env", ".gnupg", ".secrets"],
            &[],
        ),
        (
            &["secrets/.aws/x.js", "secrets/a.js"],
            &["secrets/.aws"],
            &["secrets/a.js"],
        ),
        (&[".claude/secrets/a.py"], &[".claude"], &[]),
        (
            &[
                "app/views/secrets/x.html.erb",
                "docs/secrets/README.md",
                "modules/secrets/main.tf",
                "proto/secrets/a.proto",
                "templates/credentials/list.html",
            ],
            &[],
            &[
                "app/views/secrets",
                "docs/secrets",
                "modules/secrets",
                "proto/secrets",
                "templates/credentials",
            ],
        ),
        (&["secrets/A.PY"], &[], &["secrets"]),
    ];
    for (paths, masked, shown) in rows {
        for allowed in [&["*", "*/"][..], &["x"]] {
            let found = decided(paths, allowed, &[]);
            assert_eq!(found.0, masked, "{paths:?}");
            assert_eq!(found.1, shown, "{paths:?}");
        }
    }
    // What may not be changed may be read.
    let forbidden = decided(&["secrets/a.py"], &["*/"], &["secrets/"]);
    assert_eq!(forbidden.1, ["secrets"]);
}

#[test]
fn what_is_seen_in_place_of_what_is_masked() {
    let tree = tree([".env", ".pi/a", ".pi/b/c", "sub/.env", "sub/x"]);
    let masked = decide_masks(&tree, &[], &[]).masked;
    let seen: Vec<(String, Seen)> = seen_of_masked(&tree, &masked)
        .into_iter()
        .map(|(path, seen)| (path.to_string(), seen))
        .collect();
    let want = [
        (".env", Seen::Empty),
        (".pi/a", Seen::Gone),
        (".pi/b/c", Seen::Gone),
        ("sub/.env", Seen::Empty),
    ];
    assert_eq!(seen, want.map(|(path, seen)| (path.to_owned(), seen)));
    assert!(seen_of_masked(&tree, &[]).is_empty());
}

#[test]
fn an_input_is_put_neither_into_a_masked_place_nor_around_one() {
    let masked = [TreePath::new(".pi"), TreePath::new("sub/.env")];
    for (input, over) in [
        (".pi/more.json", true),
        (".pi/", true),
        ("sub/", true),
        ("sub/.env", true),
        ("sub/.envs/", false),
        (".pipes/", false),
    ] {
        let found = mask_over(&masked, &input.parse().unwrap());
        assert_eq!(found.is_some(), over, "{input}");
    }
}

#[test]
fn orders_are_looked_for_at_the_top() {
    for (path, is) in [
        (".pi/x", true),
        (".Claude/b/c", true),
        (".mcp.json", true),
        ("bunfig.toml", true),
        (".vscode/tasks.json", true),
        (".vscode/extensions.json", false),
        ("node_modules/a/.claude/settings.json", false),
        ("node_modules/a/.mcp.json", false),
        (".env", false),
        ("pi/x", false),
    ] {
        assert_eq!(is_agent_config_at_top(&TreePath::new(path)), is, "{path}");
    }
}

#[test]
fn what_is_new_in_a_hidden_directory_or_spelled_out_is_no_litter() {
    let start = tree([".pi/settings.json", "secrets/key", "src/secrets/a.py", "a"]);
    for (path, allowed, is) in [
        (".pi/new.json", &["*", "*/"][..], false),
        (".pi/deep/new.json", &[".pi/"], false),
        ("secrets/new", &["*/"], false),
        ("src/secrets/a.pyc", &["*/"], true),
        ("sub/.pi/new.json", &["*", "*/"], true),
        (".claude/x", &["*", "*/"], true),
        (".env", &["*", "*/"], true),
        (".env", &[".env"], false),
        ("target/out", &["target/"], true),
        ("target/out", &["target/out"], false),
        ("target/out", &["target/out/"], true),
    ] {
        let found = litter(vec![TreePath::new(path)], &start, &rules(allowed));
        assert_eq!(!found.is_empty(), is, "{path} {allowed:?}");
    }
}

proptest! {
    /// Every file the table hides is below exactly one masked place or one shown one, no other
    /// file is below any, and only a rule without a pattern ever shows one.
    #[test]
    fn places_cover_exactly_what_is_hidden(
        paths in proptest::collection::btree_set("(a|\\.pi|secrets|\\.env|\\.ENV)(/(a|x\\.rs|\\.pi|\\.env)){0,3}", 1..25),
        allowed in proptest::collection::vec("(a|\\.pi|secrets|\\.env|\\*|\\.\\*)(/(a|\\.pi|\\.env|\\*)){0,2}/?", 0..4),
    ) {
        let is_dir = |path: &str| paths.iter().any(|other| other.starts_with(&format!("{path}/")));
        let paths: Vec<&str> = paths.iter().map(String::as_str).filter(|path| !is_dir(path)).collect();
        let allowed: Vec<PathRule> = allowed.iter().filter_map(|text| text.parse().ok()).collect();
        let tree = tree(paths.iter().copied());
        let found = decide_masks(&tree, &allowed, &[]);
        let over = |list: &[TreePath], path: &TreePath| {
            list.iter().filter(|place| at_or_below(path.as_bytes(), place.as_bytes())).count()
        };
        for path in tree.keys() {
            let told = usize::from(!places(path).is_empty());
            let (masked, shown) = (over(&found.masked, path), over(&found.shown, path));
            prop_assert_eq!(masked + shown, told, "{}: {:?}", path, found);
            let named = allowed.iter().any(|rule| {
                named(rule).is_some_and(|named| at_or_below(path.as_bytes(), named))
            });
            let is_source = places(path).iter().all(|place| place.shows_source);
            prop_assert!(shown == 0 || named || is_source, "{}: {:?}", path, found);
            prop_assert!(!is_source || path.as_bytes().ends_with(b".rs") || told == 0);
        }
    }
}
