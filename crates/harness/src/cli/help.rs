//! Help: the everyday commands when it is short, every command under a heading when it is long.

use clap::builder::Styles;
use serde_json::json;

use super::{Context, command_tree};
use crate::host::failure::Failure;

/// The headings of the long help. The short help shows the first group alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    Everyday,
    Evidence,
    Tasks,
    Host,
}

const GROUPS: [(Group, &str); 4] = [
    (Group::Everyday, "Everyday"),
    (Group::Evidence, "Evidence"),
    (Group::Tasks, "Tasks and engines"),
    (Group::Host, "This host and this program"),
];

/// Where each command is listed, in order. A command that is missing here fails a test.
const PLACES: &[(&str, Group)] = &[
    ("run", Group::Everyday),
    ("try", Group::Everyday),
    ("show", Group::Everyday),
    ("verify", Group::Everyday),
    ("doctor", Group::Everyday),
    ("runs", Group::Evidence),
    ("log", Group::Evidence),
    ("diff", Group::Evidence),
    ("replay", Group::Evidence),
    ("bundle", Group::Evidence),
    ("keys", Group::Evidence),
    ("recover", Group::Evidence),
    ("schema", Group::Evidence),
    ("request", Group::Tasks),
    ("requests", Group::Tasks),
    ("approve", Group::Tasks),
    ("deny", Group::Tasks),
    ("outcome", Group::Tasks),
    ("revert", Group::Tasks),
    ("project", Group::Tasks),
    ("apply", Group::Tasks),
    ("reverify", Group::Tasks),
    ("cases", Group::Tasks),
    ("case", Group::Tasks),
    ("contract", Group::Tasks),
    ("engines", Group::Tasks),
    ("setup", Group::Tasks),
    ("admit", Group::Tasks),
    ("eligibility", Group::Tasks),
    ("ladder", Group::Tasks),
    ("validate", Group::Tasks),
    ("matrix", Group::Tasks),
    ("exec", Group::Host),
    ("config", Group::Host),
    ("completions", Group::Host),
    ("man", Group::Host),
    ("help", Group::Host),
];

#[derive(clap::Args)]
pub struct Args {
    /// The command to explain; without one, every command is listed
    command: Vec<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let mut tree = command_tree();
    tree.build();
    let mut command = &mut tree;
    for name in &args.command {
        command = command.find_subcommand_mut(name).ok_or_else(|| {
            Failure::usage("unknown_command", format!("there is no command {name:?}"))
                .hint("`cto help` lists every command")
        })?;
    }
    let help = command.render_long_help();
    match context.output.json {
        true => context
            .output
            .document(&json!({"schema_version": 1, "command": "help", "text": help.to_string()}))?,
        false => context.output.line(help.ansi().to_string().trim_end()),
    }
    Ok(0)
}

/// Gives the command tree its two lists.
pub fn dress(tree: clap::Command) -> clap::Command {
    let more = "Every command: cto help. One in full: cto help COMMAND.";
    let short = format!("{}\n\n{more}", list(&tree, Group::Everyday, "Commands"));
    let long: Vec<String> = GROUPS
        .iter()
        .map(|(group, heading)| list(&tree, *group, heading))
        .collect();
    let styles = Styles::styled();
    let header = styles.get_header();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{before-help}}{header}Options:{header:#}\n{{options}}"
    );
    tree.before_help(short)
        .before_long_help(long.join("\n\n"))
        .help_template(template)
        .override_usage("cto [OPTIONS] <COMMAND>")
}

fn list(tree: &clap::Command, group: Group, heading: &str) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let width = PLACES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{header}{heading}:{header:#}");
    for (name, _) in PLACES.iter().filter(|(_, place)| *place == group) {
        let about = tree
            .find_subcommand(name)
            .and_then(clap::Command::get_about)
            .map(ToString::to_string)
            .unwrap_or_default();
        text.push_str(&format!(
            "\n  {literal}{name}{literal:#}{}  {about}",
            " ".repeat(width - name.len())
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_exactly_one_place() {
        let tree = command_tree();
        let mut shown: Vec<&str> = tree
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(|sub| sub.get_name())
            .collect();
        let mut placed: Vec<&str> = PLACES.iter().map(|(name, _)| *name).collect();
        shown.sort_unstable();
        placed.sort_unstable();
        assert_eq!(placed, shown, "add a line to PLACES for a new command");
    }

    #[test]
    fn the_short_help_stays_short() {
        let everyday = PLACES
            .iter()
            .filter(|(_, group)| *group == Group::Everyday)
            .count();
        assert!((1..=8).contains(&everyday), "{everyday}");
    }

    #[test]
    fn every_group_has_a_heading_and_a_command() {
        for (group, _) in GROUPS {
            assert!(PLACES.iter().any(|(_, place)| *place == group), "{group:?}");
        }
        assert!(
            PLACES
                .iter()
                .all(|(_, place)| GROUPS.iter().any(|(group, _)| group == place))
        );
    }
}
