//! `cto __echo-door CMD…`: a command in a jail with a door, and an echo behind the door. The
//! gateway will stand there; this stands in for it.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use cto_core::operator::settings::Config;
use cto_jail::Door;

use crate::host::places::Places;
use crate::host::{Env, Home};
use crate::supervise::cancel::Cancel;
use crate::supervise::launch::Launch;
use crate::supervise::{self, SuperviseError};

/// Runs a command whose `CTO_DOOR` names the door; its exit code is ours.
pub fn play(command: &[OsString]) -> u8 {
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "echo door: {error}");
            125
        }
    }
}

fn run(command: &[OsString]) -> Result<u8, SuperviseError> {
    let watch = |source| SuperviseError::Watch { source };
    let [program, args @ ..] = command else {
        return Ok(125);
    };
    let own = std::env::current_exe().map_err(watch)?;
    let env = Env::of_process();
    let home = Home::find(None, None, &env, &Config::default())
        .map_err(|failure| watch(io::Error::other(failure.what)))?;
    let own = Places::of(&env, &home)
        .file(&own)
        .map_err(|refused| watch(io::Error::other(refused.to_string())))?;
    let launch = Launch::with_door(&own, program, args);
    let mut running = supervise::start(&launch)?;
    let door = running
        .take_door()
        .ok_or_else(|| watch(io::Error::other("the jail passed no door out")))?;
    std::thread::spawn(move || echo(&door));
    let ended = running.finish(&Cancel::never().map_err(watch)?, &mut |_, _| {})?;
    Ok(ended.end.exit_code().unwrap_or(125))
}

/// Answers every connection with what it said.
fn echo(door: &Door) {
    for stream in door.listener.incoming().flatten() {
        let mut stream = stream;
        let mut buffer = [0u8; 4096];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
    }
}
