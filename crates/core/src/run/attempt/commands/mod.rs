//! Which command is which deed: one table over the words of a command line. Wrappers that start the
//! command themselves (`sh -c`, `env`, `xargs`, `npx`) need no row: what they start is seen by its
//! own start.

use super::Deed;
use Deed::{Close, CredentialChange, Deploy, IssueClose, Merge, PrOpen, PublicPublication, Push};

struct Tool {
    /// Names separated by `|`.
    names: &'static str,
    /// Options whose value is the next word.
    valued: &'static str,
    /// Leading words, alternatives by `|`; `*` first: anywhere; an option: somewhere; nothing at
    /// all: the bare command.
    rows: &'static [(&'static str, Deed)],
    /// An option that makes it a rehearsal without a remote.
    rehearsal: &'static str,
}

const fn tool(
    names: &'static str,
    valued: &'static str,
    rehearsal: &'static str,
    rows: &'static [(&'static str, Deed)],
) -> Tool {
    Tool {
        names,
        valued,
        rows,
        rehearsal,
    }
}

const GIT_VALUED: &str =
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source";
const KUBE_VALUED: &str =
    "-n --namespace --context --kubeconfig --cluster --user -s --server --token --kube-context";

/// A rehearsed push asks a remote and is an attempt; a rehearsed publication is not. Local `git
/// merge` is ordinary work.
const TOOLS: &[Tool] = &[
    tool(
        "git",
        GIT_VALUED,
        "",
        &[
            ("push|send-pack|http-push|receive-pack", Push),
            ("lfs|subtree push", Push),
            ("svn dcommit", Push),
            ("p4 submit", Push),
            ("send-email|imap-send", PublicPublication),
        ],
    ),
    tool("hg|bzr|brz|sl", "-R --cwd", "", &[("push", Push)]),
    tool("svn", "", "", &[("commit|ci|import", Push)]),
    tool("jj", "-R --repository", "", &[("git push", Push)]),
    tool("gt", "", "", &[("submit|ss", PrOpen)]),
    tool(
        "hub",
        "",
        "",
        &[
            ("push", Push),
            ("pull-request", PrOpen),
            ("pr merge", Merge),
            ("release create|edit|delete", PublicPublication),
        ],
    ),
    tool(
        "gh",
        "-R --repo --hostname",
        "",
        &[
            ("pr create|new", PrOpen),
            ("pr merge", Merge),
            ("pr close", Close),
            (
                "pr comment|review|edit|ready|reopen|lock",
                PublicPublication,
            ),
            ("issue close", IssueClose),
            (
                "issue create|new|comment|edit|delete|reopen|transfer|lock|pin",
                PublicPublication,
            ),
            ("release create|new|edit|delete|upload", PublicPublication),
            ("repo sync", Push),
            (
                "repo create|new|delete|edit|rename|archive|unarchive|fork",
                PublicPublication,
            ),
            ("repo deploy-key add|delete", CredentialChange),
            ("gist create|new|edit|delete", PublicPublication),
            ("workflow run|enable|disable", Deploy),
            ("run rerun|cancel|delete", Deploy),
            ("secret|variable set|delete|remove", CredentialChange),
            ("ssh-key|gpg-key add|delete", CredentialChange),
            (
                "auth login|logout|refresh|setup-git|switch",
                CredentialChange,
            ),
        ],
    ),
    tool(
        "glab",
        "-R --repo -g --group",
        "",
        &[
            ("mr create|new|for", PrOpen),
            ("mr merge|accept", Merge),
            ("mr close", Close),
            ("mr note|comment|approve|update|reopen", PublicPublication),
            ("issue close", IssueClose),
            (
                "issue create|new|note|comment|update|delete|reopen",
                PublicPublication,
            ),
            ("release create|upload|delete", PublicPublication),
            ("repo create|delete|archive|fork", PublicPublication),
            ("ci|pipeline run|retry|trigger", Deploy),
            ("variable set|update|delete", CredentialChange),
            ("ssh-key add|delete", CredentialChange),
            ("auth login|logout", CredentialChange),
        ],
    ),
    tool(
        "npm|pnpm|yarn|bun",
        "--registry --tag --prefix -C --dir --cwd --userconfig --otp --access --workspace -w --filter -F --loglevel",
        "--dry-run",
        &[
            ("publish|unpublish|deprecate", PublicPublication),
            ("npm publish", PublicPublication),
            ("dist-tag add|rm", PublicPublication),
            ("npm login|logout", CredentialChange),
            ("login|adduser|add-user|logout", CredentialChange),
            ("owner add|rm", CredentialChange),
            ("access grant|revoke|set", CredentialChange),
            ("token create|revoke", CredentialChange),
        ],
    ),
    tool(
        "deno|jsr|lerna|changeset|vsce|ovsx|clean-publish|np",
        "",
        "--dry-run",
        &[("publish", PublicPublication)],
    ),
    tool(
        "semantic-release|release-it",
        "",
        "--dry-run",
        &[("", PublicPublication)],
    ),
    tool(
        "cargo",
        "--config -Z -C --color --manifest-path",
        "--dry-run|-n",
        &[
            ("publish|yank", PublicPublication),
            ("release", PublicPublication),
            ("login|logout", CredentialChange),
            ("owner --add|--remove|-a|-r", CredentialChange),
        ],
    ),
    tool("twine", "", "", &[("upload|register", PublicPublication)]),
    tool(
        "uv|poetry|flit|hatch|pdm|rye|maturin",
        "--directory --project -C -p",
        "--dry-run",
        &[("publish|upload", PublicPublication)],
    ),
    tool(
        "gem",
        "",
        "",
        &[
            ("push|yank", PublicPublication),
            ("signin|signout", CredentialChange),
            ("owner --add|--remove|-a|-r", CredentialChange),
        ],
    ),
    tool(
        "mix",
        "",
        "--dry-run",
        &[("hex.publish", PublicPublication)],
    ),
    tool(
        "dotnet",
        "",
        "",
        &[("nuget push|delete", PublicPublication)],
    ),
    tool(
        "nuget",
        "",
        "",
        &[
            ("push|delete", PublicPublication),
            ("setapikey", CredentialChange),
        ],
    ),
    tool(
        "mvn|mvnw|mvnd",
        "-f --file -s --settings -pl",
        "",
        &[(
            "* deploy|release:perform|deploy:deploy-file",
            PublicPublication,
        )],
    ),
    tool(
        "gradle|gradlew",
        "-p --project-dir -b",
        "--dry-run|-m",
        &[(
            "* publish|publishPlugins|publishAllPublications",
            PublicPublication,
        )],
    ),
    tool(
        "goreleaser",
        "",
        "--snapshot",
        &[("release", PublicPublication)],
    ),
    tool(
        "docker|podman|nerdctl|buildah|crane|oras",
        "-H --host --context --config -l --log-level --connection --url",
        "",
        &[
            ("push", PublicPublication),
            ("image|manifest|compose push", PublicPublication),
            ("build --push", PublicPublication),
            ("buildx build|bake --push", PublicPublication),
            ("stack deploy", Deploy),
            ("login|logout", CredentialChange),
        ],
    ),
    tool(
        "skopeo",
        "",
        "",
        &[
            ("copy|sync|delete", PublicPublication),
            ("login|logout", CredentialChange),
        ],
    ),
    tool(
        "helm",
        KUBE_VALUED,
        "--dry-run",
        &[
            ("push", PublicPublication),
            ("install|upgrade|uninstall|delete|rollback", Deploy),
            ("registry login|logout", CredentialChange),
        ],
    ),
    tool(
        "kubectl|oc",
        KUBE_VALUED,
        "--dry-run=client",
        &[
            (
                "apply|create|delete|replace|patch|scale|set|run|expose|edit|drain|cordon|annotate|label|autoscale",
                Deploy,
            ),
            ("rollout restart|undo|pause|resume", Deploy),
            ("login", CredentialChange),
        ],
    ),
    tool(
        "terraform|tofu|terragrunt",
        "",
        "",
        &[
            ("apply|destroy|import", Deploy),
            ("run-all apply|destroy", Deploy),
            ("login|logout", CredentialChange),
        ],
    ),
    tool(
        "pulumi",
        "-C --cwd -s --stack",
        "",
        &[
            ("up|update|destroy", Deploy),
            ("login|logout", CredentialChange),
        ],
    ),
    tool(
        "cdk|sam|serverless|sls|kamal|eb|copilot|railway|render|firebase|flyctl|fly|netlify|wrangler",
        "-P --project -a --app -c --config -e --env",
        "--dry-run",
        &[
            ("deploy|redeploy|destroy|up|publish|launch|rollback", Deploy),
            ("pages|versions deploy", Deploy),
            ("login|logout|secret", CredentialChange),
            ("auth login|logout", CredentialChange),
        ],
    ),
    tool(
        "vercel|vc",
        "--cwd --scope -S --token -t -A --local-config",
        "",
        &[
            ("", Deploy),
            ("deploy|promote|rollback|redeploy|remove|rm|alias", Deploy),
            ("login|logout", CredentialChange),
        ],
    ),
    tool(
        "heroku",
        "-a --app",
        "",
        &[
            (
                "container:release|container:push|releases:rollback|apps:destroy",
                Deploy,
            ),
            ("login|auth:login", CredentialChange),
        ],
    ),
    tool(
        "gcloud",
        "--project --account --configuration",
        "",
        &[
            ("app|run|functions|deploy deploy|apply", Deploy),
            ("builds submit", Deploy),
            (
                "auth login|activate-service-account|revoke",
                CredentialChange,
            ),
        ],
    ),
    tool(
        "aws",
        "--profile --region --endpoint-url --output",
        "--dryrun",
        &[
            ("s3 cp|mv|sync|rm|rb|mb", Deploy),
            (
                "cloudformation deploy|create-stack|update-stack|delete-stack",
                Deploy,
            ),
            ("lambda update-function-code", Deploy),
            ("ecs update-service", Deploy),
            ("configure set|import|sso", CredentialChange),
            ("sso login|logout", CredentialChange),
        ],
    ),
    tool(
        "az",
        "",
        "",
        &[
            ("webapp|functionapp|deployment up|deploy|create", Deploy),
            ("login|logout", CredentialChange),
        ],
    ),
];

