//! The two directions of one connection, moved on together: what comes in is buffered while
//! replies wait to go out, so that a client which sends a long pipeline before it reads the first
//! reply does not stand still with us.

use std::{io, pin::pin, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// Read at a time.
const READ_CHUNK: usize = 16 * 1024;
/// Buffers larger than this are given back when they are empty.
const KEPT_BUFFER: usize = 1024 * 1024;
/// Replies that may wait for a client to take them. Beyond, we neither read nor run its commands
/// until it has taken them. One reply more may lie here, so that it need not be cut in pieces.
pub(super) const MAX_REPLIES: usize = 64 * 1024 * 1024;
/// Pushed messages that may wait. Beyond, they stay with the session, which ends when it has too
/// many.
pub(super) const MAX_PUSHES: usize = 1024 * 1024;
/// Commands that a client may send behind one that waits. Beyond, its hanging up is noticed only
/// when the wait is over.
const MAX_INPUT_WAITING: usize = 1024 * 1024;
/// A client that takes nothing for so long, while we wait for it, is cut off.
const STALL: Duration = Duration::from_secs(60);
/// How often we look meanwhile whether it has been killed.
const LOOK: Duration = Duration::from_secs(1);

/// A connection's streams and what is buffered between them and us.
pub(super) struct Wire<R, W> {
    reader: R,
    writer: W,
    pub(super) input: BytesMut,
    output: Vec<u8>,
    /// How much of `output` has gone out.
    sent: usize,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self {
            reader,
            writer,
            input: BytesMut::new(),
            output: Vec::new(),
            sent: 0,
        }
    }

    /// Where replies are put.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Waits until a piece has been read or written. The end of the stream is an error.
    pub(super) async fn progress(&mut self, max_input: usize) -> io::Result<()> {
        let unsent = &self.output[self.sent..];
        let readable = self.input.len() < max_input;
        if readable {
            if self.input.is_empty() && self.input.capacity() > KEPT_BUFFER {
                self.input = BytesMut::new();
            }
            self.input.reserve(READ_CHUNK);
        }
        tokio::select! {
            biased;
            written = self.writer.write(unsent), if !unsent.is_empty() => {
                self.took(written?)
            }
            read = self.reader.read_buf(&mut self.input), if readable => match read? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            },
            // Nothing to write and no room to read.
            () = std::future::pending(), if unsent.is_empty() && !readable => Ok(()),
        }
    }

    /// Waits for `event` while bytes go on moving; an error when the client has gone meanwhile.
    pub(super) async fn until<F: Future>(&mut self, event: F) -> io::Result<F::Output> {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                biased;
                outcome = &mut event => return Ok(outcome),
                moved = self.progress(MAX_INPUT_WAITING) => moved?,
            }
        }
    }

    /// Where more than `max` bytes wait: waits until the client has taken them, or until `over`.
    pub(super) async fn make_room(
        &mut self,
        max: usize,
        over: impl Fn() -> bool,
    ) -> io::Result<()> {
        if self.output.len() - self.sent <= max {
            Ok(())
        } else {
            self.flush(over).await
        }
    }

    /// Writes all that waits; an error when the client takes nothing for too long, or it is `over`
    /// while it takes nothing.
    pub(super) async fn flush(&mut self, over: impl Fn() -> bool) -> io::Result<()> {
        let mut stalled = Duration::ZERO;
        while self.sent < self.output.len() {
            match timeout(LOOK, self.writer.write(&self.output[self.sent..])).await {
                Ok(written) => {
                    self.took(written?)?;
                    stalled = Duration::ZERO;
                }
                Err(_) => {
                    stalled += LOOK;
                    if stalled >= STALL || over() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
            }
        }
        self.writer.flush().await
    }

    fn took(&mut self, written: usize) -> io::Result<()> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.sent += written;
        if self.sent == self.output.len() {
            self.output.clear();
            self.output.shrink_to(KEPT_BUFFER);
            self.sent = 0;
        } else if self.sent > self.output.len() / 2 && self.sent > KEPT_BUFFER {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}
