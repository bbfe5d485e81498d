//! The transport over two streams, as agents start it: one message per line.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use meshwork::Client;
use meshwork::context::ActorId;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Notify, OnceCell, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Agent, Desk, UnderWay};
use crate::api::rpc::{Failure, Handler, answer, refusal};
use crate::api::{Access, ApiError, Call, Calls, Code};

/// Longest message in bytes, as that of a request of the API.
const MESSAGE: usize = 1024 * 1024;
/// Calls that run at once. Most of them wait for a job, which costs little.
const CALLS: usize = 64;
/// Messages that are worked on or wait for that. Further ones are refused, so that a cancellation is always read.
const MESSAGES: usize = 512;
/// Notifications that wait to be written.
const NOTICES: usize = 64;
/// Time for calls under way after the end of the input, when most agents are gone.
const AFTER_END: Duration = Duration::from_secs(5);
/// Address of the agent, which has none.
const AGENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The command around a server.
pub trait Host: Send + Sync {
    /// Connects to the store. An error is a text for people.
    fn connect(&self) -> BoxFuture<'_, Result<Client, String>>;

    /// Returns the actor of the command, or the reason why there is none.
    fn actor<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ActorId, String>>;
}

/// A server for the agent that has started it. It connects to the store at the first call of a tool.
#[derive(Debug)]
pub struct Mcp<H> {
    host: H,
    changes: bool,
    /// Key of the API whose rights the agent has; `None` for all rights of the store.
    key: Option<String>,
    calls: OnceCell<Calls>,
    connected: Notify,
    failures: AtomicU64,
    /// Why the last attempt to connect has failed.
    failure: Mutex<Option<ApiError>>,
    actor: OnceCell<ActorId>,
    slots: Semaphore,
    under_way: UnderWay,
    /// Cancelled when waits are over.
    closing: CancellationToken,
}

impl<H: Host> Mcp<H> {
    /// Returns a server. `changes` allows tools that change something. With a key of the API the agent has its rights alone.
    #[must_use]
    pub fn new(host: H, changes: bool, key: Option<String>) -> Self {
        Self {
            host,
            changes,
            key,
            calls: OnceCell::new(),
            connected: Notify::new(),
            failures: AtomicU64::new(0),
            failure: Mutex::default(),
            actor: OnceCell::new(),
            slots: Semaphore::new(CALLS),
            under_way: UnderWay::default(),
            closing: CancellationToken::new(),
        }
    }

    /// Serves two streams until the input ends or `stop` returns. Calls under way are answered, and their waits end at once;
    /// after `grace` the rest is cut off, after the end of the input within 5 s.
    ///
    /// # Errors
    /// If a stream fails.
    pub async fn serve(
        &self,
        (input, output): (impl AsyncBufRead + Unpin, impl AsyncWrite + Unpin),
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) -> io::Result<()> {
        let (stopped, ended) = (CancellationToken::new(), CancellationToken::new());
        let stops = async {
            stop.await;
            stopped.cancel();
            self.closing.cancel();
            std::future::pending().await
        };
        let cut_off = async {
            tokio::select! {
                () = stopped.cancelled() => tokio::time::sleep(grace).await,
                () = ended.cancelled() => tokio::time::sleep(grace.min(AFTER_END)).await,
            }
        };
        tokio::select! {
            served = self.answer_all(input, output, &ended) => served,
            never = self.scan() => never,
            never = stops => never,
            () = cut_off => Ok(()),
        }
    }

    /// Scans for queues and workers once there is a connection.
    async fn scan(&self) -> ! {
        self.connected.notified().await;
        match self.calls.get() {
            Some(calls) => calls.census.run(&calls.client).await,
            None => std::future::pending().await,
        }
    }

    async fn answer_all(
        &self,
        mut input: impl AsyncBufRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
        ended: &CancellationToken,
    ) -> io::Result<()> {
        let (notices, mut sent) = mpsc::channel(NOTICES);
        let agent = Agent {
            desk: self,
            changes: self.changes,
            remedy: "start `meshwork mcp` with --allow-changes to let agents change something",
            slots: Some(&self.slots),
            under_way: &self.under_way,
            session: "",
            notices: Some(notices),
        };
        let agent = &agent;
        let mut messages = FuturesUnordered::new();
        let mut line = Vec::new();
        loop {
            if self.closing.is_cancelled() && messages.is_empty() {
                return Ok(());
            }
            let text = tokio::select! {
                biased;
                // A notification comes before the answer to its request.
                sent = sent.recv() => sent,
                Some(answered) = messages.next() => answered,
                () = self.closing.cancelled(), if messages.is_empty() => continue,
                // A read that is dropped keeps what it has read in `line`.
                read = read_line(&mut input, &mut line), if !self.closing.is_cancelled() => match read? {
                    Line::End => {
                        // Nobody waits for long calls any more.
                        ended.cancel();
                        self.closing.cancel();
                        None
                    }
                    Line::Whole => {
                        let text = std::mem::take(&mut line);
                        if messages.len() < MESSAGES {
                            messages.push(async move { answer(agent, &text).await });
                            None
                        } else {
                            answer(&Full, &text).await
                        }
                    }
                    Line::Long => {
                        line.clear();
                        let message = format!("a message has at most {MESSAGE} bytes");
                        Some(refusal(ApiError::new(Code::InvalidRequest, message)))
                    }
                },
            };
            if let Some(text) = text {
                output.write_all(text.as_bytes()).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
            }
        }
    }