/// Programs of the table that do little else than leave the jail, and that no test suite asks for.
pub const STAND_INS: [&str; 11] = [
    "gh", "glab", "hub", "twine", "vercel", "netlify", "wrangler", "firebase", "flyctl", "fly",
    "heroku",
];

/// Programs of other hosts, with the options that take a value.
const REMOTE: &[(&str, &str)] = &[
    (
        "ssh",
        "-b -B -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
    ),
    ("scp", "-c -D -F -i -J -l -o -P -S -X"),
    ("sftp", "-B -b -c -D -F -i -J -l -o -P -R -S -s -X"),
    ("rsync", "-e -f -T -B"),
    ("ssh-copy-id", "-i -p -o -F -t"),
];

/// What only starts another program named in its words, with the options that take a value.
const LAUNCHERS: &[(&str, &str)] = &[
    ("sudo", "-u -g -h -p -C -D -R -T -U -r -t"),
    ("doas", "-u -C"),
    (
        "ld.so",
        "--library-path --preload --argv0 --audit --glibc-hwcaps-prepend",
    ),
    (
        "node",
        "-r --require --import --loader --experimental-loader -C --conditions",
    ),
    ("bun", ""),
    ("deno", ""),
    ("ruby", "-r -I"),
    ("python", "-W -X"),
];

