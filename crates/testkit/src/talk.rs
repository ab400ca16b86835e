//! A person at a terminal who reads before typing: each question that appears gets its answer.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::house::Answer;

/// Nobody waits longer for the next sign of life.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a command on a terminal of its own and types the answer whenever the words of its question have
/// appeared since the last one. Words that no question has are never typed.
pub fn talk(command: Command, columns: u16, answers: &[(&str, &str)]) -> Answer {
    let (child, screen) = opened(command, columns);
    let heard = listen(screen.try_clone().unwrap());
    conversation(child, screen, &heard, answers)
}

fn opened(mut command: Command, columns: u16) -> (std::process::Child, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&screen, size).unwrap();
    let line = OpenOptions::new()
        .read(true)
        .write(true)
        .open(std::ffi::OsStr::from_bytes(name.as_bytes()))
        .unwrap();
    let child = command
        .env("TERM", "xterm-256color")
        .process_group(0)
        .stdin(Stdio::from(line.try_clone().unwrap()))
        .stdout(Stdio::from(line.try_clone().unwrap()))
        .stderr(Stdio::from(line))
        .spawn()
        .unwrap();
    // The terminal ends when its last holder does; `command` goes with this function.
    (child, File::from(screen))
}

fn listen(mut screen: File) -> Receiver<Vec<u8>> {
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0u8; 4096];
        // A terminal without holders reads as an error, not as an end.
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            if tell.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    heard
}

fn conversation(
    mut child: std::process::Child,
    mut screen: File,
    heard: &Receiver<Vec<u8>>,
    answers: &[(&str, &str)],
) -> Answer {
    let (mut seen, mut answered) = (Vec::new(), 0);
    loop {
        match heard.recv_timeout(PATIENCE) {
            Ok(bytes) => seen.extend_from_slice(&bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("nothing more came: {}", String::from_utf8_lossy(&seen));
            }
        }
        let new = String::from_utf8_lossy(&seen[answered..]).into_owned();
        let asked = |question: &str| new.contains(question);
        if let Some((_, answer)) = answers.iter().find(|(question, _)| asked(question)) {
            answered = seen.len();
            screen.write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
    }
    Answer {
        code: child.wait().unwrap().code(),
        stdout: String::from_utf8_lossy(&seen).replace("\r\n", "\n"),
        stderr: String::new(),
    }
}
