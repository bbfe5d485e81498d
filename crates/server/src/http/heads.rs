//! Finds a request with two lengths, `content-length` and `transfer-encoding`. A proxy and this server could take
//! different ones, and so see different requests; hyper drops one without a word.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use httparse::{EMPTY_HEADER, Request, Status};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::HEAD;

/// Greatest number of headers, as in hyper.
const MAX_HEADERS: usize = 100;

/// Marks a request with two lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoLengths;

/// The request with two lengths that a connection has had, by its number from 1; 0: none.
#[derive(Debug, Default)]
pub(super) struct Found(AtomicU64);

impl Found {
    /// Returns true if the request of this number has two lengths.
    pub(super) fn is(&self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }
}

/// A stream whose heads of requests are looked at while they are read.
#[derive(Debug)]
pub(super) struct Heads<S> {
    stream: S,
    state: State,
    /// Number of whole heads so far.
    number: u64,
    found: Arc<Found>,
}

#[derive(Debug)]
enum State {
    /// Bytes of the next head.
    Head(Vec<u8>),
    /// Bytes that are left of a body.
    Body(u64),
    /// No further request follows: the server closes the connection after one with a transfer encoding.
    Off,
}

/// The part of a head that decides on its body.
enum Length {
    /// The body has this length.
    Known(u64),
    /// The body has a transfer encoding, or the connection changes its protocol.
    Unknown,
    Two,
}

impl<S> Heads<S> {
    pub(super) fn new(stream: S) -> (Self, Arc<Found>) {
        let found = Arc::<Found>::default();
        let heads = Self {
            stream,
            state: State::Head(Vec::new()),
            number: 0,
            found: Arc::clone(&found),
        };
        (heads, found)
    }

    fn look(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Off => return,
                State::Body(left) => {
                    let skipped = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len());
                    *left -= skipped as u64;
                    bytes = &bytes[skipped..];
                    if *left == 0 {
                        self.state = State::Head(Vec::new());
                    }
                }
                State::Head(head) => {
                    let before = head.len();
                    head.extend_from_slice(bytes);
                    let Some((end, length)) = length(head) else {
                        // Hyper refuses a longer head.
                        if head.len() > HEAD {
                            self.state = State::Off;
                        }
                        return;
                    };
                    bytes = &bytes[end.saturating_sub(before)..];
                    self.number += 1;
                    self.state = match length {
                        Length::Known(0) => State::Head(Vec::new()),
                        Length::Known(length) => State::Body(length),
                        Length::Unknown => State::Off,
                        Length::Two => {
                            self.found.0.store(self.number, Ordering::Relaxed);
                            State::Off
                        }
                    };
                }
            }
        }
    }
}

/// Returns the end of a whole head, and the length of its body. What hyper refuses has no request behind it.
fn length(head: &[u8]) -> Option<(usize, Length)> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    let end = match request.parse(head) {
        Ok(Status::Complete(end)) => end,
        Ok(Status::Partial) => return None,
        Err(_) => return Some((head.len(), Length::Unknown)),
    };
    let value = |name: &str| {
        let named = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        request
            .headers
            .iter()
            .find(named)
            .map(|header| header.value)
    };
    let coded = value(TRANSFER_ENCODING.as_str()).is_some();
    let length = match value(CONTENT_LENGTH.as_str()) {
        Some(_) if coded => Length::Two,
        _ if coded || value(UPGRADE.as_str()).is_some() => Length::Unknown,
        None => Length::Known(0),
        Some(value) => {
            let number = std::str::from_utf8(value).ok();
            let number = number.and_then(|text| text.trim().parse().ok());
            number.map_or(Length::Unknown, Length::Known)
        }
    };
    Some((end, length))
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.look(&buffer.filled()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, piece: usize) -> u64 {
        let (mut heads, found) = Heads::new(());
        for bytes in text.as_bytes().chunks(piece) {
            heads.look(bytes);
        }
        found.0.load(Ordering::Relaxed)
    }

    #[test]
    fn two_lengths_are_found_in_any_request_however_it_is_cut() {
        let post = "POST / HTTP/1.1\r\nhost: a\r\n";
        let both = format!("{post}Content-Length: 5\r\nTRANSFER-ENCODING: chunked\r\n\r\n");
        let other = format!("{post}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n");
        let first = format!("{post}content-length: 70\r\n\r\n{}", "x".repeat(70));
        let get = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        for piece in [1, 2, 7, 1000] {
            for (text, number) in [
                (both.clone(), 1),
                (other.clone(), 1),
                (format!("{first}{get}{both}"), 3),
                (format!("{first}{get}"), 0),
                (
                    format!("{post}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
                    0,
                ),
                // A body that looks like a head.
                (
                    format!("{post}content-length: {}\r\n\r\n{both}{get}", both.len()),
                    0,
                ),
                ("no request\r\n\r\n".to_owned(), 0),
            ] {
                assert_eq!(found(&text, piece), number, "{text:?} by {piece}");
            }
        }
    }
}
