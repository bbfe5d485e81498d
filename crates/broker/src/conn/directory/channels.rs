//! Subscriptions to channels of the engine.

use bytes::Bytes;
use meshwork_embedded::{Reply, Session};
use redis::RedisFuture;

use super::super::gone;
use super::super::subscriber::{Channels, Heard, silent};

impl Channels for Session {
    fn say<'a>(&'a mut self, word: &'static str, channel: &'a str) -> RedisFuture<'a, ()> {
        Box::pin(async move {
            let words = [word, channel].map(|word| Bytes::copy_from_slice(word.as_bytes()));
            match self.call(&words).await {
                Reply::Error(_) => Err(gone("the engine does not let us listen")),
                _ => Ok(()),
            }
        })
    }

    fn heard(&mut self) -> RedisFuture<'_, Option<Heard>> {
        Box::pin(async move {
            let push = self.next_push().await.ok_or_else(silent)?;
            Ok(published(push))
        })
    }
}

/// Returns the message in a push of the engine, unless the push confirms a subscription.
fn published(push: Reply) -> Option<Heard> {
    let (Reply::Push(parts) | Reply::Array(parts)) = push else {
        return None;
    };
    match parts.as_slice() {
        [
            Reply::Bulk(kind),
            Reply::Bulk(channel),
            Reply::Bulk(message),
        ] if kind == "message" => Some(Heard {
            channel: String::from_utf8_lossy(channel).into_owned(),
            message: message.to_vec(),
        }),
        _ => None,
    }
}
