//! The key `q`, which ends what a command shows on a terminal as Ctrl-C does. The terminal then gives each key at once and
//! prints none; it is as before at the end, and while the command is stopped by Ctrl-Z.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal as Number, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::can_draw;

/// The modes of the terminal before, while keys are read. The thread of signals restores them too.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Pause of the reader while another command has the terminal.
const AWAY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Reads keys until it is dropped.
pub(crate) struct Keys {
    stopped: Signal,
}

impl Keys {
    /// Reads keys if stdin is a terminal, and this command is in its foreground.
    pub(crate) fn listen() -> io::Result<Self> {
        let stopped = signal(SignalKind::from_raw(Number::TSTP.as_raw()))?;
        if io::stdin().is_terminal() && has_terminal() {
            set()?;
            thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        }
        Ok(Self { stopped })
    }

    /// Returns at Ctrl-Z; the caller then calls [`Self::suspend`].
    pub(crate) async fn suspended(&mut self) {
        self.stopped.recv().await;
    }

    /// Stops this process, with the terminal as it was, until it is continued.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        let reads = restore();
        kill_process(getpid(), Number::STOP)?;
        match reads && has_terminal() {
            true => set(),
            false => Ok(()),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Waits for what is drawn on stderr, while `q` acts as Ctrl-C.
pub(crate) async fn with_keys<T>(wait: impl Future<Output = T>) -> T {
    let keys = can_draw(&io::stderr()).then(Keys::listen);
    // A terminal that is gone has no keys.
    let Some(Ok(mut keys)) = keys else {
        return wait.await;
    };
    let mut wait = std::pin::pin!(wait);
    loop {
        tokio::select! {
            ended = &mut wait => return ended,
            () = keys.suspended() => { keys.suspend().ok(); }
        }
    }
}

/// Restores the modes of the terminal. Returns false if keys were not read.
pub(crate) fn restore() -> bool {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A failure means that the terminal is gone.
    before.is_some_and(|modes| tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok())
}

/// Returns true if this command may read from the terminal and change its modes; others would be stopped.
fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp())
}

/// Makes the terminal give each key at once, without an echo.
fn set() -> io::Result<()> {
    let mut modes = tcgetattr(io::stdin())?;
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    before.get_or_insert_with(|| modes.clone());
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, &modes)?)
}

/// Reads keys up to `q`, which it turns into the signal of Ctrl-C.
fn read() {
    let stdin = io::stdin();
    let mut key = [0];
    loop {
        // A read in the background would stop this command, and take what others are to read.
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
        match ready {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if !has_terminal() => {
                poll(&mut [], Some(&AWAY)).ok();
                continue;
            }
            Ok(_) => {}
            Err(_) => return,
        }
        match rustix::io::read(&stdin, &mut key) {
            Ok(1) if key == *b"q" => {
                _ = kill_process(getpid(), Number::INT);
                return;
            }
            Ok(1) => {}
            _ => return,
        }
    }
}
