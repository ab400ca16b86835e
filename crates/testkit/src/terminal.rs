//! A terminal of a chosen width, to see what a person would see.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::house::{Answer, House};

impl House {
    /// Runs the real binary with both outputs on a terminal; `stdout` holds all that was drawn.
    pub fn on_terminal(&self, columns: u16, args: &[&str]) -> Answer {
        let mut command = self.command(args);
        command.env("TERM", "xterm-256color");
        watch(command, columns)
    }
}

/// Runs any command on a terminal of its own.
pub fn watch(command: Command, columns: u16) -> Answer {
    on_screen(command, columns, None)
}

/// The same with a person who has already typed these lines.
pub fn converse(command: Command, typed: &str) -> Answer {
    on_screen(command, 100, Some(typed))
}

fn on_screen(mut command: Command, columns: u16, typed: Option<&str>) -> Answer {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    tcsetwinsize(
        &screen,
        Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
    .unwrap();
    let line = OpenOptions::new()
        .read(true)
        .write(true)
        .open(std::ffi::OsStr::from_bytes(name.as_bytes()))
        .unwrap();
    if let Some(typed) = typed {
        command.stdin(Stdio::from(line.try_clone().unwrap()));
        // As a shell starts what a person types: a job of its own.
        command.process_group(0);
        // What is typed waits in the terminal until somebody reads it.
        rustix::io::write(&screen, typed.as_bytes()).unwrap();
    }
    let mut child = command
        .stdout(Stdio::from(line.try_clone().unwrap()))
        .stderr(Stdio::from(line))
        .spawn()
        .unwrap();
    // The terminal ends when its last holder does, and we would be one.
    drop(command);
    let mut seen = Vec::new();
    let mut screen = std::fs::File::from(screen);
    let mut buffer = [0u8; 4096];
    // A terminal without holders reads as an error, not as an end.
    while let Ok(count @ 1..) = screen.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..count]);
    }
    let code = child.wait().unwrap().code();
    Answer {
        code,
        stdout: String::from_utf8_lossy(&seen).replace("\r\n", "\n"),
        stderr: String::new(),
    }
}

/// What is left to read once styles are taken out.
pub fn without_styles(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            plain => out.push(plain),
        }
    }
    out
}
