//! Work on a thread of its own while a person waits, who may give it up at once. What is given up
//! finds its leash cut and ends by itself; nothing more is sent.

use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the person is asked whether they still want it.
const BEAT: Duration = Duration::from_millis(40);

/// It was not waited for to the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GivenUp {
    #[error("it was given up")]
    Cancelled,
    #[error("the request could not be made on this machine")]
    NotStarted,
}

/// Runs `work` until it is done or `still`, told how long it has taken, says no.
pub fn attended<T: Send + 'static>(
    work: impl FnOnce(&UnixStream) -> T + Send + 'static,
    still: &mut dyn FnMut(Duration) -> bool,
) -> Result<T, GivenUp> {
    let begun = Instant::now();
    let (ours, leash) = UnixStream::pair().map_err(|_| GivenUp::NotStarted)?;
    let (done, finished) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("endpoint".into())
        .spawn(move || {
            // Nobody may be there any more.
            let _ = done.send(work(&leash));
        })
        .map_err(|_| GivenUp::NotStarted)?;
    loop {
        match finished.recv_timeout(BEAT) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Disconnected) => return Err(GivenUp::NotStarted),
            Err(RecvTimeoutError::Timeout) if still(begun.elapsed()) => {}
            Err(RecvTimeoutError::Timeout) => {
                drop(ours);
                return Err(GivenUp::Cancelled);
            }
        }
    }
}
