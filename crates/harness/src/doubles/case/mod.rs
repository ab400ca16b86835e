//! `cto __case`: a double of Case, written from what a real one was seen to do and from nothing else. It reads the
//! same files, writes the same log, talks to its model through the same door and decides as Case would; what its
//! model says is a scenario's matter. Its exit code says nothing, as that of the real one.
//!
//! - this file: words, files, pipeline; `agent.rs` one agent and its tools; `wire.rs` its requests; `bad_habits.rs` what it
//!   does that no model asked a real one for; `earlier.rs` what it makes of a log that was there before; `neighbourhood.rs` what
//!   it takes orders from that lies around it

mod agent;
mod bad_habits;
mod earlier;
mod neighbourhood;
mod wire;

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use agent::Agent;
use neighbourhood::Surroundings;
use wire::Model;

/// What it asks for where its configuration names nothing.
const BUILT_IN: (&str, &str) = ("anthropic", "claude-sonnet-4-6");
const REVISIONS: u64 = 2;

/// Plays to the end.
pub fn play(words: &[String]) -> u8 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.contains(&"--help") {
        say("Case (a double). ca run --task <file> --mode unattended");
        return 0;
    }
    if words.contains(&"--version") {
        say("0.0.0");
        return 0;
    }
    let task = words.iter().position(|word| *word == "--task");
    let task = task.and_then(|at| words.get(at + 1));
    let (Some(&"run"), Some(task)) = (words.first(), task) else {
        complain("ca run --task <file> is all that is known here");
        return 1;
    };
    bad_habits::begin_heartbeats();
    match Pipeline::open(Path::new(task)).and_then(|pipeline| pipeline.run()) {
        Ok(()) => 0,
        Err(error) => {
            complain(&error.to_string());
            1
        }
    }
}

/// For people; nobody parses it.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn complain(text: &str) {
    report(&json!({"level": "error", "msg": text}));
}

fn report(line: &Value) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn read_json(path: &Path) -> io::Result<Value> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn dir_of(name: &str) -> io::Result<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("{name} is not set")))
}

/// The event log: lines numbered from 1.
struct Log {
    file: Mutex<(File, u64)>,
    run: String,
}

impl Log {
    fn write(&self, mut line: Value) -> io::Result<()> {
        let mut file = self
            .file
            .lock()
            .map_err(|_| io::Error::other("the log is gone"))?;
        file.1 += 1;
        (line["sequence"], line["runId"]) = (file.1.into(), self.run.clone().into());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        line["ts"] = u64::try_from(now.as_millis()).unwrap_or(0).into();
        let (mut to, line) = (&file.0, format!("{line}\n"));
        to.write_all(line.as_bytes())
    }
}

struct Pipeline {
    task: PathBuf,
    id: String,
    status: String,
    tiny: bool,
    workspace: PathBuf,
    around: Surroundings,
    model: Model,
    log: Log,
    log_path: PathBuf,
    /// Phases that an earlier log of this task says are done.
    earlier: Vec<String>,
}

/// How an agent's phase ended.
struct Done {
    completed: bool,
    result: Value,
}

