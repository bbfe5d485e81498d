//! A connection for blocking reads that reconnects.

use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_broker::{Backoff, BlockingConn, Broker, Tries};

use super::REPEAT_FOR;
use crate::Error;

/// Longest single blocking read.
pub(super) const SLICE: Duration = Duration::from_millis(500);

/// State of a reader: its connection, and the end of its retries.
#[derive(Debug)]
pub(super) struct Follow {
    broker: Broker,
    blocking: Option<BlockingConn>,
}

impl Follow {
    pub(super) fn new(broker: Broker) -> Self {
        Self {
            broker,
            blocking: None,
        }
    }

    /// Calls `call`, which may block on the connection. While the server is unreachable, the call is repeated.
    pub(super) async fn ask<T>(
        &mut self,
        call: impl Fn(Broker, BlockingConn) -> BoxFuture<'static, Result<T, meshwork_broker::Error>>,
    ) -> Result<T, Error> {
        let (mut tries, mut backoff) = (Tries::within(REPEAT_FOR), Backoff::new());
        loop {
            let answer = match self.blocking.take() {
                Some(blocking) => {
                    let answer = call(self.broker.clone(), blocking.clone()).await;
                    // A broken connection is not reused.
                    self.blocking = answer.is_ok().then_some(blocking);
                    answer.map(Some)
                }
                None => {
                    let made = self.broker.blocking_conn().await;
                    made.map(|blocking| {
                        self.blocking = Some(blocking);
                        None
                    })
                }
            };
            match answer {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(error) if tries.repeat(&error) => {
                    tracing::debug!(%error, "log connection restored");
                    backoff.wait().await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
