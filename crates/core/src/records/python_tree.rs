//! What a Python environment's own files say of places beside it: whatever it imports from there is in no
//! tree that an admission pins. Texts in, answers out; read as Python reads them.

/// Does a `pyvenv.cfg` add the packages of the Python it was made from? Of two lines Python believes the
/// last; here one that says so is enough.
pub fn takes_system_packages(config: &str) -> bool {
    const KEY: &str = "include-system-site-packages";
    let says_so = |(key, value): (&str, &str)| {
        let (key, value) = (without_mark(key).trim(), value.trim());
        key.eq_ignore_ascii_case(KEY) && value.eq_ignore_ascii_case("true")
    };
    // Each of these ends a line for Python.
    let mut lines = config.split(['\n', '\r']);
    lines.any(|line| line.split_once('=').is_some_and(says_so))
}

/// A line without the mark that may stand before the first: Python takes it away.
fn without_mark(line: &str) -> &str {
    line.trim_start_matches(|c: char| !c.is_ascii_graphic())
}

/// The directories that a `.pth` file adds, as it writes them. Its lines of code are as pinned as any.
pub fn added_directories(pth: &str) -> Vec<&str> {
    let is_code = |line: &str| line.starts_with("import ") || line.starts_with("import\t");
    pth.split(['\n', '\r'])
        .map(without_mark)
        .filter(|line| !line.starts_with('#') && !is_code(line))
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
        .collect()
}

/// Is this what an installer leaves of a project that is imported from where it is worked on?
pub fn is_editable(name: &str) -> bool {
    name.starts_with("__editable__") || name.ends_with(".egg-link")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        let mark = String::from_utf8(vec![0xEF, 0xBB, 0xBF]).unwrap();
        mark + text
    }

    #[test]
    fn system_packages_are_seen_however_they_are_written() {
        for yes in [
            "include-system-site-packages = true",
            "home = /usr/bin\nInclude-System-Site-Packages=TRUE\n",
            "include-system-site-packages\t=\t True \r\nhome = /usr/bin\r\n",
            "home = /usr/bin\rinclude-system-site-packages = true",
            &marked("include-system-site-packages = true\ninclude-system-site-packages = false"),
        ] {
            assert!(takes_system_packages(yes), "{yes:?}");
        }
        for no in [
            "",
            "home = /usr/bin\ninclude-system-site-packages = false\n",
            "include-system-site-packages",
            "prompt = include-system-site-packages = true",
        ] {
            assert!(!takes_system_packages(no), "{no:?}");
        }
    }

    #[test]
    fn directories_of_a_pth_file_are_told_from_its_code() {
        let text = "# a word\n\nimport site\nimport\tos\n/home/me/src  \n../other\r\nimported\n";
        assert_eq!(
            added_directories(text),
            ["/home/me/src", "../other", "imported"]
        );
        assert!(added_directories("").is_empty());
        assert_eq!(
            added_directories(&marked("/home/me/src\n")),
            ["/home/me/src"]
        );
    }

    #[test]
    fn what_is_imported_from_elsewhere_is_known_by_its_name() {
        for yes in ["__editable___lab_0_1_finder.py", "lab.egg-link"] {
            assert!(is_editable(yes), "{yes}");
        }
        assert!(!is_editable("lab.py") && !is_editable("my__editable__.py"));
    }
}
