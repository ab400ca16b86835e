//! `cto config`: every setting, its value and where it came from.

use std::path::PathBuf;

use cto_core::operator::settings::{Config, KNOBS, Layers, Source};
use serde_json::json;

use crate::cli::Context;
use crate::cli::chosen_color;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::settings;
use crate::screen::output::{Color, dim};
use crate::screen::table::{Cell, Fit, Table};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print where the config file is or would be
    Path,
    /// Check a config file, by default the one in use
    Check {
        /// Any file
        file: Option<PathBuf>,
    },
}

/// What a config file may hold, for the help.
pub fn keys() -> String {
    let mut text =
        "Keys of the config file, each beaten by its flag where it has one:\n".to_owned();
    for knob in KNOBS {
        let flag = knob.flag.map(|flag| format!(" ({flag})"));
        text.push_str(&format!(
            "  {:<9} {}{}\n",
            knob.key,
            knob.what,
            flag.unwrap_or_default()
        ));
    }
    text.push_str(
        "\nFor example:\n  timeout = 1200\n  color = \"never\"\n\n\
         The file is $XDG_CONFIG_HOME/cto/config.toml (~/.config/cto/config.toml), or the one CTO_CONFIG names. \
         It must be yours alone and lie in no repository. It holds no secrets, opens no engine and \
         changes nothing a run may do; a file that tries to is refused whole.",
    );
    text
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match &args.action {
        None => list(context),
        Some(Action::Path) => path(context),
        Some(Action::Check { file }) => check(context, file.clone()),
    }
}

/// One setting as it stands.
struct Setting {
    key: &'static str,
    value: Option<String>,
    source: Source,
}

fn settings(context: &Context, config: &Config) -> Result<Vec<Setting>, Failure> {
    let (home, [root_from, runs_from]) = Home::with_sources(
        context.home.clone(),
        context.runs_dir.clone(),
        &context.env,
        config,
    )?;
    let (color_from, color) = chosen_color(context.color, &context.env, config);
    KNOBS
        .iter()
        .map(|knob| {
            let (source, value) = match knob.key {
                "home" => (root_from, Some(home.root.display().to_string())),
                "runs_dir" => (runs_from, Some(home.runs.display().to_string())),
                "color" => (color_from, Some(color.name().to_owned())),
                key => {
                    let config = config
                        .get(key)
                        .map(|given| (given.line, Some(given.value.clone())));
                    Layers {
                        flag: None,
                        environment: None,
                        config,
                        default: None,
                    }
                    .choose(key)
                    .unwrap_or((Source::Default, None))
                }
            };
            Ok(Setting {
                key: knob.key,
                value,
                source,
            })
        })
        .collect()
}

fn list(context: &Context) -> Result<u8, Failure> {
    let loaded = settings::load(&context.env)?;
    let settings = settings(context, &loaded.config)?;
    let file = loaded.path.as_ref().map(|path| path.display().to_string());
    if context.output.json {
        let rows: Vec<_> = settings
            .iter()
            .map(|setting| json!({"key": setting.key, "value": setting.value, "source": setting.source}))
            .collect();
        context.output.document(
            &json!({"schema_version": 1, "command": "config", "file": file, "exists": loaded.exists, "settings": rows}),
        )?;
        return Ok(0);
    }
    let mut table = Table::new(&[
        ("setting", Fit::Whole),
        ("value", Fit::Cut),
        ("from", Fit::Whole),
    ]);
    for (setting, knob) in settings.iter().zip(KNOBS) {
        let value = setting
            .value
            .clone()
            .map_or_else(|| Cell::styled(knob.default, dim()), Cell::from);
        table.row(vec![setting.key.into(), value, from(setting.source).into()]);
    }
    context.output.table(&table);
    let there = if loaded.exists { "" } else { " (not there)" };
    context.output.line(&format!(
        "\nfile: {}{there}",
        file.as_deref().unwrap_or("none")
    ));
    for (setting, given) in settings
        .iter()
        .filter_map(|setting| Some((setting, loaded.config.get(setting.key)?)))
    {
        if !matches!(setting.source, Source::Config { .. }) {
            context.output.line(&format!(
                "line {} of it has no effect: {} beats it",
                given.line,
                from(setting.source)
            ));
        }
    }
    Ok(0)
}

fn from(source: Source) -> String {
    match source {
        Source::Flag { name } | Source::Environment { name } => name.to_owned(),
        Source::Profile => "Hermes profile".to_owned(),
        Source::Config { line } => format!("config line {line}"),
        Source::Default => "default".to_owned(),
    }
}

fn path(context: &Context) -> Result<u8, Failure> {
    let path = settings::path(&context.env)?.ok_or_else(|| {
        Failure::usage("no_config", "there is no place for a config file")
            .reason("neither HOME nor XDG_CONFIG_HOME is set, or CTO_CONFIG says to use none")
    })?;
    let shown = path.display().to_string();
    match context.output.json {
        true => context
            .output
            .document(&json!({"schema_version": 1, "command": "config path", "path": shown, "exists": path.exists()}))?,
        false => context.output.line(&shown),
    }
    Ok(0)
}

fn check(context: &Context, file: Option<PathBuf>) -> Result<u8, Failure> {
    let path = match &file {
        Some(file) => {
            settings::check(file)?.map_err(|issues| settings::invalid(file, &issues))?;
            Some(file.clone())
        }
        None => {
            let loaded = settings::load(&context.env)?;
            loaded.path.filter(|_| loaded.exists)
        }
    };
    let shown = path.map(|path| path.display().to_string());
    match context.output.json {
        true => {
            context.output.document(
                &json!({"schema_version": 1, "command": "config check", "file": shown, "ok": true}),
            )?;
        }
        false => context.output.line(&match shown {
            Some(path) => format!("ok: {path}"),
            None => "ok: there is no config file".to_owned(),
        }),
    }
    Ok(0)
}

impl Color {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
