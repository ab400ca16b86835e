//! What a compiled Python module beside its source may have been made of. Nobody can list the
//! endings of sources; so it is said what surely is none, and anything else may be one.

use crate::values::paths::TreePath;

/// Places for words about code and for what tests it.
const ABOUT: [&[u8]; 5] = [b"docs", b"doc", b"tests", b"test", b"examples"];

/// May one of these modules have been made of the file? `is_package` says whether a directory is
/// one of Python's. Modules are compiled in groups: what one is made of, each may be.
pub fn may_be_made_of(
    path: &TreePath,
    modules: &[&TreePath],
    is_package: impl Fn(&[u8]) -> bool,
) -> bool {
    let (dir, name) = split(path);
    if is_about(dir, modules) || name.ends_with(b".md") || name.ends_with(b".rst") {
        return false;
    }
    if !name.ends_with(b".py") && !name.ends_with(b".pyi") {
        return true;
    }
    let stem = stem(name);
    // A module of the same name was made of it; and a shared half, of all it was compiled with.
    let same = |module: &&TreePath| {
        let of = split(module).1;
        self::stem(of) == stem || self::stem(of).ends_with(b"__mypyc")
    };
    let builds = matches!(stem, b"setup" | b"build" | b"configure")
        || stem.ends_with(b"_build")
        || stem.starts_with(b"build_");
    if builds || modules.iter().any(same) {
        return true;
    }
    // What is imported is Python as it stands; a script elsewhere may write sources.
    let beside = modules.iter().any(|module| split(module).0 == dir);
    let tests = stem == b"conftest" || stem.starts_with(b"test_") || stem.ends_with(b"_test");
    !(beside || tests || is_package(dir))
}

/// Does a directory lie in a place about code, in which no module is?
fn is_about(dir: &[u8], modules: &[&TreePath]) -> bool {
    let ends = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    ends.map(|(at, _)| at).chain([dir.len()]).any(|end| {
        let place = &dir[..end];
        let name = place.rsplit(|byte| *byte == b'/').next().unwrap_or(place);
        let within = |module: &&TreePath| {
            let rest = module.as_bytes().strip_prefix(place);
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        ABOUT.contains(&name) && !modules.iter().any(within)
    })
}

/// A path's directory and name.
fn split(path: &TreePath) -> (&[u8], &[u8]) {
    super::parent(path.as_bytes())
}

/// A name without its endings.
fn stem(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "cpython-311-x86_64-linux-gnu.so";

    fn made_of(path: &str, modules: &[&str]) -> bool {
        let modules: Vec<TreePath> = modules
            .iter()
            .map(|module| TreePath::new(format!("{module}.{TAG}")))
            .collect();
        let modules: Vec<&TreePath> = modules.iter().collect();
        let is_package = |dir: &[u8]| dir.starts_with(b"src/pkg") || dir == b"app";
        may_be_made_of(&TreePath::new(path), &modules, is_package)
    }

    #[test]
    fn honest_python_keeps_the_module() {
        for path in [
            "src/pkg/_native.py",
            "src/pkg/__init__.py",
            "src/pkg/sub/other.py",
            "src/pkg/_native.pyi",
            "app/main.py",
            "tests/test_it.py",
            "tests/data/x.json",
            "test_top.py",
            "conftest.py",
            "docs/conf.py",
            "docs/image.png",
            "README.md",
            "CHANGES.rst",
            "src/pkg/notes.md",
        ] {
            assert!(!made_of(path, &["src/pkg/_speed"]), "{path}");
        }
        assert!(!made_of("other.py", &["calc"]), "beside it");
    }

    #[test]
    fn whatever_may_be_a_source_does_not() {
        for path in [
            "src/pkg/_speed.c",
            "src/pkg/_speed.py",
            "src/pkg/_speed.pyx",
            "elsewhere/_speed.py",
            "src/pkg/op.inl",
            "src/op.inc",
            "native/kernel.cu",
            "lib/x.S",
            "x.proto",
            "grammar",
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "build.py",
            "src/pkg/_speed_build.py",
            "build_ext.py",
            "CMakeLists.txt",
            "cmake/x.cmake",
            "meson.build",
            "meson.options",
            "Makefile",
            "Cargo.lock",
            "tools/generate.py",
            "scripts/write_c.py",
            "generate.py",
        ] {
            assert!(made_of(path, &["src/pkg/_speed"]), "{path}");
        }
        assert!(made_of(
            "src/pkg/plain.py",
            &["abc__mypyc", "src/pkg/_speed"]
        ));
        assert!(made_of("tests/fast.c", &["tests/fast"]), "a module there");
        assert!(made_of("tests/fast.py", &["tests/fast"]));
    }
}