    /// Returns the state of all calls. Calls that come while one connects share its error.
    async fn connected(&self) -> Result<&Calls, ApiError> {
        let failures = self.failures.load(Ordering::SeqCst);
        let mut failure = self.failure.lock().await;
        if let Some(calls) = self.calls.get() {
            return Ok(calls);
        }
        if self.failures.load(Ordering::SeqCst) != failures
            && let Some(failure) = &*failure
        {
            return Err(failure.clone());
        }
        match self.host.connect().await {
            Ok(client) => {
                // Events name who has changed something.
                let calls = Calls::new(client.acting_as("mcp"), None);
                let calls = self.calls.get_or_init(|| std::future::ready(calls)).await;
                self.connected.notify_one();
                Ok(calls)
            }
            Err(message) => {
                let error = ApiError::new(Code::StorageError, message);
                self.failures.fetch_add(1, Ordering::SeqCst);
                *failure = Some(error.clone());
                Err(error)
            }
        }
    }
}

impl<H: Host> Desk for Mcp<H> {
    fn call(&self) -> BoxFuture<'_, Result<Call, ApiError>> {
        async {
            let calls = match self.calls.get() {
                Some(calls) => calls,
                None => self.connected().await?,
            };
            // The key may be revoked meanwhile.
            let access = match &self.key {
                Some(key) => calls.rights.caller(key, AGENT).await?,
                None => Access::All,
            };
            let call = Call::new(calls, access).of_agent();
            let call = call.ending_with(&self.closing);
            Ok(match self.actor.get() {
                Some(actor) => call.with_own_actor(*actor),
                None => call,
            })
        }
        .boxed()
    }

    fn as_actor(&self, call: Call) -> BoxFuture<'_, Result<Call, String>> {
        async move {
            let actor = self.actor.get_or_try_init(|| self.host.actor(&call.client));
            let actor = *actor.await?;
            Ok(call.with_own_actor(actor))
        }
        .boxed()
    }
}

/// Refuses all requests.
struct Full;

impl Handler for Full {
    fn run<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Failure>> {
        let message = format!("{MESSAGES} messages wait for their answers: wait for some of them");
        let error = ApiError::new(Code::TooManyRequests, message);
        std::future::ready(Err(error.into())).boxed()
    }
}

/// A line of the input.
enum Line {
    Whole,
    Long,
    End,
}

/// Reads a line, without blank ones. The rest of a long one is skipped.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<Line> {
    loop {
        let room = (MESSAGE + 1).saturating_sub(line.len()) as u64;
        let read = (&mut *input).take(room).read_until(b'\n', line).await?;
        if line.ends_with(b"\n") {
            if !line.trim_ascii().is_empty() {
                return Ok(Line::Whole);
            }
            line.clear();
        } else if line.len() > MESSAGE {
            skip_line(input).await?;
            return Ok(Line::Long);
        } else if read == 0 {
            return Ok(match line.trim_ascii().is_empty() {
                true => Line::End,
                false => Line::Whole,
            });
        }
    }
}

/// Skips the rest of a line without keeping it.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let skipped = end.map_or(bytes.len(), |end| end + 1);
        input.consume(skipped);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8]) -> Vec<Option<usize>> {
        let (mut input, mut line, mut all) = (text, Vec::new(), Vec::new());
        loop {
            match read_line(&mut input, &mut line).await.unwrap() {
                Line::End => return all,
                Line::Whole => all.push(Some(line.trim_ascii().len())),
                Line::Long => all.push(None),
            }
            line.clear();
        }
    }

    #[tokio::test]
    async fn lines_are_bounded_and_the_next_one_is_read() {
        let long = vec![b'x'; 3 * MESSAGE];
        let text = [
            b"\n ab\n\n",
            &long[..],
            b"\nabc\n",
            &long[..MESSAGE],
            b"\nd",
        ]
        .concat();
        let expected = [Some(2), None, Some(3), Some(MESSAGE), Some(1)];
        assert_eq!(lines(&text).await, expected);
        assert_eq!(lines(&long).await, [None]);
        assert_eq!(lines(b"").await, []);
    }
}
