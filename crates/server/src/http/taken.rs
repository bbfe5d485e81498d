//! A stream whose other side has to take bytes: one that takes nothing for ten seconds is closed, so that it keeps no answer in
//! memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest time without a byte that the other side takes, while some wait for it.
const TAKES_WITHIN: Duration = Duration::from_secs(10);

/// The stream.
#[derive(Debug)]
pub(super) struct Taken<S> {
    stream: S,
    within: Duration,
    /// Runs while bytes wait.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Taken<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            within: TAKES_WITHIN,
            waits: None,
        }
    }

    /// Passes a result on, and fails after a long wait for one.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waits = None;
            return result;
        }
        let within = self.within;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(within)));
        waits
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.in_time(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.in_time(context, shut)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, buffers);
        this.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_side_that_takes_nothing_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(4);
        let mut taken = Taken::new(ours);
        taken.within = Duration::from_millis(100);
        let reads = async {
            let mut came = [0; 12];
            theirs.read_exact(&mut came).await.unwrap();
            (came, theirs)
        };
        let (written, (came, _theirs)) = tokio::join!(taken.write_all(b"twelve bytes"), reads);
        written.unwrap();
        assert_eq!(&came, b"twelve bytes");
        let failed = taken.write_all(b"five!").await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }
}