/// Could a program of this name be one of the table? What cannot is not read any further.
pub fn is_worth_reading(path: &[u8], first: &[u8]) -> bool {
    [path, first].into_iter().any(|word| {
        let name = name_of(word);
        find_tool(&name).is_some()
            || lookup(REMOTE, &name).is_some()
            || lookup(LAUNCHERS, &name).is_some()
    })
}

/// What a start of `path` with these words attempts. `caller`: the words of the program that starts
/// it, which tell what a helper of git's is for.
pub fn of_command(path: &[u8], argv: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    let rest = argv.get(1..).unwrap_or_default();
    let given = argv.first().copied().unwrap_or_default();
    // A program can be started under any name, and any name can be given to a program.
    of_named(path, rest, caller).or_else(|| of_named(given, rest, caller))
}

fn of_named(program: &[u8], rest: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    const DEEPEST: usize = 4;
    let (mut program, mut rest) = (program, rest);
    for _ in 0..DEEPEST {
        if let Some(deed) = of_tool(program, rest, caller) {
            return Some(deed);
        }
        (program, rest) = launched(program, rest)?;
    }
    None
}

fn of_tool(program: &[u8], rest: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    let base = base(program);
    let name = name_of(program);
    if let Some(valued) = lookup(REMOTE, &name) {
        return of_remote(&name, &Line::read(rest, valued));
    }
    let tool = find_tool(&name)?;
    // `git-push` is `git push` under its own name.
    let dashed: Vec<&[u8]> = match base.strip_prefix(b"git-") {
        Some(word) if name == b"git" => [&[word], rest].concat(),
        _ => rest.to_vec(),
    };
    let line = Line::read(&dashed, tool.valued);
    let first = line.words.first().map(|(_, word)| *word);
    match (tool.names, first) {
        ("git", Some(word)) if word.starts_with(b"remote-") => return Some(helper(caller)),
        ("gh" | "glab", Some(b"api")) => return of_api(rest),
        _ => {}
    }
    let rehearsed = tool
        .rehearsal
        .split('|')
        .any(|option| !option.is_empty() && rest.contains(&option.as_bytes()));
    let row = tool
        .rows
        .iter()
        .find_map(|(row, deed)| Some((line.matches(row)?, *deed)));
    row.filter(|(at, _)| !rehearsed && !line.asks_for_help(*at))
        .map(|(_, deed)| deed)
}

