use super::maven::{counts, own, place};
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
        // Where a program is started, however.
        (&["x"], "/usr/local/go/bin/go test", go.clone()),
        (&["x"], "GOFLAGS= go test", go.clone()),
        (&["x"], "env A=1 timeout -k 5 60 go test", go.clone()),
        (&["x"], "sh -c 'go vet ./...'", go.clone()),
        (&["x"], "if ! go vet; then exit 1; fi", go.clone()),
        (&["x"], "cd a\ngo test", go.clone()),
        (&["x"], "make | (go test)", go.clone()),
        (&["x"], "timeout 60 ./mvnw test", vec![K::MavenHome]),
        (&["x"], "timeout -s KILL 60 uv run pytest", vec![K::UvCache]),
        (&["x"], "env -u X -u Y go test", go.clone()),
        (&["x"], "ls | xargs -I {} go vet {}", go.clone()),
        (
            &["x"],
            "nice -n 5 timeout -s KILL 60 ./mvnw test",
            vec![K::MavenHome],
        ),
        // And not where something else has its name.
        (&["x"], "pytest tests/go", vec![]),
        (&["x"], "pytest src/uv/x.py", vec![]),
        (&["x"], "pytest -k go", vec![]),
        (&["x"], "pytest go", vec![]),
        (&["x"], "timeout 60 pytest go", vec![]),
        (&["x"], "timeout -k 5 60 pytest tests/go", vec![]),
        (&["x"], "if pytest go; then true; fi", vec![]),
        (&["x"], "pytest -k 'a' -m b go", vec![]),
        (&["x"], "cat go.mod", vec![]),
        (&["x"], "make go", vec![]),
        (&["x"], "./go/run.sh", vec![]),
        (&["x"], "npm run mvn", vec![]),
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
            "simple-v27",
            "flat-index-v2",
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
        let found = place(&pom(&inside)).map(|path| path.to_string());
        assert_eq!(found.as_deref(), want, "{inside}");
    }
    for inside in [
        "<artifactId>core<!-- x -->-api</artifactId>",
        "<artifactId>core<?x y?>-api</artifactId>",
        "<artifactId>core<b/>-api</artifactId>",
        "<artifactId>core<b></b>-api</artifactId>",
        "<artifactId>core<!-- x --></artifactId>",
    ] {
        let found = place(&pom(&format!("{parent}{inside}")));
        assert_eq!(found, None, "{inside}");
    }
    let before = "<artifactId><!-- x -->core</artifactId>";
    let found = place(&pom(&format!("{parent}{before}")));
    assert_eq!(found, Some(TreePath::new("org/acme/core")));
}

#[test]
fn what_a_repository_builds_is_known_by_all_that_may_describe_it() {
    let pom = |name: &str| {
        format!("<project><groupId>g</groupId><artifactId>{name}</artifactId></project>")
    };
    let (a, b, odd) = (pom("a"), pom("b"), pom("${x}"));
    type Files<'t> = &'t [(&'t str, Option<&'t str>)];
    let found = |files: Files<'_>, command: &str| {
        let tracked: Vec<TreePath> = files.iter().map(|(path, _)| TreePath::new(*path)).collect();
        let counted = tracked.iter().zip(files.iter().map(|(_, text)| *text));
        let counted = counted.filter(|(path, _)| counts(path));
        let own = own(counted, tracked.iter(), [command]);
        own.map(|places| {
            let names = places.iter().map(ToString::to_string);
            names.collect::<Vec<_>>().join(" ")
        })
    };
    let both: Files<'_> = &[("pom.xml", Some(&a)), ("x/pom-ci.xml", Some(&b))];
    let strange: Files<'_> = &[("pom.xml", Some(&a)), ("x/pom-ci.xml", Some(&odd))];
    for (files, command, want) in [
        (&[][..], "mvn test", Some("")),
        (both, "mvn test", Some("g/a g/b")),
        (both, "mvn -f x/pom-ci.xml test", Some("g/a g/b")),
        (both, "mvn -fx/pom-ci.xml test", Some("g/a g/b")),
        (both, "mvn --file=x/pom-ci.xml test", Some("g/a g/b")),
        (both, "mvn -f x test", Some("g/a g/b")),
        (both, "mvn -f ./x/ test", Some("g/a g/b")),
        (both, "mvn -fae test", Some("g/a g/b")),
        (both, "make -f other.mk && mvn test", Some("g/a g/b")),
        (both, "mvn -f other.xml test", None),
        (both, "mvn --file other.xml test", None),
        (both, "mvn --file=$POM test", None),
        (both, "cd x && ./mvnw -fother.xml test", None),
        (both, "sh -c 'mvn -f other.xml test'", None),
        (both, "mvn -f 'x y/pom.xml'", None),
        (both, "mvn -f . test", Some("g/a g/b")),
        (both, "mvn -f ../x/ test", Some("g/a g/b")),
        // What a quote holds is not read, and is not nothing.
        (both, "mvn --file=\"ci/build.xml\" test", None),
        (both, "mvn --file='ci/build.xml' test", None),
        (both, "mvn --file= test", None),
        (both, "mvn -f \"ci/build.xml\" test", None),
        (both, "mvn -f\"ci/build.xml\" test", None),
        (both, "mvn -f x/\"build.xml\" test", None),
        (both, "mvn --file=x/`name` test", None),
        (both, "mvn '-fci/build.xml' test", None),
        (both, "mvn \"-f\" ci/build.xml test", None),
        (both, "'mvn' -Da=\"b c\" -f ci/build.xml test", None),
        (both, "mvn -Da=\"b c\" '-fae' test", Some("g/a g/b")),
        // Only where somebody names it does it have to be read.
        (strange, "mvn test", Some("g/a")),
        (strange, "mvn -f x/pom-ci.xml test", None),
        (&[("pom.xml", Some(odd.as_str()))], "mvn test", None),
        (&[("pom.xml", None)], "mvn test", None),
        (
            &[("pom.xml", Some(&a)), (".mvn/extensions.xml", Some("x"))],
            "mvn test",
            None,
        ),
        (
            &[("pom.xml", Some(&a)), (".mvn/maven.config", Some("-T1C"))],
            "mvn test",
            Some("g/a"),
        ),
        (
            &[
                ("pom.xml", Some(&a)),
                ("b/.mvn/maven.config", Some("-f\ny.xml")),
            ],
            "mvn test",
            None,
        ),
        (
            &[("pom.xml", Some(&a)), ("x.xml", Some(&b))],
            "mvn",
            Some("g/a"),
        ),
    ] {
        assert_eq!(
            found(files, command).as_deref(),
            want,
            "{files:?} {command}"
        );
    }
}
