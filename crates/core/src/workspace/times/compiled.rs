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
    let tests = stem == b"conftest" || stem.starts_with(b"test_") || stem.ends_with(b"_test");
    if !tests && (writes_sources(stem) || is_for_writing(dir, modules)) {
        return true;
    }
    // What is imported is Python as it stands; a script elsewhere may write sources.
    let beside = modules.iter().any(|module| split(module).0 == dir);
    !(beside || tests || is_package(dir))
}

/// Whole words: more begins like these, and is about something else.
const MAKING: [&[u8]; 7] = [
    b"gen",
    b"generate",
    b"generator",
    b"generators",
    b"codegen",
    b"autogen",
    b"cythonize",
];

/// Is a file or directory of this name likely to write sources, wherever it lies?
fn writes_sources(name: &[u8]) -> bool {
    let mut words = name.split(|byte| matches!(byte, b'_' | b'-'));
    words.any(|word| MAKING.contains(&word))
}

/// Does a directory lie in one for what writes sources? A package that is called so has modules in
/// it, and then its name says nothing about its files.
fn is_for_writing(dir: &[u8], modules: &[&TreePath]) -> bool {
    lies_in(dir, modules, writes_sources)
}

/// Does a directory lie in a place about code, in which no module is?
fn is_about(dir: &[u8], modules: &[&TreePath]) -> bool {
    lies_in(dir, modules, |name| ABOUT.contains(&name))
}

/// Is a directory, or one around it, called so, and has no module in it or below?
fn lies_in(dir: &[u8], modules: &[&TreePath], is_called: impl Fn(&[u8]) -> bool) -> bool {
    let ends = dir.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    ends.map(|(at, _)| at).chain([dir.len()]).any(|end| {
        let place = &dir[..end];
        let name = place.rsplit(|byte| *byte == b'/').next().unwrap_or(place);
        let within = |module: &&TreePath| {
            let rest = module.as_bytes().strip_prefix(place);
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        is_called(name) && !modules.iter().any(within)
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
            "src/pkg/generic.py",
            "src/pkg/_general.py",
            "src/pkg/genome/oxygen.py",
            "tests/test_generate.py",
            "test_gen.py",
        ] {
            assert!(!made_of(path, &["src/pkg/_speed"]), "{path}");
        }
        assert!(!made_of("other.py", &["calc"]), "beside it");
    }

    /// A package's name is no word about its files, and the half of a word is none at all.
    #[test]
    fn words_about_making_are_whole_ones() {
        let made = |path: &str, module: &str| {
            let module = TreePath::new(format!("{module}.{TAG}"));
            may_be_made_of(&TreePath::new(path), &[&module], |_| true)
        };
        for (path, module) in [
            ("gensim/models.py", "gensim/_x"),
            ("gensim/models/word2vec.py", "gensim/models/_inner"),
            ("statsmodels/genmod/x.py", "statsmodels/tsa/_kalman"),
            ("statsmodels/generalized_linear_model.py", "statsmodels/_x"),
            ("genai/gentle.py", "genai/_x"),
            ("gen/models.py", "gen/_x"),
            ("gen/models.py", "gen/deep/_x"),
            ("src/codegen/sub/models.py", "src/codegen/_x"),
        ] {
            assert!(!made(path, module), "{path} {module}");
        }
        for (path, module) in [
            ("scipy/special/_generate_pyx.py", "scipy/special/_ufuncs"),
            ("scipy/gen_cython.py", "scipy/_x"),
            ("codegen/x.py", "scipy/_x"),
            ("scipy/codegen/x.py", "scipy/_x"),
            ("gen/generator.py", "gen/_x"),
            ("gen/codegen/x.py", "gen/_x"),
            ("scipy/cythonize.py", "scipy/_x"),
        ] {
            assert!(made(path, module), "{path} {module}");
        }
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
            "src/pkg/_generate_pyx.py",
            "src/pkg/gen_tables.py",
            "src/pkg/tables_gen.py",
            "src/pkg/codegen.py",
            "src/pkg/code_generators/ufunc.py",
            "src/pkg/_gen/ufunc.py",
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