/// A command line, its options told from its words.
struct Line<'a> {
    all: &'a [&'a [u8]],
    /// Words that are neither options nor their values, with their places.
    words: Vec<(usize, &'a [u8])>,
    options: Vec<(usize, &'a [u8])>,
}

impl<'a> Line<'a> {
    fn read(all: &'a [&'a [u8]], valued: &str) -> Self {
        let (mut words, mut options) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(word) = all.get(at) {
            match word {
                [b'-', _, ..] if *word != b"--" => {
                    options.push((at, *word));
                    at += usize::from(valued.split(' ').any(|option| option.as_bytes() == *word));
                }
                // A toolchain, for `cargo`.
                [b'+', ..] if words.is_empty() => {}
                word if **word == *b"--" => {}
                word => words.push((at, *word)),
            }
            at += 1;
        }
        Self {
            all,
            words,
            options,
        }
    }

    /// The place of the last word a row matched.
    fn matches(&self, row: &str) -> Option<usize> {
        let is =
            |pattern: &str, word: &[u8]| pattern.split('|').any(|name| name.as_bytes() == word);
        if row.is_empty() {
            return self.words.is_empty().then_some(0);
        }
        if let Some(pattern) = row.strip_prefix("* ") {
            let last_part = |word: &[u8]| {
                is(
                    pattern,
                    word.rsplit(|b| *b == b':').next().unwrap_or_default(),
                )
            };
            return self
                .words
                .iter()
                .find(|(_, word)| is(pattern, word) || last_part(word))
                .map(|(at, _)| *at);
        }
        let mut last = 0;
        let mut words = self.words.iter();
        for pattern in row.split(' ') {
            if pattern.starts_with("--") {
                self.options
                    .iter()
                    .find(|(_, option)| is(pattern, option))?;
                continue;
            }
            last = words.next().filter(|(_, word)| is(pattern, word))?.0;
        }
        Some(last)
    }

    /// Help or a version was asked for instead: before the last word that counts, or right after
    /// it. Further on, such a word may be the value of an option and excuses nothing.
    fn asks_for_help(&self, at: usize) -> bool {
        let asks = |word: &[u8]| matches!(word, b"--help" | b"-h" | b"-help");
        let before = self
            .options
            .iter()
            .any(|(place, word)| *place <= at && (asks(word) || *word == b"--version"));
        let first = self.words.first().is_some_and(|(_, word)| *word == b"help");
        before
            || first
            || self
                .all
                .get(at + 1)
                .is_some_and(|word| asks(word) || *word == b"help")
    }
}

/// A request through `gh api`: anything but a read.
fn of_api(rest: &[&[u8]]) -> Option<Deed> {
    let has = |part: &[u8]| rest.iter().any(|word| super::find(word, part).is_some());
    if rest.iter().any(|word| matches!(*word, b"--help" | b"-h")) {
        return None;
    }
    let method = rest.iter().enumerate().find_map(|(at, word)| match *word {
        b"-X" | b"--method" => rest.get(at + 1).copied(),
        word => word
            .strip_prefix(b"--method=")
            .or_else(|| word.strip_prefix(b"-X")),
    });
    let sends = rest.iter().any(|word| {
        ["-f", "-F", "--field", "--raw-field", "--input"]
            .iter()
            .any(|option| word.starts_with(option.as_bytes()))
    });
    let reads = match method {
        Some(method) => method.eq_ignore_ascii_case(b"get") || method.eq_ignore_ascii_case(b"head"),
        None => !sends,
    };
    match () {
        () if rest.contains(&&b"graphql"[..]) => has(b"mutation").then_some(PublicPublication),
        () if reads => None,
        () if rest
            .iter()
            .any(|word| word.ends_with(b"/merge") || word.ends_with(b"/merges")) =>
        {
            Some(Merge)
        }
        () if rest
            .iter()
            .any(|word| word.ends_with(b"/pulls") || word.ends_with(b"/merge_requests")) =>
        {
            Some(PrOpen)
        }
        () => Some(PublicPublication),
    }
}

