//! The loading control: the contract's commands in copies where the changed files fail when they are
//! loaded. What is done to a file, which files go together and how long that goes on is decided in core
//! (`checks/loading/`); what it means, too (`run/belief/`).

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use cto_core::bundle::report::timings::Step;
use cto_core::checks::loading::named::{BuildFile, Named, is_build_file};
use cto_core::checks::loading::rounds::{self, Candidate, Round};
use cto_core::checks::loading::{File, Forms, Proves, Spoiled, forms, not_code};
use cto_core::checks::test_log::Section;
use cto_core::run::belief::seen::runs_what_it_builds;
use cto_core::run::belief::words::FileSeen;
use cto_core::run::belief::{CommandSeen, ControlSeen, Ended};
use cto_core::run::event::VerificationCompleted;
use cto_core::run::loaded::{LoadingFile, LoadingRound, LoadingRun, NotCode};
use cto_core::values::paths::TreePath;
use cto_core::workspace::change::ChangeKind;
use cto_core::workspace::tree::FileKind;

use super::copies::ReadyCopy;
use super::session::{Commands, Session};
use crate::run::execution::{Stop, random};
use crate::workspace::of_run::Contents;
use crate::workspace::on_disk;
use crate::workspace::private_copy::PrivateCopy;

/// What the suite may take where it fails, beside what it took: a broken import ends most of it at once.
const TIMES: u32 = 4;
const AT_LEAST: Duration = Duration::from_secs(30);

/// A changed file that a check has to see.
struct Changed {
    path: TreePath,
    kind: FileKind,
    forms: Forms,
}

impl Changed {
    fn form(&self, proves: Proves) -> Option<&Spoiled> {
        match proves {
            Proves::Loaded => self.forms.runs.as_ref(),
            Proves::Parsed => self.forms.breaks.as_ref(),
        }
    }
}

/// A loading control under way.
struct UnderLoad {
    changed: Vec<Changed>,
    candidates: Vec<Candidate>,
    /// Files that the table calls no code, if nobody notices them.
    perhaps: Vec<(usize, NotCode)>,
    /// How long one run of the commands took.
    suite_ms: u64,
    run: LoadingRun,
}

/// One round to be run.
struct Order<'o> {
    proves: Proves,
    files: &'o [usize],
    harmless: bool,
    single: bool,
    commands: &'o [String],
}

