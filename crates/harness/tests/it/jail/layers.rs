//! Layer by layer: what each of them stops when it stands alone, and that nothing gets past all of
//! them. The table in `docs/threat-model.md` is written by this test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cto_core::containment::Layer;
use cto_harness::doubles::attacks::{ATTACKS, Attack};
use cto_testkit::{is_root, skip};

use crate::fixtures::people::{Person, people};
use crate::fixtures::targets::Targets;
use crate::house;

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";

fn list(layers: &[Layer]) -> String {
    match layers {
        [] => "none".to_owned(),
        some => some
            .iter()
            .map(|layer| layer.as_str())
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// Did the attack get through, as root, with only these layers up?
fn gets_through(root: &Person, targets: &Targets, attack: &Attack, layers: &[Layer]) -> bool {
    let names = list(layers);
    let program = root.at("cto").display().to_string();
    let argument = targets.argument(attack.name);
    let output = root.cto(&[
        "exec",
        "--ro",
        &program,
        "--layers",
        &names,
        "--",
        &program,
        "__attack",
        attack.name,
        &argument,
    ]);
    match output.status.code() {
        Some(0) => targets.seen_by_host(attack.name),
        Some(1) => {
            targets.seen_by_host(attack.name);
            false
        }
        code => panic!("{} with {names}: {code:?}: {output:?}", attack.name),
    }
}

/// Set-uid programs only matter to someone who is not root: tried as an ordinary user.
fn becomes_root(user: &Person, layers: &[Layer]) -> bool {
    let names = list(layers);
    let program = user.at("set-uid-cto");
    if !program.exists() {
        fs::copy(user.at("cto"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    }
    let program = program.display().to_string();
    let output = user.cto(&[
        "exec", "--ro", &program, "--layers", &names, "--", &program, "__attack", "set-uid",
    ]);
    match output.status.code() {
        // Without root some layers cannot stand alone; what was not put up stops nothing.
        Some(0 | 125) => true,
        Some(1) => false,
        code => panic!("set-uid with {names}: {code:?}: {output:?}"),
    }
}

#[test]
fn each_layer_alone_stops_something_and_all_together_stop_everything() {
    if !is_root() {
        assert!(
            std::env::var_os("REQUIRE_JAIL").is_none() || people().len() == 1,
            "an ordinary user still has a jail"
        );
        return skip("only root can take single layers away");
    }
    let people = people();
    let [root, user] = people.as_slice() else {
        return skip("root and an ordinary user must both be able to build a jail");
    };
    // Not below /tmp: Landlock lets a jail write its own, and without a private root that is the
    // host's.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let targets = Targets::new(dir.path());
    let through = |attack: &Attack, layers: &[Layer]| match attack.name {
        "set-uid" => becomes_root(user, layers),
        _ => gets_through(root, &targets, attack, layers),
    };
    let mut table = String::from(
        "| attack | with no layer | stopped by each of these alone | with all layers |\n|---|---|---|---|\n",
    );
    let mut useful: Vec<Layer> = Vec::new();
    for attack in ATTACKS {
        // Something must stand, or there is nothing to enter: an empty list is the bare process.
        assert!(
            through(attack, &[]),
            "{} proves nothing: it fails without any layer",
            attack.name
        );
        let stops = |layer: &Layer| {
            let ground = ground(*layer);
            let mut with = ground.clone();
            with.push(*layer);
            !through(attack, &with) && (ground.is_empty() || through(attack, &ground))
        };
        let stopped: Vec<Layer> = Layer::ALL.iter().copied().filter(stops).collect();
        assert!(
            !through(attack, Layer::ALL),
            "{} gets past the whole jail",
            attack.name
        );
        let names = stopped
            .iter()
            .map(|layer| format!("`{}`", layer.as_str()))
            .collect::<Vec<_>>()
            .join(", ");
        table.push_str(&format!(
            "| {} | gets through | {names} | stopped |\n",
            attack.what
        ));
        useful.extend(stopped);
    }
    for layer in Layer::ALL {
        assert!(
            useful.contains(layer),
            "{} stops nothing of its own",
            layer.as_str()
        );
    }
    compare(&table);
}

/// A private root needs namespaces to stand in, and gets no credit for what they stop; every other
/// layer stands on nothing.
fn ground(layer: Layer) -> Vec<Layer> {
    match layer {
        Layer::PrivateRoot => vec![Layer::MountNamespace, Layer::PidNamespace],
        _ => Vec::new(),
    }
}

fn compare(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/threat-model.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (old, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("CTO_REGENERATE").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    assert_eq!(
        old, table,
        "docs/threat-model.md is stale: `just docs` writes it anew"
    );
}

#[test]
fn a_jail_with_layers_left_out_says_that_it_contains_nothing() {
    let house = house();
    for layers in ["none", "seccomp"] {
        let answer = house.cto(&["exec", "--layers", layers, "--", "true"]);
        let said = format!("note: --layers {layers}: this command is not contained");
        let lines: Vec<&str> = answer.stderr.lines().collect();
        assert!(
            matches!(lines.as_slice(), [only] if only.starts_with(&said)),
            "{answer:?}"
        );
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let plain = house.cto(&["exec", "--", "true"]);
    assert!(!plain.stderr.contains("not contained"), "{plain:?}");
}