/// A transport helper of git's serves a push or a fetch; only who started it knows.
fn helper(caller: &[&[u8]]) -> Deed {
    let rest = caller.get(1..).unwrap_or_default();
    if caller
        .first()
        .is_some_and(|program| base(program) == b"git")
    {
        let line = Line::read(rest, GIT_VALUED);
        return if line
            .words
            .first()
            .is_some_and(|(_, word)| matches!(*word, b"push" | b"send-pack"))
        {
            Push
        } else {
            Deed::Fetch
        };
    }
    // Under another name any of its words may be the one.
    let pushes = |word: &&[u8]| {
        matches!(
            base(word),
            b"push" | b"send-pack" | b"git-push" | b"git-send-pack" | b"http-push"
        )
    };
    if caller.iter().any(pushes) {
        Push
    } else {
        Deed::Fetch
    }
}

fn of_remote(name: &[u8], line: &Line<'_>) -> Option<Deed> {
    let asks = |word: &[u8]| {
        matches!(
            word,
            b"--help" | b"--version" | b"-V" | b"-Q" | b"-G" | b"-h"
        )
    };
    if line.options.iter().any(|(_, option)| asks(option)) {
        return None;
    }
    let says = |part: &[u8]| {
        line.all
            .iter()
            .any(|word| super::find(word, part).is_some())
    };
    let names_host = |word: &[u8]| {
        let colon = word.iter().position(|b| *b == b':');
        word.starts_with(b"scp://")
            || word.starts_with(b"rsync://")
            || colon.is_some_and(|at| at > 0 && !word[..at].contains(&b'/'))
    };
    match name {
        b"scp" | b"rsync" => line
            .words
            .iter()
            .any(|(_, word)| names_host(word))
            .then_some(Deed::RemoteShell),
        _ if line.words.is_empty() => None,
        b"ssh" if says(b"git-receive-pack") => Some(Push),
        b"ssh" if says(b"git-upload-pack") || says(b"git-upload-archive") => Some(Deed::Fetch),
        _ => Some(Deed::RemoteShell),
    }
}

/// The program a launcher is told to start, and its words.
fn launched<'a>(program: &[u8], rest: &'a [&'a [u8]]) -> Option<(&'a [u8], &'a [&'a [u8]])> {
    let name = name_of(program);
    let valued = lookup(LAUNCHERS, &name)?;
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        match *word {
            // Code on the command line, not a program.
            b"-c" if name == b"python" => return None,
            b"-e" | b"--eval" | b"-p" | b"--print" if name != b"sudo" => return None,
            b"-m" if name == b"python" => return Some((rest.get(at + 1)?, rest.get(at + 2..)?)),
            [b'-', ..] => {
                at += 1 + usize::from(valued.split(' ').any(|option| option.as_bytes() == *word))
            }
            // `sudo NAME=value command`
            word if name == b"sudo" && word.contains(&b'=') => at += 1,
            word => return Some((word, rest.get(at + 1..)?)),
        }
    }
    None
}

fn base(word: &[u8]) -> &[u8] {
    word.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// The name a program goes by in the table: `npm-cli.js` is `npm`, `git-push` is `git`,
/// `python3.12` is `python`.
fn name_of(word: &[u8]) -> Vec<u8> {
    let mut name = base(word);
    for ending in [&b".js"[..], b".cjs", b".mjs", b".py", b".rb"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    let name = name.strip_suffix(b"-cli").unwrap_or(name);
    let known: &[u8] = match name {
        _ if name.starts_with(b"git-") => b"git",
        _ if name.starts_with(b"yarn-") => b"yarn",
        _ if name.starts_with(b"python") || name.starts_with(b"pypy") => b"python",
        _ if name.starts_with(b"ld-linux") || name.starts_with(b"ld-musl") => b"ld.so",
        b"nodejs" => b"node",
        name => name,
    };
    known.to_vec()
}

fn find_tool(name: &[u8]) -> Option<&'static Tool> {
    TOOLS
        .iter()
        .find(|tool| tool.names.split('|').any(|known| known.as_bytes() == name))
}

fn lookup(table: &'static [(&'static str, &'static str)], name: &[u8]) -> Option<&'static str> {
    table
        .iter()
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, valued)| *valued)
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
