//! Limits on bodies: each has a longest length and a time to come in, and all of them share one amount of memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt;

use super::Refusal;
use super::shares::{Holder, Share, Shares};

/// The most bytes of all bodies at once, 64 MiB, and twice the longest body if that is more: one client has half of it.
pub const ALL_BODIES: u32 = 64 * 1024 * 1024;

/// Limits on bodies, and the memory that they share.
#[derive(Debug)]
pub struct Bodies {
    room: Arc<Shares>,
    each: usize,
    within: Duration,
}

/// A body that was read; its bytes count until it is dropped.
#[derive(Debug)]
pub struct Received {
    bytes: Vec<u8>,
    _room: Share,
}

impl Received {
    /// The bytes of the body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    /// Allows bodies of at most `each` bytes that have come in `within` this time.
    pub fn new(each: u32, within: Duration) -> Self {
        Self::of(ALL_BODIES as usize, each, within)
    }

    fn of(all: usize, each: u32, within: Duration) -> Self {
        let each = each as usize;
        Self {
            room: Shares::new(all.max(2 * each)),
            each,
            within,
        }
    }

    /// Reads a body to its end. Bytes count when they have come: an announced length takes up nothing.
    ///
    /// # Errors
    /// If the body is too long, too slow or breaks off, or other bodies leave no room to its sender.
    pub async fn read(&self, body: Body, holder: &Holder) -> Result<Received, Refusal> {
        let late = "the body did not come in time (--read-timeout)";
        let late = Refusal::new(StatusCode::REQUEST_TIMEOUT, "SLOW_BODY", late);
        let read = tokio::time::timeout(self.within, self.read_all(body, holder));
        read.await.unwrap_or(Err(late))
    }

    /// Counts a message that has come otherwise, until the share is dropped.
    ///
    /// # Errors
    /// If other bodies leave no room to its sender.
    pub fn count(&self, length: usize, holder: &Holder) -> Result<Share, Refusal> {
        self.room.take(holder, length).ok_or_else(full)
    }

    async fn read_all(&self, body: Body, holder: &Holder) -> Result<Received, Refusal> {
        let long = || {
            let message = "the body is longer than this server takes (--max-body)";
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
        };
        if body.size_hint().lower() > self.each as u64 {
            return Err(long());
        }
        let mut chunks = body.into_data_stream();
        let (mut bytes, mut room) = (Vec::new(), self.room.nothing(holder));
        while let Some(chunk) = chunks.next().await {
            let broken = "the body broke off";
            let chunk =
                chunk.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "BAD_BODY", broken))?;
            if bytes.len() + chunk.len() > self.each {
                return Err(long());
            }
            // Takes memory or refuses: a body that waited would keep its part from the others.
            if !room.grow(chunk.len()) {
                return Err(full());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Received { bytes, _room: room })
    }
}

/// Refuses a body with a content coding, as gzip: none is decoded here, where a short body could become a long one.
///
/// # Errors
/// If the headers name a coding.
pub fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let Some(coding) = codings.find(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    else {
        return Ok(());
    };
    let named = String::from_utf8_lossy(coding.as_bytes());
    let message = format!("the body has the content-encoding {named:?}: send it without one");
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Refusal::new(status, "INVALID_REQUEST", message))
}

fn full() -> Refusal {
    let message = "the bodies of other requests take up all memory for them: ask again";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Refusal::new(status, "TOO_MANY_BODIES", message)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// The wait for a body that never ends.
    const WITHIN: Duration = Duration::from_millis(200);

    fn never() -> Body {
        let first = stream::iter([Ok::<_, std::io::Error>("half")]);
        Body::from_stream(first.chain(stream::pending()))
    }

    #[tokio::test]
    async fn a_body_counts_until_it_is_dropped() {
        let bodies = Bodies::of(20, 8, WITHIN);
        let holder = Holder::Caller("one".to_owned());
        let read = async |body: Body| bodies.read(body, &holder).await;
        let refused = async |body: Body| read(body).await.unwrap_err().code();
        let first = read(Body::from("seven b")).await.unwrap();
        assert_eq!(first.bytes(), b"seven b");
        assert_eq!(refused(Body::from("seven c")).await, "TOO_MANY_BODIES");
        // Another client has room, and a refused body has given its memory back.
        let other = Holder::Caller("other".to_owned());
        let others = bodies.read(Body::from("seven d"), &other).await.unwrap();
        // The other one has a part now.
        assert_eq!(refused(Body::from("tre")).await, "TOO_MANY_BODIES");
        drop((first, others));
        assert_eq!(refused(never()).await, "SLOW_BODY");
        assert_eq!(refused(Body::from("nine byte")).await, "TOO_LARGE");
        let chunks = stream::iter(["12345", "6789"].map(Ok::<_, std::io::Error>));
        assert_eq!(refused(Body::from_stream(chunks)).await, "TOO_LARGE");
        assert!(read(Body::from("eightbyt")).await.is_ok());
    }
}
