//! The table: programs that reach outside, and which of their commands are which deed.

use super::super::Deed;
use Deed::{Close, CredentialChange, Deploy, IssueClose, Merge, PrOpen, PublicPublication, Push};

pub(super) struct Tool {
    /// Names separated by `|`.
    pub(super) names: &'static str,
    /// Options whose value is the next word.
    pub(super) valued: &'static str,
    /// Leading words, alternatives by `|`; `*` first: anywhere; an option: somewhere; nothing at
    /// all: the bare command.
    pub(super) rows: &'static [(&'static str, Deed)],
    /// An option that makes it a rehearsal without a remote.
    pub(super) rehearsal: &'static str,
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

pub(super) const GIT_VALUED: &str =
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source";
const KUBE_VALUED: &str =
    "-n --namespace --context --kubeconfig --cluster --user -s --server --token --kube-context";

/// A rehearsed push asks a remote and is an attempt; a rehearsed publication is not. Local `git
/// merge` is ordinary work.
pub(super) const TOOLS: &[Tool] = &[
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
pub(super) const REMOTE: &[(&str, &str)] = &[
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
pub(super) const LAUNCHERS: &[(&str, &str)] = &[
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

pub(super) fn find_tool(name: &[u8]) -> Option<&'static Tool> {
    TOOLS
        .iter()
        .find(|tool| tool.names.split('|').any(|known| known.as_bytes() == name))
}

pub(super) fn lookup(
    table: &'static [(&'static str, &'static str)],
    name: &[u8],
) -> Option<&'static str> {
    table
        .iter()
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, valued)| *valued)
}