impl Session<'_> {
    /// Everything of the loading control. `done` is what the commands came to where nothing fails.
    pub fn loading(&mut self, done: &VerificationCompleted) -> Result<LoadingRun, Stop> {
        let since = Instant::now();
        let commands = &self.execution.plan.contract.verification_commands;
        let mut load = self.looked_over(done)?;
        let mut decided: Vec<(Round, bool)> = Vec::new();
        for round in rounds::together(&load.candidates) {
            let open: Vec<String> = match decided.is_empty() {
                true => commands.clone(),
                false => {
                    let seen = self.commands_seen(&load.run);
                    let open = rounds::again(&seen).into_iter();
                    open.filter_map(|index| commands.get(index).cloned())
                        .collect()
                }
            };
            if open.is_empty() {
                break;
            }
            let order = Order {
                proves: round.proves,
                files: &round.files,
                harmless: false,
                single: false,
                commands: &open,
            };
            let Some((ran, said)) = self.round(&mut load, &order)? else {
                return Ok(load.run);
            };
            let twins = wanting_a_twin(&ran, &said, &round, &load.changed);
            if !twins.is_empty() {
                let twin = Order {
                    harmless: true,
                    commands: &twins,
                    ..order
                };
                if self.round(&mut load, &twin)?.is_none() {
                    return Ok(load.run);
                }
            }
            decided.push((round, ran.is_red()));
        }
        self.singly(&mut load, &decided)?;
        load.settle(commands.len());
        self.times.push((Step::Loading, since.elapsed()));
        let copies = match load.run.rounds.len() {
            1 => "1 copy".to_owned(),
            copies => format!("{copies} copies"),
        };
        let stage = self.execution.stage;
        stage.tell(
            "loading",
            &format!("the change fails in {copies}"),
            since.elapsed(),
        );
        Ok(load.run)
    }

    /// Files one by one, as long as that may take.
    fn singly(&mut self, load: &mut UnderLoad, decided: &[(Round, bool)]) -> Result<(), Stop> {
        let commands = &self.execution.plan.contract.verification_commands;
        // Who noticed all of them will most likely notice one.
        let mut ordered = commands.clone();
        let was_red = |command: &String| {
            let mut rounds = load.run.rounds.iter().filter(|round| round.decides());
            rounds.any(|round| round.ended(command) == Some(Ended::Red))
        };
        ordered.sort_by_cached_key(|command| !was_red(command));
        let noticed = decided.iter().find(|(_, red)| *red);
        let (since, see_all) = (Instant::now(), self.execution.see_all);
        for index in rounds::singly(&load.candidates, decided) {
            let spent = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            if !rounds::goes_on(spent, load.suite_ms, see_all) {
                break;
            }
            let Some(changed) = load.changed.get(index) else {
                continue;
            };
            let together = noticed.filter(|(round, _)| round.files.contains(&index));
            let proves = together.map(|(round, _)| round.proves);
            let strongest = changed.forms.strongest().map(|form| form.proves);
            let Some(proves) = proves.or(strongest) else {
                continue;
            };
            let order = Order {
                proves,
                files: &[index],
                harmless: false,
                single: true,
                commands: &ordered,
            };
            if self.round(load, &order)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// What changed, why some of it need not be seen, and how the rest is made to fail.
    fn looked_over(&mut self, done: &VerificationCompleted) -> Result<UnderLoad, Stop> {
        let plan = self.execution.plan;
        let changes = &self.measured.changes;
        let paths: BTreeSet<&TreePath> = changes.iter().map(|change| &change.path).collect();
        let wanted = |path: &TreePath| paths.contains(path) || is_build_file(path);
        let before = self.workspace.contents(None, &wanted)?;
        let after = self.workspace.contents(Some(self.measured), &wanted)?;
        let named = self.named(&before, &after);
        let word = random(12)?;
        let (mut files, mut changed, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
        let mut perhaps = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let put_back = change.kind == ChangeKind::Deleted;
            let found = match put_back {
                true if self.is_taken(&change.path) => None,
                true => before.get(&change.path),
                false => after.get(&change.path),
            };
            let by_table = not_code::not_code(&change.path, &named);
            let excused = by_table.filter(|_| !not_code::is_tried(&change.path, &named));
            if excused.is_none() {
                perhaps.extend(by_table.map(|why| (index, why)));
            }
            let mut line = LoadingFile {
                path: change.path.clone(),
                not_code: excused,
                how: None,
                tells_how_to_run: rounds::tells_how_to_run(&change.path),
                put_back,
            };
            if let (None, Some((kind, bytes))) = (excused, found) {
                let file = File {
                    path: &change.path,
                    kind: *kind,
                    bytes,
                };
                let forms = forms(file, &word);
                line.how = forms.strongest().map(|form| form.how);
                candidates.push(Candidate {
                    weight: rounds::weight(file, &named, put_back),
                    forms: forms.clone(),
                });
                changed.push(Changed {
                    path: change.path.clone(),
                    kind: *kind,
                    forms,
                });
            }
            files.push(line);
        }
        let visible = done
            .checks
            .iter()
            .take(plan.contract.verification_commands.len());
        Ok(UnderLoad {
            changed,
            candidates,
            perhaps,
            suite_ms: visible.map(|check| check.duration_ms).sum(),
            run: LoadingRun {
                substance: not_code::substance(files.iter().map(|file| file.not_code)),
                files,
                rounds: Vec::new(),
                could_not_run: None,
            },
        })
    }

    /// Does something else stand where this file was: a directory, or a file in the place of one above?
    fn is_taken(&self, path: &TreePath) -> bool {
        let (tree, bytes) = (&self.measured.tree, path.as_bytes());
        let below = TreePath::new([bytes, b"/"].concat());
        let inside = tree.range(&below..).next();
        let is_directory =
            inside.is_some_and(|(path, _)| path.as_bytes().starts_with(below.as_bytes()));
        let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let above = |end: usize| {
            bytes
                .get(..end)
                .is_some_and(|dir| tree.contains_key(&TreePath::new(dir)))
        };
        is_directory || ends.any(|(end, _)| above(end))
    }

    /// What commands and build files name.
    fn named(&self, before: &Contents, after: &Contents) -> Named {
        let contract = &self.execution.plan.contract;
        let hidden = contract.hidden_verification.commands.iter();
        let shown = contract.setup.iter().chain(&contract.verification_commands);
        let texts: Vec<(&TreePath, String)> = before
            .iter()
            .chain(after)
            .filter(|(path, (kind, _))| is_build_file(path) && *kind != FileKind::Symlink)
            .map(|(path, (_, bytes))| (path, String::from_utf8_lossy(bytes).into_owned()))
            .collect();
        let build_files = texts.iter().map(|(path, text)| BuildFile { path, text });
        Named::by(shown.chain(hidden).map(String::as_str), build_files)
    }

    /// Whether the must-fail control turned a command red may not be known yet.
    fn commands_seen(&self, run: &LoadingRun) -> Vec<CommandSeen> {
        let contract = &self.execution.plan.contract;
        let seen = |(index, command): (usize, &String)| CommandSeen {
            control: ControlSeen::NotRun,
            loading: run.seen(command, runs_what_it_builds(contract, index)),
        };
        let commands = contract.verification_commands.iter();
        commands.enumerate().map(seen).collect()
    }

    /// Runs commands in a copy where some files fail, and what they said last. None where there is no
    /// such copy.
    fn round(
        &mut self,
        load: &mut UnderLoad,
        order: &Order<'_>,
    ) -> Result<Option<(LoadingRound, String)>, Stop> {
        let all = order
            .files
            .iter()
            .filter_map(|index| load.changed.get(*index));
        let spoiled: Vec<(&Changed, &[u8])> = all
            .filter_map(|file| {
                let form = file.form(order.proves)?;
                match order.harmless {
                    // What has no harmless form stays as it is.
                    true => Some((file, form.harmless.as_ref()?.as_slice())),
                    false => Some((file, form.bytes.as_slice())),
                }
            })
            .collect();
        let made = |index: &usize| {
            let file = load.changed.get(*index)?;
            file.form(order.proves).map(|_| file.path.clone())
        };
        let files: Vec<TreePath> = order.files.iter().filter_map(made).collect();
        let allowed = Duration::from_millis(load.suite_ms).saturating_mul(TIMES);
        let allowed = allowed.saturating_add(AT_LEAST);
        let what = Commands {
            until_red: order.single,
            wall: Some(allowed),
            ..self.visible_of(Section::Loading, order.commands)
        };
        let mut setup_failed = None;
        let done = self.settled(&what, &mut |session| {
            setup_failed = None;
            let mut ready = match session.with_failing(&spoiled)? {
                Ok(ready) => ready,
                Err(why) => return Ok(Err(why)),
            };
            session.log.say(heading(order));
            setup_failed = session.set_up(&mut ready)?;
            match &setup_failed {
                None => Ok(Ok(ready)),
                Some(_) => session.failing_after_setup(&spoiled),
            }
        })?;
        let (checks, said) = match done {
            // What one of several said is not known apart.
            Ok((_, ran)) if ran.checks.len() == 1 => (ran.checks, ran.recent.text()),
            Ok((_, ran)) => (ran.checks, String::new()),
            Err(_) if setup_failed.is_some() => (Vec::new(), String::new()),
            Err(why) => {
                self.log.say(&why);
                load.run.could_not_run = Some(why);
                return Ok(None);
            }
        };
        let round = LoadingRound {
            proves: order.proves,
            files,
            harmless: order.harmless,
            single: order.single,
            setup_failed,
            checks,
        };
        load.run.rounds.push(round.clone());
        Ok(Some((round, said)))
    }

    /// A pristine copy in which these files hold these bytes, before anything ran in it. Its times are
    /// those of the checks: what is stale for them is stale here.
    fn with_failing(
        &mut self,
        files: &[(&Changed, &[u8])],
    ) -> Result<Result<ReadyCopy, String>, Stop> {
        let name = self.new_name("loading");
        let copy = match self.workspace.pristine(&name, self.measured)? {
            Ok(copy) => copy,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        let put = put_all(&copy, files);
        let ready = self.furnished(copy, true)?;
        Ok(put.map(|()| ready))
    }

    /// The same where setup itself fails on them: it sees them as they are, the commands do not.
    fn failing_after_setup(
        &mut self,
        files: &[(&Changed, &[u8])],
    ) -> Result<Result<ReadyCopy, String>, Stop> {
        self.log
            .say("== loading control: setup failed there; once more, where they fail after it ==");
        Ok(match self.prepared("loading")? {
            Ok(ready) => put_all(&ready.copy, files).map(|()| ready),
            failed => failed,
        })
    }
}

impl UnderLoad {
    /// What the table calls no code is none, unless somebody noticed it.
    fn settle(&mut self, commands: usize) {
        for (index, why) in &self.perhaps {
            let path = self.run.files.get(*index).map(|file| file.path.clone());
            let seen = path.map(|path| self.run.file_seen(&path, commands));
            if let Some(file) = self.run.files.get_mut(*index)
                && seen != Some(FileSeen::Noticed)
            {
                file.not_code = Some(*why);
            }
        }
        let excused = self.run.files.iter().map(|file| file.not_code);
        self.run.substance = not_code::substance(excused);
    }
}

/// The commands of a round that may have been red by the look of the lines alone.
fn wanting_a_twin(
    ran: &LoadingRound,
    said: &str,
    round: &Round,
    changed: &[Changed],
) -> Vec<String> {
    let mut files = round.files.iter().filter_map(|index| changed.get(*index));
    let has_twin = files.any(|file| {
        let form = file.form(round.proves);
        form.is_some_and(|form| form.harmless.is_some())
    });
    let mut commands: Vec<String> = Vec::new();
    for check in ran.checks.iter().filter(|_| has_twin) {
        let ended = ran.ended(&check.command).unwrap_or(Ended::Green);
        let code = check.end.exit_code().map(i32::from);
        if rounds::wants_twin(ended, code, said) && !commands.contains(&check.command) {
            commands.push(check.command.clone());
        }
    }
    commands
}

fn heading(order: &Order<'_>) -> &'static str {
    match (order.harmless, order.single) {
        (true, _) => "== loading control: lines of the same look, which do nothing ==",
        (_, true) => "== loading control: one changed file fails when it is loaded ==",
        (false, false) => {
            "== loading control: the same commands, where the change fails when it is loaded =="
        }
    }
}

fn put_all(copy: &PrivateCopy, files: &[(&Changed, &[u8])]) -> Result<(), String> {
    let paths: Vec<TreePath> = files.iter().map(|(file, _)| file.path.clone()).collect();
    let put = copy.edit(&paths, |dir| {
        files
            .iter()
            .try_for_each(|(file, bytes)| put_one(dir, file, bytes))
    });
    put.flatten()
        .map_err(|error| format!("changed files cannot be made to fail: {error}"))
}

/// The copy holds what the engine made: no link in it is followed.
fn put_one(dir: &Path, file: &Changed, mut bytes: &[u8]) -> io::Result<()> {
    let place = on_disk::locate(dir, &file.path);
    match std::fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    on_disk::write_entry(dir, &file.path, file.kind, &mut bytes).map(drop)
}