impl Pipeline {
    fn open(task: &Path) -> io::Result<Self> {
        let around = Surroundings::of(&env::current_dir()?);
        let document = read_json(task)?;
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let (id, repo) = (text("id"), text("repo"));
        let data = dir_of("CASE_DATA_DIR")?;
        let projects = read_json(&data.join("projects.json"))?;
        let known = projects["repos"].as_array().into_iter().flatten();
        let workspace = known
            .filter(|known| known["name"] == repo.as_str())
            .find_map(|known| known["path"].as_str())
            .map(PathBuf::from)
            .ok_or_else(|| io::Error::other(format!("no project is called {repo:?}")))?;
        // Without a word, as the real one: what cannot be read, or names no model, is as if it were not there.
        let config = read_json(&data.join("config.json")).unwrap_or_default();
        let chosen = &config["models"]["default"];
        let (provider, model) = match (chosen["provider"].as_str(), chosen["model"].as_str()) {
            (Some(provider), Some(model)) => (provider.to_owned(), model.to_owned()),
            _ => (BUILT_IN.0.to_owned(), BUILT_IN.1.to_owned()),
        };
        let events = workspace.join(".case").join(&id).join("events");
        let earlier = earlier::completed_phases(&events);
        fs::create_dir_all(&events)?;
        let run = format!("{:x}-{}", std::process::id(), nanos());
        let log_path = events.join(format!("run-{run}.jsonl"));
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log_path)?;
        if !earlier.is_empty() {
            report(&json!({"level": "warn", "msg": "resuming an interrupted run"}));
        }
        Ok(Self {
            task: task.to_owned(),
            tiny: document["profile"] == "tiny",
            status: text("status"),
            id,
            workspace,
            model: Model::find(&provider, &model, &around)?,
            around,
            log: Log {
                file: Mutex::new((file, 0)),
                run,
            },
            log_path,
            earlier,
        })
    }

    fn plan(&self) -> Vec<&'static str> {
        match self.tiny {
            true => vec!["implementer", "reviewer", "closer", "retrospective"],
            false => vec![
                "implementer",
                "verifier",
                "reviewer",
                "closer",
                "retrospective",
            ],
        }
    }

    fn run(&self) -> io::Result<()> {
        let begun = Instant::now();
        let profile = if self.tiny { "tiny" } else { "standard" };
        let plan = self.plan();
        self.log.write(
            json!({"event": "pipeline_start", "taskId": self.id, "profile": profile, "plan": plan}),
        )?;
        // Any other status skips what it is past.
        let failed = match self.status.as_str() {
            "active" => self.work(&plan)?,
            _ => None,
        };
        for phase in &plan {
            self.log.write(
                json!({"event": "phase_end", "phase": phase, "agent": phase, "outcome": "skipped", "durationMs": 0}),
            )?;
        }
        bad_habits::before_the_end();
        let outcome = if failed.is_some() {
            "failed"
        } else {
            "completed"
        };
        let mut end =
            json!({"event": "pipeline_end", "outcome": outcome, "durationMs": millis(begun)});
        if let Some(agent) = failed {
            end["failedAgent"] = agent.into();
        }
        self.log.write(end)?;
        report(
            &json!({"level": "info", "msg": "pipeline finished", "log": self.log_path.display().to_string()}),
        );
        bad_habits::after_the_end();
        Ok(())
    }

    /// All phases; the agent that failed, if one did.
    fn work(&self, plan: &[&'static str]) -> io::Result<Option<&'static str>> {
        let mut failed = None;
        let mut revisions = 0;
        let mut note = String::new();
        loop {
            let done = self.phase("implementer", &note)?;
            let done = match done.completed {
                true => done,
                // Once more, with what was wrong.
                false => self.phase(
                    "implementer",
                    done.result["error"].as_str().unwrap_or_default(),
                )?,
            };
            if !done.completed {
                failed = Some("implementer");
                break;
            }
            let mut asked = None;
            for agent in ["verifier", "reviewer"] {
                if !plan.contains(&agent) {
                    continue;
                }
                let done = self.phase(agent, "")?;
                if !done.completed {
                    failed = Some(agent);
                    break;
                }
                let soft = soft_failures(&done.result);
                if !soft.is_empty() {
                    asked = Some((agent, soft));
                    break;
                }
            }
            let Some((source, categories)) = asked.filter(|_| failed.is_none()) else {
                break;
            };
            if revisions == REVISIONS {
                self.log
                    .write(json!({"event": "revision_budget_exhausted", "source": source}))?;
                break;
            }
            revisions += 1;
            note = format!("a revision is asked for: {}", categories.join(", "));
            self.log.write(json!({
                "event": "revision_requested", "source": source, "cycle": revisions, "failedCategories": categories,
            }))?;
        }
        // These run whatever was.
        for agent in ["closer", "retrospective"] {
            if !self.phase(agent, "")?.completed && failed.is_none() && agent == "closer" {
                failed = Some(agent);
            }
        }
        Ok(failed)
    }

    fn phase(&self, agent: &'static str, note: &str) -> io::Result<Done> {
        // The trap of a log that was left behind: what it says is done is not done again.
        if self.earlier.iter().any(|phase| phase == agent) {
            let result = json!({"status": "completed", "summary": "done before"});
            return Ok(Done {
                completed: true,
                result,
            });
        }
        let begun = Instant::now();
        say(&format!("{agent} begins"));
        self.log
            .write(json!({"event": "phase_start", "phase": agent, "agent": agent}))?;
        self.rewrite(agent, "running");
        let heard = Agent {
            role: agent,
            model: &self.model,
            workspace: &self.workspace,
            page: &self.task.with_file_name(format!("{}.md", self.id)),
            log: &self.log,
            around: &self.around,
        }
        .converse(note);
        let result = match heard.and_then(|text| envelope(&text)) {
            Ok(result) => result,
            Err(why) => {
                report(
                    &json!({"level": "error", "class": "agent-protocol-error", "agent": agent, "error": why}),
                );
                json!({"status": "failed", "error": why})
            }
        };
        bad_habits::take_up(&result);
        let completed = result["status"] == "completed";
        let outcome = if completed { "completed" } else { "failed" };
        self.log.write(json!({
            "event": "phase_end", "phase": agent, "agent": agent, "outcome": outcome, "durationMs": millis(begun),
            "result": result,
        }))?;
        self.rewrite(agent, outcome);
        Ok(Done { completed, result })
    }

    /// The task's own file, in its place, all through the run. What it holds by then is nobody's concern.
    fn rewrite(&self, agent: &str, state: &str) {
        let mut document = read_json(&self.task).unwrap_or_else(|_| json!({"id": self.id}));
        document["agents"][agent] = json!({"status": state});
        let _ = fs::write(&self.task, document.to_string());
    }
}

/// Categories of a rubric that failed and are not marked as hard.
fn soft_failures(result: &Value) -> Vec<String> {
    let categories = result["rubric"]["categories"].as_array();
    let soft = categories
        .into_iter()
        .flatten()
        .filter(|category| category["verdict"] == "fail" && category["hard"] != true);
    soft.filter_map(|category| category["category"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The result in an agent's text: the last that begins counts.
fn envelope(text: &str) -> Result<Value, String> {
    let wrong = |what: &str| format!("AGENT_RESULT {what}");
    let at = text
        .rfind("<<<AGENT_RESULT")
        .ok_or_else(|| wrong("start delimiter not found"))?;
    let rest = &text[at + "<<<AGENT_RESULT".len()..];
    let end = rest
        .find("AGENT_RESULT>>>")
        .ok_or_else(|| wrong("end delimiter not found"))?;
    let result: Value = serde_json::from_str(rest[..end].trim())
        .map_err(|error| wrong(&format!("JSON parse error: {error}")))?;
    match result["status"].as_str() {
        Some("completed" | "failed" | "blocked") => Ok(result),
        other => Err(wrong(&format!(
            "invalid status: {}",
            other.unwrap_or("none")
        ))),
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn nanos() -> u32 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.subsec_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_it_is() {
        let good = "x <<<AGENT_RESULT {\"status\":\"failed\"} AGENT_RESULT>>> <<<AGENT_RESULT\n{\"status\":\"completed\"}\nAGENT_RESULT>>> y";
        assert_eq!(envelope(good).unwrap()["status"], "completed");
        for (text, why) in [
            ("nothing", "start delimiter not found"),
            (
                "<<<AGENT_RESULT {\"status\":\"completed\"}",
                "end delimiter not found",
            ),
            (
                "<<<AGENT_RESULT\n```json\n{}\n```\nAGENT_RESULT>>>",
                "JSON parse error",
            ),
            (
                "<<<AGENT_RESULT {\"status\":\"done\"} AGENT_RESULT>>>",
                "invalid status: done",
            ),
        ] {
            let found = envelope(text).unwrap_err();
            assert!(
                found.starts_with("AGENT_RESULT ") && found.contains(why),
                "{found}"
            );
        }
    }
}
