//! `cto keys`: made on first use, out of every engine's reach, rotated, revoked, exchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use cto_testkit::{
    Bundle, Case, Forged, House, ORACLE, TestKey, copy_dir, script, shell, skip, write,
};
use serde_json::Value;

use crate::house;
use crate::passed;

fn keys(house: &House) -> Vec<Value> {
    house.cto(&["keys", "--json"]).json()["keys"]
        .as_array()
        .unwrap()
        .clone()
}

fn verify(house: &House, bundle: &Bundle) -> (Option<i32>, String) {
    let answer = house.cto(&["verify", bundle.dir.to_str().unwrap()]);
    (answer.code, answer.stdout)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_first_run_makes_a_key_and_looking_makes_none() {
    let house = house();
    assert!(house.cto(&["keys"]).stdout.contains("No keys yet"));
    assert!(
        !house.state().join("keys").exists(),
        "looking made something"
    );
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(&case, ORACLE, &[]);
    let known = keys(&house);
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!(
        (
            &known[0]["signs"],
            &known[0]["source"],
            &known[0]["state"]["state"]
        ),
        (&true.into(), &"own".into(), &"trusted".into())
    );
    let store = house.state().join("keys");
    assert_eq!(
        (mode(&store), mode(&store.join("machine.pem"))),
        (0o700, 0o600)
    );
    let text = fs::read_to_string(store.join("machine.pem")).unwrap();
    let secret = text.lines().nth(1).unwrap();
    assert!(
        bundle.anywhere(&secret[secret.len() - 40..]).is_empty(),
        "the key is in its own bundle"
    );
    assert_eq!(
        bundle.json("attestation.json")["signatures"][0]["keyid"],
        known[0]["key_id"]
    );
}

#[test]
fn many_first_runs_at_once_make_one_key() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let mut started: Vec<_> = (0..8).map(|_| house.start(&["run", &case])).collect();
    for child in &mut started {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(keys(&house).len(), 1);
    let answer = house.cto(&["verify", "--all"]);
    assert!(
        answer.code == Some(0) && answer.stdout.contains("8 good, 0 bad, 0 unknown"),
        "{answer:?}"
    );
}

#[test]
fn an_engine_reaches_no_key() {
    let (house, _) = passed();
    let case = house.case(&Case::new("curious"));
    let store = house.state().join("keys");
    let look = format!(
        "cat {0}/machine.pem; ls {0}; ls {1}; find / -name machine.pem 2>/dev/null",
        store.display(),
        house.state().display()
    );
    let (_, bundle) = house.run(
        &case,
        &script(&[write("answer.txt", "right\n"), shell(&look)]),
        &[],
    );
    let said = bundle.text("backend/stdout.log") + &bundle.text("backend/stderr.log");
    assert!(said.contains("No such file"), "{said}");
    let secret = fs::read_to_string(store.join("machine.pem")).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    assert!(bundle.anywhere(&secret[secret.len() - 40..]).is_empty());
    assert!(
        !said.contains("signer.json")
            && !said.contains("known")
            && !said.contains("/machine.pem\n"),
        "{said}"
    );
}

#[test]
fn a_key_others_can_read_signs_nothing() {
    let (house, _) = passed();
    let file = house.state().join("keys/machine.pem");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let before = house.run_dirs().len();
    let case = house.case(&Case::new("quick"));
    let answer = house.cto(&["run", &case]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    assert!(
        answer.stderr.contains("key_exposed") && answer.stderr.contains("nothing ran"),
        "{answer:?}"
    );
    assert_eq!(house.run_dirs().len(), before);
    fs::write(&file, "garbage").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(house.cto(&["run", &case]).code, Some(70));
}

#[test]
fn rotation_keeps_the_past_and_revocation_does_not() {
    let (house, first) = passed();
    let old = keys(&house)[0]["key_id"].as_str().unwrap().to_owned();
    assert_eq!(house.cto(&["keys", "rotate"]).code, Some(0));
    let case = house.case(&Case::new("quick"));
    let (_, second) = house.run(&case, ORACLE, &[]);
    let known = keys(&house);
    assert_eq!(known.len(), 2);
    assert!(
        known[0]["signs"] == true && known[0]["key_id"] != old.as_str(),
        "{known:?}"
    );
    assert_eq!(
        verify(&house, &first).0,
        Some(0),
        "what a rotated key signed before still counts"
    );
    assert_eq!(verify(&house, &second).0, Some(0));

    let answer = house.cto(&[
        "keys",
        "revoke",
        &old[..16],
        "--reason",
        "the disk was stolen",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let (code, said) = verify(&house, &first);
    assert!(
        code == Some(1) && said.contains("revoked") && said.contains("the disk was stolen"),
        "{said}"
    );
    assert_eq!(verify(&house, &second).0, Some(0));
    // Naming a revoked key does not bring it back.
    let file = house.root().join("old.pem");
    let record = fs::read_to_string(house.state().join(format!("keys/known/{old}.json"))).unwrap();
    fs::write(
        &file,
        serde_json::from_str::<Value>(&record).unwrap()["public_key"]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    let named = house.cto(&[
        "verify",
        first.dir.to_str().unwrap(),
        "--key",
        file.to_str().unwrap(),
    ]);
    assert_eq!(named.code, Some(1), "{named:?}");
    assert_eq!(
        house.cto(&["keys", "trust", file.to_str().unwrap()]).code,
        Some(2)
    );
    // The one that signs, revoked: the next run makes another.
    let current = keys(&house)[0]["key_id"].as_str().unwrap().to_owned();
    house.cto(&["keys", "revoke", &current, "--reason", "just in case"]);
    let (_, third) = house.run(&case, ORACLE, &[]);
    assert_eq!(
        (verify(&house, &second).0, verify(&house, &third).0),
        (Some(1), Some(0))
    );
}

#[test]
fn keys_of_others_are_trusted_by_hand() {
    let (house, bundle) = passed();
    let public = house.cto(&["keys", "show", "--public"]).stdout;
    let other = self::house();
    let copy = other.root().join("elsewhere").join(bundle.run_id());
    copy_dir(&bundle.dir, &copy);
    let copy = Bundle::at(copy);
    assert_eq!(verify(&other, &copy).0, Some(3));
    let file = other.root().join("theirs.pem");
    fs::write(&file, &public).unwrap();
    assert_eq!(
        other
            .cto(&[
                "keys",
                "trust",
                file.to_str().unwrap(),
                "--label",
                "build machine"
            ])
            .code,
        Some(0)
    );
    let (code, said) = verify(&other, &copy);
    assert!(
        code == Some(0) && said.contains("by build machine (key "),
        "{said}"
    );
    // Naming another key means: only that one.
    let stranger = other.root().join("stranger.pem");
    fs::write(&stranger, TestKey::new(3).public_pem()).unwrap();
    let only = other.cto(&[
        "verify",
        copy.dir.to_str().unwrap(),
        "--key",
        stranger.to_str().unwrap(),
    ]);
    assert_eq!(only.code, Some(3), "{only:?}");
    for (what, text) in [
        ("garbage", "hello".to_owned()),
        ("a private key", TestKey::new(3).private_pem()),
        ("nothing", String::new()),
    ] {
        fs::write(&file, text).unwrap();
        let answer = other.cto(&["keys", "trust", file.to_str().unwrap()]);
        assert_eq!(answer.code, Some(2), "{what}: {answer:?}");
    }
    assert_eq!(
        other.cto(&["keys", "revoke", "ffff", "--reason", "x"]).code,
        Some(2)
    );
}

#[test]
fn an_ssh_key_signs() {
    let house = house();
    let file = house.root().join("id_ed25519");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "someone", "-f"])
        .arg(&file)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        // The parser has its own tests.
        return skip("ssh-keygen cannot be run");
    }
    let chosen = house.cto(&["keys", "use", "--ssh", file.to_str().unwrap()]);
    assert_eq!(chosen.code, Some(0), "{chosen:?}");
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(&case, ORACLE, &[]);
    let (code, said) = verify(&house, &bundle);
    assert!(
        code == Some(0) && said.contains("SSH key id_ed25519"),
        "{said}"
    );
    assert!(
        !house.state().join("keys/machine.pem").exists(),
        "a key nobody asked for"
    );
    assert!(
        bundle.anywhere(house.root().to_str().unwrap()).is_empty(),
        "the bundle tells where the key lies"
    );
    let public = file.with_extension("pub");
    let stranger = self::house();
    let answer = stranger.cto(&[
        "verify",
        bundle.dir.to_str().unwrap(),
        "--key",
        public.to_str().unwrap(),
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    fs::remove_file(&file).unwrap();
    let gone = house.cto(&["run", &case]);
    assert!(
        gone.code == Some(70) && gone.stderr.contains("nothing ran"),
        "{gone:?}"
    );
    assert_eq!(house.cto(&["keys", "use", "--machine"]).code, Some(0));
    assert_eq!(house.cto(&["run", &case]).code, Some(0));
}

/// A signing program: openssl with a key file of its own.
fn signing_program(house: &House) -> Option<(String, String)> {
    let (key, public) = (
        house.root().join("token.pem"),
        house.root().join("token.pub"),
    );
    fs::write(&key, TestKey::new(5).private_pem()).unwrap();
    fs::write(&public, TestKey::new(5).public_pem()).unwrap();
    let program = house.root().join("sign");
    let text = format!(
        "#!/bin/sh\nset -e\nfile=$(mktemp)\ntrap 'rm -f \"$file\"' EXIT\ncat >\"$file\"\nopenssl pkeyutl -sign -rawin -inkey {} -in \"$file\" | base64\n",
        key.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let works = Command::new(&program)
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok_and(|out| out.status.success());
    works.then(|| (program.display().to_string(), public.display().to_string()))
}

#[test]
fn a_program_signs() {
    let house = house();
    let Some((program, public)) = signing_program(&house) else {
        return skip("openssl cannot sign with Ed25519 here");
    };
    let wrong = house.cto(&[
        "keys",
        "use",
        "--public",
        &public,
        "--",
        "/bin/echo",
        "AAAA",
    ]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("not one of key"),
        "{wrong:?}"
    );
    assert_eq!(
        house.cto(&["keys", "use", "--public", &public]).code,
        Some(2),
        "a key without a program"
    );
    let chosen = house.cto(&["keys", "use", "--public", &public, "--", &program]);
    assert_eq!(chosen.code, Some(0), "{chosen:?}");
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(&case, ORACLE, &[]);
    let (code, said) = verify(&house, &bundle);
    assert!(code == Some(0) && said.contains("command sign"), "{said}");
    // A program that fails at the seal: no verdict, and recovery signs later.
    let good = fs::read_to_string(&program).unwrap();
    fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    let answer = house.cto(&["run", &case]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    let unsealed: Vec<_> = house
        .run_dirs()
        .into_iter()
        .filter(|dir| !dir.join("report.json").exists())
        .collect();
    assert_eq!(
        unsealed.len(),
        1,
        "signing is tried before the commit point"
    );
    assert_eq!(
        house.cto(&["recover"]).code,
        Some(70),
        "recovery cannot sign either, and says so"
    );
    fs::write(&program, good).unwrap();
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    let closed = Bundle::at(&unsealed[0]);
    assert_eq!(
        (closed.status().as_str(), verify(&house, &closed).0),
        ("blocked", Some(0))
    );
}

/// Killed between the sums and the signature, or anywhere in the signing: never a result, always
/// recovered.
#[test]
fn a_crash_around_the_signature_is_recovered() {
    type Cut = fn(&Path);
    let cuts: [(&str, Cut); 5] = [
        ("after the sums", |dir| {
            fs::remove_dir_all(dir.join("attestations"))
                .and_then(|()| fs::remove_file(dir.join("attestation.json")))
                .unwrap()
        }),
        ("after one companion", |dir| {
            fs::remove_file(dir.join("attestations/test-result.json"))
                .and_then(|()| fs::remove_file(dir.join("attestation.json")))
                .unwrap()
        }),
        ("before the signature", |dir| {
            fs::remove_file(dir.join("attestation.json")).unwrap()
        }),
        ("in the middle of the signature", |dir| {
            fs::write(dir.join("attestation.json"), "{\"payload\":\"eyJ").unwrap()
        }),
        ("before the commit point", |_| {}),
    ];
    for (what, cut) in cuts {
        let (house, bundle) = passed();
        fs::rename(
            bundle.dir.join("report.json"),
            bundle.dir.join(".report.json.tmp"),
        )
        .unwrap();
        fs::write(
            bundle.dir.join("run.lock"),
            "{\"boot_id\":\"\",\"pid\":1}\n",
        )
        .unwrap();
        cut(&bundle.dir);
        let name = bundle.run_id();
        assert_eq!(house.cto(&["verify", &name]).code, Some(3), "{what}");
        assert_eq!(house.cto(&["recover"]).code, Some(0), "{what}");
        assert!(
            bundle.status() != "pass" && bundle.has_code("interrupted"),
            "{what}: {:?}",
            bundle.codes()
        );
        assert_eq!(house.cto(&["verify", &name]).code, Some(0), "{what}");
    }
}

#[test]
fn a_broken_store_is_no_silent_distrust() {
    let (house, bundle) = passed();
    fs::write(house.state().join("keys/known/x.json"), "{").unwrap();
    let answer = house.cto(&["verify", &bundle.run_id()]);
    assert!(
        answer.code == Some(70) && answer.stderr.contains("keys_unusable"),
        "{answer:?}"
    );
}

#[test]
fn a_forger_without_the_key_gets_nothing() {
    let (house, bundle) = passed();
    let forged = Forged::copy_of(&bundle);
    forged.reseal();
    let (code, said) = verify(&house, &forged.bundle());
    assert!(
        code == Some(3) && said.contains("not trusted here") && !said.contains("verdict"),
        "{said}"
    );
}

/// Whoever could write the state home could name a program that signs, and that is run as the operator.
#[test]
fn a_state_home_that_others_may_write_is_not_believed() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, bundle) = house.run(&case, ORACLE, &[]);
    let public = keys(&house)[0]["public_key"].as_str().unwrap().to_owned();
    let (state, mark) = (house.state(), house.root().join("elsewhere/mark"));
    let line = format!("echo ran > {}; exit 1", mark.display());
    let signer = serde_json::json!({
        "kind": "command", "argv": ["/bin/sh", "-c", line], "public_key": public,
    });
    fs::write(state.join("keys/signer.json"), signer.to_string()).unwrap();
    house.hand_over(&state);
    let open = |place: &Path, mode| {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    };
    let runs = house.run_dirs().len();
    for (place, code) in [
        (&state, "state_not_private"),
        (&house.runs_dir(), "state_not_private"),
        (&state.join("keys"), "keys_not_private"),
    ] {
        open(place, 0o777);
        let answer = house.cto(&["run", &case, "--json"]);
        assert!(!mark.exists(), "a stranger's program signed: {answer:?}");
        assert_eq!(answer.code, Some(3), "{code}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{answer:?}");
        let (verified, said) = verify(&house, &bundle);
        let keys = place != &house.runs_dir();
        assert_eq!(verified != Some(0), keys, "whose keys vouch: {said}");
        open(place, 0o700);
    }
    assert_eq!(house.run_dirs().len(), runs, "nothing ran");
    // The same from a repository that brings a state home along: everything in it is the operator's own file.
    fs::create_dir(house.root().join(".git")).unwrap();
    let answer = house.cto(&["run", &case, "--json"]);
    assert!(!mark.exists(), "a repository's program signed: {answer:?}");
    assert_eq!(answer.code, Some(3), "{answer:?}");
    fs::remove_file(state.join("keys/signer.json")).unwrap();
    assert_eq!(
        house.cto(&["run", &case]).code,
        Some(0),
        "its own key signs"
    );
}
