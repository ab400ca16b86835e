//! What of an environment no jail is shown: what an engine is not shown of a repository, and files
//! in which tools keep the way to a registry. Nobody put them into a commit, so no check needs them.

use crate::containment::masks;
use crate::values::paths::TreePath;

/// Configuration of package tools that may hold tokens, beside what is hidden of a repository.
const TOKEN_FILES: [&[u8]; 27] = [
    b"pip.conf",
    b"pip.ini",
    b".npmrc",
    b"npmrc",
    b".yarnrc.yml",
    b"credentials",
    b"credentials.db",
    b"credentials.conf",
    b"credentials.cfg",
    b"credentials.properties",
    b"credentials.txt",
    b"settings-security.xml",
    b".yarnrc",
    b"uv.toml",
    b".condarc",
    b"auth.toml",
    b"application_default_credentials.json",
    b".vault-token",
    b".s3cfg",
    b".boto",
    b".terraformrc",
    b"nuget.config",
    b".curlrc",
    b".wgetrc",
    b".gitconfig",
    b".hgrc",
    b".git-credentials",
];
/// Names that hold tokens only in a directory of that name: elsewhere a package has its own.
const TOKEN_FILES_IN: [(&[u8], &[u8]); 4] = [
    (b".git", b"config"),
    (b"gh", b"hosts.yml"),
    (b".m2", b"settings.xml"),
    (b".gradle", b"gradle.properties"),
];
/// Compiled code in a folder that is named for secrets is code.
const COMPILED: [&[u8]; 9] = [
    b".pyc", b".so", b".d", b".o", b".rlib", b".rmeta", b".map", b".node", b".class",
];

/// Is this file of an environment hidden? The path is the one in the environment.
pub fn is_hidden_in_environment(path: &TreePath) -> bool {
    let bytes = path.as_bytes();
    let mut names = bytes.rsplit(|byte| *byte == b'/');
    let name = names.next().unwrap_or(bytes);
    let dir = names.next().unwrap_or_default();
    let by_name = |file: &&[u8]| file.eq_ignore_ascii_case(name);
    let by_place = |(of, file): &(&[u8], &[u8])| of.eq_ignore_ascii_case(dir) && by_name(file);
    let token = TOKEN_FILES.iter().any(by_name) || TOKEN_FILES_IN.iter().any(by_place);
    let compiled = COMPILED.iter().any(|ending| name.ends_with(ending));
    token || masks::is_hidden_by_name(path, compiled)
}

/// Does an environment lie in a place that is hidden, or hold one?
pub fn overlaps_masked(path: &TreePath, masked: &[TreePath]) -> bool {
    let (path, within) = (path.as_bytes(), masks::at_or_below);
    let mut masked = masked.iter().map(TreePath::as_bytes);
    masked.any(|place| within(path, place) || within(place, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_orders_are_hidden_and_code_is_not() {
        for hidden in [
            "pip.conf",
            "lib/pip.conf",
            "x/.npmrc",
            ".NPMRC",
            "x/.pypirc",
            ".netrc",
            "credentials",
            "x/credentials.json",
            "credentials.toml",
            "x/.env",
            "x/.env.local",
            ".ssh/id_rsa",
            "x/.aws/config",
            "secrets/token",
            "pkg/.claude/settings.json",
            "x/id_rsa.bak",
            "src/pkg/.git/config",
            "src/pkg/.git/modules/x/.git/config",
            ".config/gh/hosts.yml",
            "x/.m2/settings.xml",
            "x/NuGet.Config",
            ".yarnrc",
        ] {
            assert!(is_hidden_in_environment(&TreePath::new(hidden)), "{hidden}");
        }
        for shown in [
            "lib/python3/site-packages/x/credentials.py",
            "lib/x/__pycache__/credentials.cpython-312.pyc",
            "lib/x/secrets/__pycache__/store.cpython-312.pyc",
            "lib/x/secrets/store.py",
            "lib/x/credentials/_fast.abi3.so",
            "debug/deps/libcredentials-0123.rlib",
            "debug/.fingerprint/credentials-0123/lib-credentials",
            "x/.env.example",
            "x/package.json",
            "x/cacert.pem",
            "bin/python",
            "x/android/gradle.properties",
            "x/config",
            "x/settings.xml",
            "x/auth.json",
            "x-1.0.dist-info/direct_url.json",
        ] {
            assert!(!is_hidden_in_environment(&TreePath::new(shown)), "{shown}");
        }
    }
}
