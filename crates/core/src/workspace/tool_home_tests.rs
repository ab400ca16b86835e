use super::*;
use EnvironmentKind as K;

fn called_for(tracked: &[&str], commands: &[&str]) -> Vec<K> {
    let tracked: Vec<TreePath> = tracked.iter().map(|path| TreePath::new(*path)).collect();
    TOOL_HOMES
        .iter()
        .filter(|row| row.is_called_for(tracked.iter(), commands.iter().copied()))
        .map(|row| row.kind)
        .collect()
}

#[test]
fn files_and_words_call_for_a_home_and_nothing_else_does() {
    let go = vec![K::GoBuilds, K::GoModules];
    for (tracked, command, want) in [
        (&["README.md"][..], "make test", vec![]),
        (&["go.mod"], "make test", go.clone()),
        (&["tools/lint/go.mod"], "make test", go.clone()),
        (&["x"], "go test ./...", go.clone()),
        (&["x"], "cd a && go test", go.clone()),
        (&["x"], "cargo test --go", vec![]),
        (&["cargo.mod", "go.modern"], "forgo", vec![]),
        (&["uv.lock"], "pytest", vec![K::UvCache]),
        (&["x"], "uv run pytest", vec![K::UvCache]),
        (&["pom.xml"], "make", vec![K::MavenHome]),
        (&["x"], "./mvnw -o test", vec![K::MavenHome]),
        (&["app/build.gradle.kts"], "make", vec![K::GradleHome]),
        (&["x"], "./gradlew test", vec![K::GradleHome]),
    ] {
        assert_eq!(
            called_for(tracked, &[command]),
            want,
            "{tracked:?} {command}"
        );
    }
}

#[test]
fn a_home_is_where_its_tool_looks() {
    let row = |kind: K| *TOOL_HOMES.iter().find(|row| row.kind == kind).unwrap();
    let at = |kind: K, set: &[(&str, &str)]| {
        let find = |name: &str| {
            let found = set.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        row(kind).place(find).map(|dir| dir.display().to_string())
    };
    let home = ("HOME", "/h");
    for (kind, set, want) in [
        (K::GoBuilds, vec![home], Some("/h/.cache/go-build")),
        (
            K::GoBuilds,
            vec![home, ("XDG_CACHE_HOME", "/c")],
            Some("/c/go-build"),
        ),
        (K::GoBuilds, vec![home, ("GOCACHE", "/g")], Some("/g")),
        (K::GoBuilds, vec![home, ("GOCACHE", "off")], None),
        (K::GoBuilds, vec![home, ("GOCACHE", "/")], None),
        (
            K::GoBuilds,
            vec![home, ("GOCACHE", "")],
            Some("/h/.cache/go-build"),
        ),
        (K::GoBuilds, vec![], None),
        (K::GoModules, vec![home], Some("/h/go/pkg/mod")),
        (
            K::GoModules,
            vec![home, ("GOPATH", "/one:/two")],
            Some("/one/pkg/mod"),
        ),
        (K::UvCache, vec![home], Some("/h/.cache/uv")),
        (K::MavenHome, vec![home], Some("/h/.m2")),
        (K::GradleHome, vec![home], Some("/h/.gradle")),
    ] {
        assert_eq!(at(kind, &set).as_deref(), want, "{kind:?} {set:?}");
    }
}

#[test]
fn no_row_shows_settings_or_what_was_built_of_a_directory() {
    for row in TOOL_HOMES {
        for name in [
            "settings.xml",
            "settings-security.xml",
            "gradle.properties",
            "init.d",
            "caches/build-cache-1",
            "sdists-v10",
            "builds-v0",
            "environments-v2",
        ] {
            let shown = row
                .parts
                .iter()
                .any(|part| !part.is_empty() && matches(part, name.as_bytes()));
            assert!(!shown, "{:?} {name}", row.kind);
        }
        let wholly = row.parts.contains(&"");
        assert!(!wholly || row.parts.len() == 1, "{:?}", row.kind);
        assert!(row.kind.is_of_home() && !row.kind.is_judged_by_times());
    }
}

const FINE: PartFacts = PartFacts {
    in_repository: false,
    granted: true,
    readable: true,
    foreign: false,
    own_known: true,
    overlay: true,
    files: 9,
    bytes: 9,
    hidden_files: 0,
};

#[test]
fn a_part_is_below_an_overlay_copied_or_not_there() {
    let large = PartFacts {
        files: MOST_COPIED_FILES + 1,
        ..FINE
    };
    let bare = PartFacts {
        overlay: false,
        ..FINE
    };
    for (facts, want) in [
        (FINE, Carried::Overlay),
        (large, Carried::Overlay),
        (bare, Carried::Copied),
        (
            PartFacts {
                overlay: false,
                ..large
            },
            Carried::Not,
        ),
        (
            PartFacts {
                in_repository: true,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                granted: false,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                readable: false,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                foreign: true,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                own_known: false,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                files: u64::MAX,
                ..FINE
            },
            Carried::Not,
        ),
        (
            PartFacts {
                hidden_files: u64::MAX,
                ..FINE
            },
            Carried::Not,
        ),
    ] {
        let (carried, why) = decide_part(&facts);
        assert_eq!(carried, want, "{facts:?}");
        assert_eq!(why.is_some(), carried == Carried::Not, "{facts:?}");
    }
}

#[test]
fn what_a_pom_builds_is_known_or_said_not_to_be() {
    let pom = |inside: &str| {
        format!("<?xml version=\"1.0\"?>\n<project xmlns=\"x\">{inside}</project>\n")
    };
    let parent = "<parent><groupId>org.acme</groupId><artifactId>all</artifactId></parent>";
    let others = "<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId>\
                  </dependency></dependencies>";
    for (inside, want) in [
        (
            "<groupId>org.acme</groupId><artifactId>core</artifactId>".to_owned(),
            Some("org/acme/core"),
        ),
        (
            format!("{others}{parent}<artifactId> core </artifactId>"),
            Some("org/acme/core"),
        ),
        (
            format!("{parent}<groupId>other</groupId><artifactId>a.b-c</artifactId>"),
            Some("other/a.b-c"),
        ),
        (
            format!("<!-- <artifactId>no</artifactId> -->{parent}<x/><artifactId>yes</artifactId>"),
            Some("org/acme/yes"),
        ),
        (others.to_owned(), None),
        ("<artifactId>core</artifactId>".to_owned(), None),
        (format!("{parent}<artifactId>${{name}}</artifactId>"), None),
        (format!("{parent}<artifactId>../../x</artifactId>"), None),
        (format!("{parent}<artifactId>x</artifactId><y>"), None),
        (
            format!("{parent}<![CDATA[<artifactId>x</artifactId>]]>"),
            None,
        ),
    ] {
        let found = maven_place(&pom(&inside)).map(|path| path.to_string());
        assert_eq!(found.as_deref(), want, "{inside}");
    }
    let fine = pom("<groupId>g</groupId><artifactId>a</artifactId>");
    assert_eq!(
        maven_own([Some(fine.as_str())].into_iter()).unwrap().len(),
        1
    );
    assert_eq!(maven_own([Some(fine.as_str()), None].into_iter()), None);
    assert_eq!(maven_own([].into_iter()), Some(BTreeSet::new()));
}
