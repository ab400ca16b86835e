//! The table, word by word.

use super::table::TOOLS;
use super::*;
use Deed::{Close, CredentialChange, Deploy, IssueClose};
use proptest::prelude::*;

/// A command line, its program looked up by name.
fn of(line: &str) -> Option<Deed> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    of_command(words[0], &words, &[])
}

#[test]
fn attempts_by_version_control_and_forges() {
    for (line, deed) in [
        ("git push", Push),
        ("/usr/bin/git push origin main", Push),
        ("/usr/lib/git-core/git-push x", Push),
        (
            "git -C /elsewhere -c alias.x=y --git-dir=/x push --dry-run",
            Push,
        ),
        ("git --git-dir /x --no-pager push", Push),
        ("git send-pack host:x", Push),
        ("git-receive-pack /workspace/other.git", Push),
        ("git lfs push origin", Push),
        ("git subtree push --prefix a b c", Push),
        ("git svn dcommit", Push),
        ("git push origin --help", Push),
        ("git push -o --help origin", Push),
        ("hg push", Push),
        ("svn ci -m x", Push),
        ("jj git push", Push),
        ("gh pr create --fill", PrOpen),
        ("gh pr -R a/b create", PrOpen),
        ("gh pr create --title --help", PrOpen),
        ("gh pr merge 1", Merge),
        ("gh pr close 1", Close),
        ("gh issue close 1", IssueClose),
        ("gh release create v1", PublicPublication),
        ("gh repo create x --public", PublicPublication),
        ("gh auth login --with-token", CredentialChange),
        ("gh workflow run deploy.yml", Deploy),
        ("gh api -X POST repos/a/b/issues", PublicPublication),
        ("gh api repos/a/b/issues -f title=x", PublicPublication),
        ("gh api --method=PUT repos/a/b/pulls/1/merge", Merge),
        ("gh api -XPOST repos/a/b/pulls", PrOpen),
        ("gh api graphql -f query=mutation{x}", PublicPublication),
        ("glab mr create", PrOpen),
        ("glab mr merge 3", Merge),
        ("glab issue close 3", IssueClose),
    ] {
        assert_eq!(of(line), Some(deed), "{line}");
    }
}

#[test]
fn attempts_by_packages_images_and_hosts() {
    use Deed::{Fetch, RemoteShell};
    for (line, deed) in [
        ("npm publish", PublicPublication),
        (
            "npm --registry x publish --access public",
            PublicPublication,
        ),
        ("yarn npm publish", PublicPublication),
        ("pnpm --filter a publish", PublicPublication),
        ("bun publish", PublicPublication),
        ("npm login", CredentialChange),
        (
            "node /usr/lib/node_modules/npm/bin/npm-cli.js publish",
            PublicPublication,
        ),
        (
            "node --no-warnings -r x /a/.yarn/releases/yarn-4.1.0.cjs npm publish",
            PublicPublication,
        ),
        (
            "/usr/bin/python3.12 -u -m twine upload dist/x",
            PublicPublication,
        ),
        ("python3 /usr/bin/twine upload x", PublicPublication),
        ("sudo -u bob A=b git push", Push),
        (
            "/lib64/ld-linux-x86-64.so.2 --library-path /x /usr/bin/git push",
            Push,
        ),
        ("cargo publish", PublicPublication),
        ("cargo +nightly publish", PublicPublication),
        ("cargo yank x", PublicPublication),
        ("cargo owner --add x", CredentialChange),
        ("uv publish", PublicPublication),
        ("poetry publish --build", PublicPublication),
        ("gem push x.gem", PublicPublication),
        ("docker --context x push img", PublicPublication),
        ("docker buildx build --push .", PublicPublication),
        ("podman login x", CredentialChange),
        ("helm upgrade a b", Deploy),
        ("kubectl -n prod apply -f x", Deploy),
        ("kubectl rollout restart x", Deploy),
        ("terraform -chdir=x apply -auto-approve", Deploy),
        ("tofu destroy", Deploy),
        ("vercel", Deploy),
        ("vercel --prod", Deploy),
        ("netlify deploy", Deploy),
        ("wrangler pages deploy x", Deploy),
        ("mvn clean deploy", PublicPublication),
        ("./gradlew :lib:publish", PublicPublication),
        ("aws s3 sync . x", Deploy),
        ("gcloud run deploy x", Deploy),
        ("ssh host uptime", RemoteShell),
        ("ssh -p 22 git@host git-receive-pack 'x'", Push),
        ("ssh git@host git-upload-pack 'x'", Fetch),
        ("scp a host:b", RemoteShell),
        ("rsync -a ./ host::m", RemoteShell),
        ("git remote-https origin x", Fetch),
    ] {
        assert_eq!(of(line), Some(deed), "{line}");
    }
}

