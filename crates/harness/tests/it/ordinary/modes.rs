//! Owners and modes: what copies and installs trees works; no file with a set-id bit is ever made.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::fixtures::people::people;

const SET_ID: u32 = 0o6000;

#[test]
fn directories_may_have_a_set_gid_bit() {
    for person in people() {
        for line in [
            "mkdir a && chmod g+s a && test -g a",
            "mkdir b && chmod 2775 b && cp -a b c && test -g c",
            "install -d -m 2775 d && test -g d",
            "mkdir e && python3 -c 'import os; os.fchmod(os.open(\"e\", 0), 0o2755)' && test -g e",
            "mkdir f && cd f && chmod g+s . && test -g .",
            "mkdir -p g/h && python3 -c 'import os; d = os.open(\"g\", 0); os.chmod(\"h\", 0o2755, dir_fd=d)' && test -g g/h",
            "mkdir i && ln -s i j && chmod g+s j && test -g i",
            "git init -q --shared r 2>/dev/null && test -g r/.git",
            "tar cf t.tar a && mkdir k && tar xpf t.tar -C k && test -g k/a",
            "chmod g-s a && test ! -g a",
        ] {
            let (code, text) = person.jailed(line);
            assert_eq!(code, Some(0), "{}: {line}: {text}", person.name);
        }
        let mode = fs::metadata(person.at("ws/d"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o2775, "{}", person.name);
    }
}

#[test]
fn no_file_has_one_in_any_spelling() {
    let python = |code: &str| format!("python3 -c 'import os; {code}'");
    for person in people() {
        for line in [
            "touch a; chmod g+s a".to_owned(),
            "touch b; chmod 2755 b".to_owned(),
            "touch c; chmod 6755 c".to_owned(),
            "install -m 2755 /bin/true d".to_owned(),
            "mkdir e; chmod u+s e".to_owned(),
            "mkdir f; chmod 6755 f".to_owned(),
            "touch g; ln -s g h; chmod g+s h".to_owned(),
            python("os.close(os.open(\"i\", os.O_CREAT | os.O_WRONLY, 0o2755))"),
            python("os.fchmod(os.open(\"j\", os.O_CREAT | os.O_WRONLY), 0o2755)"),
            python(
                "f = os.open(\"k\", os.O_CREAT | os.O_WRONLY); os.chmod(f\"/proc/self/fd/{f}\", 0o2755)",
            ),
            python(
                "f = os.open(\"l\", os.O_CREAT | os.O_WRONLY); os.chmod(f\"/dev/fd/{f}\", 0o2755)",
            ),
            python("os.mkfifo(\"m\"); os.chmod(\"m\", 0o2755)"),
            python("os.chmod(\"nothing\", 0o2755)"),
            python("os.chmod(\"/usr\", 0o2755)"),
            python("os.chmod(\"/proc/1/cwd\", 0o2755)"),
        ] {
            let (code, text) = person.jailed(&line);
            assert_ne!(code, Some(0), "{}: {line}: {text}", person.name);
        }
        for entry in fs::read_dir(person.at("ws")).unwrap().flatten() {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & SET_ID, 0, "{}: {entry:?}", person.name);
        }
    }
}

/// Under the name a directory was asked for by, a file comes and goes.
#[test]
fn a_file_that_takes_a_directorys_place_gets_none() {
    const RACE: &str = "
import os, threading
os.mkdir('dir'); open('file', 'w').close()
stop = False
def swap():
    n = 0
    while not stop:
        n += 1
        os.symlink(('dir', 'file')[n % 2], 'next'); os.rename('next', 'name')
os.symlink('dir', 'name')
thread = threading.Thread(target=swap); thread.start()
made = 0
for _ in range(3000):
    try:
        os.chmod('name', 0o2755); made += 1
    except OSError:
        pass
    assert not os.stat('file').st_mode & 0o2000, 'a file has the bit'
stop = True; thread.join()
assert made, 'never asked for the directory'
assert os.stat('dir').st_mode & 0o2000
";
    for person in people() {
        fs::write(person.at("ws/race.py"), RACE).unwrap();
        let (code, text) = person.jailed("python3 race.py");
        assert_eq!(code, Some(0), "{}: {text}", person.name);
        let mode = fs::metadata(person.at("ws/file"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & SET_ID, 0, "{}", person.name);
    }
}

#[test]
fn what_installs_for_root_works_for_root() {
    for person in people() {
        let copies = "mkdir -p t/u && touch t/u/v && cp -a t w && cp -a /usr/share/zoneinfo/UTC . ";
        let (code, text) = person.jailed(copies);
        assert_eq!(code, Some(0), "{}: {text}", person.name);
        for line in [
            "touch x && install -o root -g root -m 644 x y && test -f y",
            "touch x && chown root:root x",
            "touch x && chown root x && chgrp root x",
            "mkdir -p d && install -d -o root d/e && cp -a --preserve=ownership x d/e",
        ] {
            let (code, text) = person.jailed(line);
            // An ordinary user cannot do that anywhere.
            let fine = !person.as_user && cto_testkit::is_root();
            assert_eq!(code == Some(0), fine, "{}: {line}: {text}", person.name);
        }
        // Only root's name is taken for nothing: what would be another's stays an error.
        let (code, text) = person.jailed("touch z && chown 12345 z");
        assert_ne!(code, Some(0), "{}: {text}", person.name);
    }
}
