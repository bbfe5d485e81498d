//! Progress of a script: a named pipe in its folder, to which its process writes without blocking. Each line
//! has the fraction, and after a blank the message.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use super::super::log::{LogSink, MAX_MESSAGE};

/// Greatest length of an incomplete line; a fraction and a message are shorter.
const MAX_LINE: usize = MAX_MESSAGE + 64;

/// Longest wait for the last reports after the script's end. Only a process that left the group keeps the pipe open.
const DRAIN: Duration = Duration::from_secs(1);

/// Reader of the progress of one run.
#[derive(Debug)]
pub(super) struct Reports {
    /// Held, so that the pipe does not end before the run.
    open: pipe::Sender,
    task: AbortOnDropHandle<()>,
}

impl Reports {
    /// Creates the pipe, and forwards its reports.
    pub(super) fn listen(path: &Path, log: LogSink) -> io::Result<Self> {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let receiver = pipe::OpenOptions::new().open_receiver(path)?;
        let open = pipe::OpenOptions::new().open_sender(path)?;
        let task = AbortOnDropHandle::new(tokio::spawn(pass_on(receiver, log)));
        Ok(Self { open, task })
    }

    /// Forwards the last reports after the script has ended.
    pub(super) async fn end(self) {
        drop(self.open);
        let _ = tokio::time::timeout(DRAIN, self.task).await;
    }
}

async fn pass_on(mut pipe: pipe::Receiver, log: LogSink) {
    let (mut chunk, mut line) = ([0; 4096], Vec::new());
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        for byte in &chunk[..length] {
            match byte {
                b'\n' => {
                    pass_on_line(&line, &log);
                    line.clear();
                }
                byte if line.len() < MAX_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
}

/// Forwards one line. Malformed lines are ignored, since the bootstrap writes none.
fn pass_on_line(line: &[u8], log: &LogSink) {
    let line = String::from_utf8_lossy(line);
    let (fraction, message) = match line.split_once(' ') {
        Some((fraction, message)) => (fraction, Some(message)),
        None => (&*line, None),
    };
    if let Ok(fraction) = fraction.parse() {
        log.progress(fraction, message);
    }
}