#[test]
fn ordinary_work() {
    for line in [
        "gh --version",
        "gh",
        "gh pr",
        "gh pr list",
        "gh help pr create",
        "gh pr create --help",
        "gh api repos/a/b",
        "gh api -X GET search -f q=x",
        "gh api graphql -f query=query{x}",
        "gh auth status",
        "git",
        "git --version",
        "git help push",
        "git --help push",
        "git push --help",
        "git push -h",
        "git commit -m push",
        "git stash push",
        "git merge feature",
        "git -c push.default=simple status",
        "git remote add origin x",
        "git log --grep push",
        "git upload-pack x",
        "npm run publish",
        "npm test",
        "npm publish --dry-run",
        "npm owner ls",
        "cargo publish --dry-run",
        "cargo build",
        "cargo owner --list",
        "python3 -c print('twine upload')",
        "python3 -m unittest",
        "python3 push",
        "node -e publish",
        "node server.js deploy",
        "docker build .",
        "docker ps",
        "kubectl get pods",
        "kubectl apply --dry-run=client -f x",
        "terraform plan",
        "vercel --version",
        "vercel --help",
        "mvn test",
        "gradle publishToMavenLocal",
        "ssh -V",
        "ssh",
        "scp a b",
        "rsync -a a/ b/",
        "ssh-keygen -t ed25519",
        "sh -c git push",
        "echo git push",
        "push",
    ] {
        assert_eq!(of(line), None, "{line}");
    }
}

#[test]
fn either_name_tells() {
    assert_eq!(of_command(b"/tmp/x", &[b"git", b"push"], &[]), Some(Push));
    assert_eq!(
        of_command(b"/usr/bin/git", &[b"x", b"push"], &[]),
        Some(Push)
    );
    assert_eq!(
        of_command(b"", &[b"git", b"push"], &[]),
        Some(Push),
        "by descriptor"
    );
    assert_eq!(of_command(b"/usr/bin/git", &[], &[]), None);
    assert_eq!(
        of_command(b"/tmp/x", &[b"x", b"push"], &[]),
        None,
        "neither: only its helper tells"
    );
}

#[test]
fn a_helper_serves_whoever_started_it() {
    let helper: [&[u8]; 3] = [b"git", b"remote-https", b"origin"];
    assert_eq!(
        of_command(b"/usr/bin/git", &helper, &[b"./x", b"push", b"origin"]),
        Some(Push)
    );
    assert_eq!(
        of_command(b"/usr/bin/git", &helper, &[b"git", b"-c", b"a=b", b"push"]),
        Some(Push)
    );
    assert_eq!(
        of_command(
            b"/usr/bin/git",
            &helper,
            &[b"git", b"fetch", b"origin", b"push"]
        ),
        Some(Deed::Fetch)
    );
    assert_eq!(
        of_command(
            b"/usr/lib/git-core/git-remote-https",
            &[b"x"],
            &[b"/p/git-send-pack"]
        ),
        Some(Push)
    );
}

#[test]
fn every_name_of_the_table_is_worth_reading() {
    for tool in TOOLS {
        for name in tool.names.split('|') {
            assert!(
                is_worth_reading(b"/x", format!("/usr/bin/{name}").as_bytes()),
                "{name}"
            );
            assert!(
                tool.rows
                    .iter()
                    .all(|(row, _)| !row.starts_with(' ') && !row.ends_with(' ')),
                "{name}"
            );
        }
    }
    for name in STAND_INS {
        assert!(find_tool(name.as_bytes()).is_some(), "{name}");
    }
    for name in ["sh", "bash", "ls", "cc", "make", "env", "xargs", "cto", ""] {
        assert!(
            !is_worth_reading(name.as_bytes(), name.as_bytes()),
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn any_words_are_an_answer(path: Vec<u8>, words: Vec<Vec<u8>>, caller: Vec<Vec<u8>>) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let caller: Vec<&[u8]> = caller.iter().map(Vec::as_slice).collect();
        of_command(&path, &words, &caller);
    }

    /// What is read at all is what the table can answer for.
    #[test]
    fn nothing_is_found_that_would_not_be_read(
        words in proptest::collection::vec("(git|sudo|push|sh|-c|node|npm-cli.js|publish|-m|python3|ssh|h)", 1..6),
    ) {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        if of_command(words[0], &words, &[]).is_some() {
            prop_assert!(is_worth_reading(words[0], words[0]));
        }
    }

    /// Options that take no value never hide a push, and help right behind it always excuses.
    #[test]
    fn options_hide_nothing(options in proptest::collection::vec("--[a-z]{3,8}=[a-z]{1,4}", 0..5), rest in "[a-z]{1,8}") {
        let line = |tail: &str| ["git", &options.join(" "), "push", tail].join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(of(&line(&rest)), Some(Push));
        prop_assert_eq!(of(&line("--help")), None);
    }
}
