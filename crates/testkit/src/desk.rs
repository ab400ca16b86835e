//! A person at a terminal with a shell, for tests of what only happens there: keys, stops,
//! hang-ups, sizes.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, OutputModes, Winsize, tcgetattr, tcsetwinsize};

/// A person at a terminal, with a shell that has job control. What is typed arrives as keys; what
/// is shown is read as it comes.
pub struct Desk {
    screen: Arc<OwnedFd>,
    shown: Receiver<Vec<u8>>,
    unread: String,
    child: Child,
    reader: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

/// What the shell of a desk says when it waits for a line.
const PROMPT: &str = "ready> ";

impl Desk {
    /// Sits down: `who` are the words before the shell (to become somebody else, or none), `cto` is
    /// the program that `$cto` names.
    pub fn new(who: &[&str], cto: &Path, dir: &Path, home: &Path) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let screen = openpt(flags).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let line = ioctl_tiocgptpeer(&screen, flags).unwrap();
        // Lines may be longer than the screen: nothing is wrapped, because nothing draws.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .args(who)
            .args(["bash", "--norc", "--noprofile", "--noediting", "-i"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("TERM", "dumb")
            .env("PS1", PROMPT)
            .env("cto", cto)
            .current_dir(dir)
            .stdin(Stdio::from(line.try_clone().unwrap()))
            .stdout(Stdio::from(line.try_clone().unwrap()))
            .stderr(Stdio::from(line));
        let child = command.spawn().unwrap();
        drop(command);
        let screen = Arc::new(screen);
        let (tell, shown) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (from, over) = (screen.clone(), is_over.clone());
        // Read at all times: a screen that nobody looks at stops whoever draws.
        let reader = std::thread::spawn(move || {
            let mut buffer = [0u8; 64 << 10];
            while !over.load(Ordering::SeqCst) {
                let mut fds = [PollFd::new(&*from, PollFlags::IN)];
                let wait = Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                if !matches!(poll(&mut fds, Some(&wait)), Ok(1)) {
                    continue;
                }
                match rustix::io::read(&*from, &mut buffer) {
                    Ok(count @ 1..) if tell.send(buffer[..count].to_vec()).is_ok() => {}
                    _ => break,
                }
            }
        });
        let mut desk = Self {
            screen,
            shown,
            unread: String::new(),
            child,
            reader: Some(reader),
            is_over,
        };
        desk.sees(PROMPT);
        desk
    }

    /// Types; what does not fit waits until somebody reads.
    pub fn types(&self, keys: impl Into<Vec<u8>>) {
        let (screen, keys) = (self.screen.clone(), keys.into());
        if keys.len() < 1024 {
            rustix::io::write(&*screen, &keys).unwrap();
            return;
        }
        std::thread::spawn(move || {
            let mut rest = keys.as_slice();
            while let Ok(count @ 1..) = rustix::io::write(&*screen, rest) {
                rest = &rest[count..];
            }
        });
    }

    /// Waits until this is shown, and gives everything that was shown before it.
    pub fn sees(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.unread.find(text) {
                let rest = self.unread.split_off(at + text.len());
                let mut before = std::mem::replace(&mut self.unread, rest);
                before.truncate(at);
                return before;
            }
            match self.shown.recv_timeout(Duration::from_secs(60)) {
                Ok(more) => {
                    let more = String::from_utf8_lossy(&more).replace('\r', "");
                    self.unread.push_str(&more);
                }
                Err(_) => panic!("{text:?} was not shown: {:?}", self.unread),
            }
        }
    }

    /// A line for the shell, and what it shows until it waits for the next one.
    pub fn line(&mut self, line: &str) -> String {
        self.types(format!("{line}\n"));
        // The line itself is shown, too.
        self.sees("\n");
        self.sees(PROMPT)
    }

    /// Types a line that starts something, and waits until that says so.
    pub fn starts(&mut self, line: &str, up: &str) {
        self.types(format!("{line}\n"));
        self.sees("\n");
        self.sees(up);
    }

    pub fn prompt(&mut self) -> String {
        self.sees(PROMPT)
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&*self.screen, size).unwrap();
    }

    /// Does the terminal edit lines, echo them and turn keys into signals, as before anything ran?
    pub fn is_as_found(&self) -> bool {
        let modes = tcgetattr(&*self.screen).unwrap();
        let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        modes.local_modes.contains(usual)
            && !modes.local_modes.contains(LocalModes::EXTPROC)
            && modes
                .output_modes
                .contains(OutputModes::OPOST | OutputModes::ONLCR)
            && modes.line_discipline == 0
    }

    /// Takes the terminal away, as a connection that breaks does: its last reader lets go.
    pub fn hangs_up(self) {}

    fn let_go(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.reader.take().map(JoinHandle::join);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.let_go();
        // What is left of the terminal; the kernel tells its session.
        let null = std::fs::File::open("/dev/null").unwrap();
        self.screen = Arc::new(OwnedFd::from(null));
        let _ = self.child.wait();
    }
}
