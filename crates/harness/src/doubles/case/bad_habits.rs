//! What a real Case was seen to do by itself, whatever its model says: heartbeats on standard output, and staying when all is
//! done. A double has no reasons of its own for the second: the word `double` of a result asks for it, which a real one does
//! not know and does not heed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

const HEARTBEAT: Duration = Duration::from_secs(10);
const RESTLESS: Duration = Duration::from_millis(100);

static IS_RESTLESS: AtomicBool = AtomicBool::new(false);
static HANGS: AtomicBool = AtomicBool::new(false);
static LINGERS: AtomicBool = AtomicBool::new(false);

/// `restless` heartbeats that come often; `hangs` stays before its pipeline has ended, `lingers` after that.
pub fn take_up(result: &Value) {
    for word in result["double"].as_array().into_iter().flatten() {
        let habit = match word.as_str() {
            Some("restless") => &IS_RESTLESS,
            Some("hangs") => &HANGS,
            Some("lingers") => &LINGERS,
            _ => continue,
        };
        habit.store(true, Ordering::Relaxed);
    }
}

/// Whether it works or not.
pub fn begin_heartbeats() {
    thread::spawn(|| {
        let mut waited = Duration::ZERO;
        loop {
            thread::sleep(RESTLESS);
            waited += RESTLESS;
            if waited >= HEARTBEAT || IS_RESTLESS.load(Ordering::Relaxed) {
                waited = Duration::ZERO;
                super::say("still working");
            }
        }
    });
}

pub fn before_the_end() {
    stay_if(&HANGS);
}

pub fn after_the_end() {
    stay_if(&LINGERS);
}

fn stay_if(habit: &AtomicBool) {
    while habit.load(Ordering::Relaxed) {
        thread::sleep(HEARTBEAT);
    }
}
