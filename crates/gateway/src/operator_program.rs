//! Runs a program of the operator (one that signs, or prints a credential) with a deadline and a
//! limit on its output. Which file that is, and what it is told, was decided before. It gets a process group of its own; when it is too slow or prints too much,
//! the whole group is killed, so that nothing it started outlives it. A process that moved itself
//! into another group is not found.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::timespec;

/// How long the program may take, and how many bytes it may print.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub time: Duration,
    pub output_bytes: usize,
}

/// A program that may run outside a jail, and everything it is started with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperatorProgram {
    /// The file itself: no name to be searched for, and no link.
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// All it is told; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why there is no output. Holds nothing the program printed. Each text follows the program's name.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("could not be started: {0}")]
    NotStarted(io::Error),
    #[error("could not be talked to: {0}")]
    Broken(io::Error),
    #[error("gave no answer within {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    #[error("printed more than {0} bytes")]
    TooMuchOutput(usize),
    #[error("ended with {0}")]
    Failed(ExitStatus),
}

/// Starts the program with the operator's standard error, writes `input` to its standard input and
/// returns what it printed. The program must end by itself, and with success. It starts in the root
/// directory: many programs obey files of the directory they are started in.
pub fn run(
    program: &OperatorProgram,
    input: &[u8],
    limits: Limits,
) -> Result<Vec<u8>, ProgramError> {
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .env_clear()
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()
        .map_err(ProgramError::NotStarted)?;
    let output = converse(&mut child, input, limits);
    if output.is_err() {
        // Before the program is waited for: until then its id cannot name another group.
        kill_group(&mut child);
    }
    let status = child.wait().map_err(ProgramError::Broken)?;
    match output {
        Ok(_) if !status.success() => Err(ProgramError::Failed(status)),
        output => output,
    }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the process id is out of range"))
}

fn kill_group(child: &mut Child) {
    if let Ok(pid) = pid_of(child) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let _ = child.kill();
}

/// Writes and reads as the pipes allow until the output is closed, then waits for the end. A
/// process it left behind may hold the output open: that counts as no answer.
fn converse(child: &mut Child, input: &[u8], limits: Limits) -> Result<Vec<u8>, ProgramError> {
    let deadline = Instant::now() + limits.time;
    let mut to_program = ToProgram::new(child.stdin.take(), input).map_err(ProgramError::Broken)?;
    let mut stdout = child.stdout.take();
    let mut output = Vec::new();
    while let Some(pipe) = &stdout {
        let mut fds = vec![PollFd::new(pipe, PollFlags::IN)];
        if let Some(pipe) = &to_program.pipe {
            fds.push(PollFd::new(pipe, PollFlags::OUT));
        }
        wait_for(&mut fds, deadline, limits)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let (has_output, takes_input) = (is_ready(0), is_ready(1));
        if has_output {
            read_some(&mut stdout, &mut output).map_err(ProgramError::Broken)?;
        }
        if output.len() > limits.output_bytes {
            return Err(ProgramError::TooMuchOutput(limits.output_bytes));
        }
        if takes_input {
            to_program.write_some();
        }
    }
    drop(to_program);
    let pid = pid_of(child).map_err(ProgramError::Broken)?;
    let end = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| ProgramError::Broken(e.into()))?;
    let mut fds = [PollFd::new(&end, PollFlags::IN)];
    while fds[0].revents().is_empty() {
        wait_for(&mut fds, deadline, limits)?;
    }
    Ok(output)
}

fn wait_for(fds: &mut [PollFd<'_>], deadline: Instant, limits: Limits) -> Result<(), ProgramError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ProgramError::TooSlow(limits.time));
    }
    match poll(fds, Some(&timespec(left))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(ProgramError::Broken(error.into())),
    }
}

/// The program's standard input and what is still to be written to it.
struct ToProgram<'a> {
    pipe: Option<ChildStdin>,
    rest: &'a [u8],
}

