//! Both directions of one connection, driven together: input is buffered while replies wait to be sent. A client that
//! sends a long pipeline before it reads the first reply therefore does not deadlock.

use std::{io, pin::pin, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// Bytes in one read.
const READ_CHUNK: usize = 16 * 1024;
/// Size from which empty buffers are freed.
const KEPT_BUFFER: usize = 1024 * 1024;
/// Greatest length of pending replies in bytes. Beyond it, no commands of the client are read or run until it has
/// read them. One more reply may be pending, so that replies are not split.
pub(super) const MAX_REPLIES: usize = 64 * 1024 * 1024;
/// Greatest length of pending pushed messages. Beyond it, they stay in the session, which ends if they are too many.
pub(super) const MAX_PUSHES: usize = 1024 * 1024;
/// Greatest length of commands behind a blocked one. Beyond it, a disconnect is noticed only after the wait.
const MAX_INPUT_WAITING: usize = 1024 * 1024;
/// Time after which a client that reads nothing is disconnected, while the server waits for it.
const STALL: Duration = Duration::from_secs(60);
/// Interval of checks whether it was killed meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// The streams of a connection and their buffers.
pub(super) struct Wire<R, W> {
    reader: R,
    writer: W,
    pub(super) input: BytesMut,
    output: Vec<u8>,
    /// Number of bytes of `output` that were sent.
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

    /// Returns the buffer for replies.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Waits until a piece was read or written. The end of the stream is an error.
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
            // Nothing to write and no space to read.
            () = std::future::pending(), if unsent.is_empty() && !readable => Ok(()),
        }
    }

    /// Waits for `event` while bytes move on; an error if the client disconnects meanwhile.
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

    /// If more than `max` bytes are pending, waits until the client has read them, or until `over`.
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

    /// Writes all pending bytes; an error if the client reads nothing for too long, or if it reads nothing and is
    /// `over`.
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
