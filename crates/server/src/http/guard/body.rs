//! Limits on bodies: each has a longest length and a time to come in, and all of them share one amount of memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Refusal;

/// The most bytes of all bodies at once, 64 MiB: the longest body that can be allowed fits once.
pub const ALL_BODIES: u32 = 64 * 1024 * 1024;

/// Limits on bodies, and the memory that they share.
#[derive(Debug)]
pub struct Bodies {
    room: Arc<Semaphore>,
    each: usize,
    within: Duration,
}

/// A body that was read; its bytes count until it is dropped.
#[derive(Debug)]
pub struct Received {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
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
        Self::of(ALL_BODIES, each, within)
    }

    fn of(all: u32, each: u32, within: Duration) -> Self {
        Self {
            room: Arc::new(Semaphore::new(all as usize)),
            each: each as usize,
            within,
        }
    }

    /// Reads a body to its end. Bytes count when they have come: an announced length takes up nothing.
    ///
    /// # Errors
    /// If the body is too long, too slow or breaks off, or other bodies leave no room.
    pub async fn read(&self, body: Body) -> Result<Received, Refusal> {
        let late = "the body did not come in time (--read-timeout)";
        let late = Refusal::new(StatusCode::REQUEST_TIMEOUT, "SLOW_BODY", late);
        let read = tokio::time::timeout(self.within, self.read_all(body));
        read.await.unwrap_or(Err(late))
    }

    async fn read_all(&self, body: Body) -> Result<Received, Refusal> {
        let long = || {
            let message = "the body is longer than this server takes (--max-body)";
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
        };
        if body.size_hint().lower() > self.each as u64 {
            return Err(long());
        }
        let mut chunks = body.into_data_stream();
        let (mut bytes, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
        while let Some(chunk) = chunks.next().await {
            let broken = "the body broke off";
            let chunk =
                chunk.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "BAD_BODY", broken))?;
            if bytes.len() + chunk.len() > self.each {
                return Err(long());
            }
            let more = self.take(chunk.len())?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Received { bytes, _room: room })
    }

    /// Takes memory or refuses: a body that waited would keep its part from the others.
    fn take(&self, length: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let full = || {
            let message = "the bodies of other requests take up all memory for them: ask again";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_BODIES", message)
        };
        let length = u32::try_from(length).map_err(|_| full())?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(length);
        room.map_err(|_| full())
    }
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
        let bodies = Bodies::of(10, 8, WITHIN);
        let first = bodies.read(Body::from("seven b")).await.unwrap();
        assert_eq!(first.bytes(), b"seven b");
        let full = bodies.read(Body::from("four")).await.unwrap_err();
        assert_eq!(full.code(), "TOO_MANY_BODIES");
        // A refused body has given its memory back.
        let second = bodies.read(Body::from("tre")).await.unwrap();
        drop((first, second));
        let late = bodies.read(never()).await.unwrap_err();
        assert_eq!(late.code(), "SLOW_BODY");
        assert_eq!(
            bodies
                .read(Body::from("nine byte"))
                .await
                .unwrap_err()
                .code(),
            "TOO_LARGE"
        );
        let chunks = stream::iter(["12345", "6789"].map(Ok::<_, std::io::Error>));
        let long = bodies.read(Body::from_stream(chunks)).await.unwrap_err();
        assert_eq!(long.code(), "TOO_LARGE");
        assert_eq!(bodies.room.available_permits(), 10);
    }
}