impl<'a> ToProgram<'a> {
    fn new(pipe: Option<ChildStdin>, input: &'a [u8]) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self {
            pipe: pipe.filter(|_| !input.is_empty()),
            rest: input,
        })
    }

    /// A program that does not read to the end may still answer, so a failed write is no error.
    fn write_some(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(self.rest) {
            Ok(written) => self.rest = &self.rest[written..],
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.rest = &[],
        }
        if self.rest.is_empty() {
            self.pipe = None;
        }
    }
}

fn read_some(stdout: &mut Option<ChildStdout>, output: &mut Vec<u8>) -> io::Result<()> {
    let Some(pipe) = stdout else { return Ok(()) };
    let mut buffer = [0u8; 4096];
    match pipe.read(&mut buffer) {
        Ok(0) => *stdout = None,
        Ok(read) => output.extend_from_slice(&buffer[..read]),
        Err(error) if error.kind() == ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// A program that ignores SIGTERM, and so does the child it starts. Both write their ids into
    /// files of a directory.
    pub(crate) fn stubborn_script(dir: &Path) -> String {
        let dir = dir.display();
        format!(
            "trap '' TERM; sleep 60 & echo $! >{dir}/child; echo $$ >{dir}/program; wait; sleep 60"
        )
    }

    /// Which of the processes that wrote their ids there still run. A killed one may stay a zombie
    /// where nobody reaps orphans.
    pub(crate) fn still_running(dir: &Path) -> Vec<String> {
        let runs = |pid: &str| {
            fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                .is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
        };
        let files = fs::read_dir(dir).unwrap().flatten();
        let pids: Vec<String> = files
            .map(|file| fs::read_to_string(file.path()).unwrap())
            .collect();
        assert!(!pids.is_empty(), "nothing was started");
        // A killed process needs a moment to be gone.
        for _ in 0..200 {
            if !pids.iter().any(|pid| runs(pid)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        pids.into_iter().filter(|pid| runs(pid)).collect()
    }

    pub(crate) fn script(text: &str) -> OperatorProgram {
        OperatorProgram {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), text.into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }
    }

    fn shell(text: &str, input: &[u8], limits: Limits) -> Result<Vec<u8>, ProgramError> {
        run(&script(text), input, limits)
    }

    const WIDE: Limits = Limits {
        time: Duration::from_secs(20),
        output_bytes: 1 << 20,
    };

    #[test]
    fn input_goes_in_and_output_comes_out() {
        let large = vec![b'x'; 500_000];
        assert_eq!(
            shell("cat", &large, WIDE).unwrap(),
            large,
            "both pipes fill"
        );
        assert_eq!(shell("echo a", &large, WIDE).unwrap(), b"a\n", "unread");
        assert_eq!(shell("cat", b"", WIDE).unwrap(), b"");
        assert_eq!(shell("pwd; echo $HOME", b"", WIDE).unwrap(), b"/\n\n");
        let missing = OperatorProgram {
            path: "/nonexistent/x".into(),
            ..script("")
        };
        for (result, want) in [
            (shell("exit 3", b"", WIDE), "ended with"),
            (run(&missing, b"", WIDE), "could not be started"),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn a_slow_program_and_what_it_started_are_killed() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            time: Duration::from_millis(500),
            ..WIDE
        };
        let script = stubborn_script(dir.path());
        let error = shell(&script, b"", limits).unwrap_err();
        assert!(matches!(error, ProgramError::TooSlow(_)), "{error}");
        assert_eq!(still_running(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn a_program_that_prints_too_much_is_killed_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            output_bytes: 100,
            ..WIDE
        };
        let begun = Instant::now();
        let script = format!("echo $$ >{}/program; yes", dir.path().display());
        let error = shell(&script, b"", limits).unwrap_err();
        assert_eq!(error.to_string(), "printed more than 100 bytes");
        assert!(begun.elapsed() < WIDE.time / 2);
        assert_eq!(still_running(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn a_child_that_keeps_the_output_open_is_killed_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            time: Duration::from_millis(500),
            ..WIDE
        };
        let pid = dir.path().join("child");
        let script = format!("sleep 60 & echo $! >{}; echo done", pid.display());
        let error = shell(&script, b"", limits).unwrap_err();
        assert!(matches!(error, ProgramError::TooSlow(_)), "{error}");
        assert_eq!(still_running(dir.path()), Vec::<String>::new());
    }
}
