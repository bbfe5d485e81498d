//! Actions of Nooble4: one file per verb, each case on a stream and on a list. Each case uses [`Side`].

pub(super) mod fail;
pub(super) mod finish;
pub(super) mod has_service;
pub(super) mod heavy;
pub(super) mod leave;
pub(super) mod promote;
pub(super) mod receive;
pub(super) mod reclaim;
pub(super) mod release;
pub(super) mod renew;
pub(super) mod replay;
pub(super) mod step;
pub(super) mod subscribe;
pub(super) mod tidy;
pub(super) mod trim;

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use meshwork_broker::nooble::{
    Answer, Completion, Failed, Failure as Wrong, Nooble, Received, Source,
};
use meshwork_model::keys::nooble::Dialect;
use sha1::{Digest, Sha1};

use super::{Failure, Outcome, World, cases, check, same};
use crate::cases::harness::world::{Got, LEASE, LEASE_MS};

/// The service of most cases.
const SERVICE: &str = "demo";
/// Group of that service.
const GROUP: &str = "demo-group";
/// The workers of most cases; by default the first one receives.
const W1: &str = "mw.w1";
const W2: &str = "mw.w2";
/// Time to live of answers.
const WAITS: Duration = Duration::from_secs(600);
/// Time to live of the messages that a killed worker of a list held, in seconds.
const HAND_WAITS: i64 = 2_592_000;
/// Pause after the first failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(3);

/// The verbs for one queue in a short form, and access to the data.
pub(super) struct Side<'a> {
    world: &'a World,
    verbs: Nooble,
    source: Arc<Source>,
    dialect: Dialect,
}

impl<'a> Side<'a> {
    /// Returns a queue in each dialect.
    fn both(world: &'a World) -> Got<[Self; 2]> {
        Ok([
            Self::of(world, Dialect::Streams)?,
            Self::of(world, Dialect::Lists)?,
        ])
    }

    fn of(world: &'a World, dialect: Dialect) -> Got<Self> {
        let verbs = world.nooble(dialect)?;
        let source = verbs.actions(SERVICE, None);
        Ok(Self {
            world,
            verbs,
            source,
            dialect,
        })
    }

    fn is_stream(&self) -> bool {
        self.dialect == Dialect::Streams
    }

    fn queue(&self) -> &str {
        self.source.queue()
    }

    /// Returns a list for answers.
    fn replies(&self) -> String {
        self.verbs
            .names()
            .response("tester", "demo.run", self.dialect.as_str(), None)
    }

    fn trace(&self) -> String {
        self.verbs.names().trace()
    }

    fn pending_callback(&self) -> String {
        let names = self.verbs.names();
        names.pending_callback("tester", "tester.done", self.dialect.as_str())
    }

    /// Sends messages as a client does.
    async fn send(&self, messages: &[&str]) -> Outcome {
        self.verbs.prepare(&self.source).await?;
        for message in messages {
            self.verbs.send(self.queue(), message, None).await?;
        }
        Ok(())
    }

    async fn receive_as(&self, worker: &str, most: usize) -> Got<Vec<Received>> {
        Ok(self.verbs.receive(worker, &self.source, most).await?)
    }

    async fn receive(&self) -> Got<Received> {
        let mut got = self.receive_as(W1, 1).await?;
        got.pop().ok_or_else(|| Failure::new("nothing came"))
    }

    /// Sends a message, which the first worker receives.
    async fn started(&self, message: &str) -> Got<Received> {
        self.send(&[message]).await?;
        self.receive().await
    }

    /// Fails a message with the error `boom`.
    async fn fail(&self, of: &Received, most_runs: u32, end: Completion<'_>) -> Got<Failed> {
        let failure = Wrong {
            error: "boom",
            most_runs,
            pause: PAUSE,
            longest_pause: LONGEST,
            token: &self.world.token(),
        };
        Ok(self.verbs.fail(W1, of, failure, end).await?)
    }

    /// Fails a message for good, without an error for the dead letters.
    async fn refuse(&self, of: &Received, end: Completion<'_>) -> Got<Failed> {
        let failure = Wrong {
            error: "",
            most_runs: 1,
            pause: PAUSE,
            longest_pause: LONGEST,
            token: &self.world.token(),
        };
        Ok(self.verbs.fail(W1, of, failure, end).await?)
    }

    /// Registers both workers, and lets the first one's registration expire.
    async fn lose(&self, held: &[Received]) -> Outcome {
        self.renew(W1, &[]).await?;
        self.world.pass(LEASE_MS);
        self.renew(W2, &[]).await?;
        for one in held.iter().filter(|_| self.is_stream()) {
            self.idle(&one.id, LEASE_MS).await?;
        }
        Ok(())
    }

    /// Sets the time since a message was delivered to its worker, in milliseconds.
    async fn idle(&self, id: &str, ms: u64) -> Outcome {
        let consumer = self.pending().await?;
        let consumer = consumer.iter().find(|one| one.0 == id);
        let consumer = consumer.map(|one| one.1.clone()).unwrap_or_default();
        let ms = ms.to_string();
        self.world
            .raw(&[
                "XCLAIM",
                self.queue(),
                GROUP,
                &consumer,
                "0",
                id,
                "IDLE",
                &ms,
                "JUSTID",
            ])
            .await
    }

    async fn renew(&self, worker: &str, held: &[Received]) -> Got<Vec<String>> {
        let held: Vec<_> = held.iter().map(|one| (one.id.clone(), one.given)).collect();
        Ok(self.verbs.renew(worker, &self.source, &held, LEASE).await?)
    }

    /// Reclaims messages for the second worker.
    async fn reclaim(&self, most: usize) -> Got<Vec<Received>> {
        let idle = (LEASE, None);
        let taken = self
            .verbs
            .reclaim(W2, &self.source, most, idle, "-")
            .await?;
        Ok(taken.messages)
    }

    /// Returns the pending messages of a stream's group: id, worker, milliseconds since delivery, number of
    /// deliveries.
    async fn pending(&self) -> Got<Vec<(String, String, u64, u64)>> {
        let words = ["XPENDING", self.queue(), GROUP, "-", "+", "1000"];
        self.world.raw(&words).await
    }

    /// Returns the messages that a worker holds.
    async fn hand(&self, worker: &str) -> Got<Vec<String>> {
        if !self.is_stream() {
            let list = self.source.keys().processing_of(worker);
            return self.world.list(&list).await;
        }
        let pending = self.pending().await?.into_iter();
        let ids: Vec<_> = pending
            .filter(|one| one.1 == worker)
            .map(|one| one.0)
            .collect();
        let mut messages = Vec::new();
        for id in ids {
            messages.extend(self.messages(&id, &id).await?);
        }
        Ok(messages)
    }

    async fn messages(&self, from: &str, to: &str) -> Got<Vec<String>> {
        let words = ["XRANGE", self.queue(), from, to];
        let entries: Vec<(String, Vec<String>)> = self.world.raw(&words).await?;
        Ok(entries
            .into_iter()
            .filter_map(|mut one| one.1.pop())
            .collect())
    }

    /// Returns the messages in the queue that no worker holds, the next one first.
    async fn waiting(&self) -> Got<Vec<String>> {
        if !self.is_stream() {
            return self.world.list(self.queue()).await;
        }
        let mut all = self.messages("-", "+").await?;
        for worker in [W1, W2] {
            for message in self.hand(worker).await? {
                all.retain(|it| *it != message);
            }
        }
        Ok(all)
    }

    /// Checks that the queue is empty and no worker holds a message.
    async fn is_over(&self) -> Outcome {
        same!(self.waiting().await?, Vec::<String>::new());
        for worker in [W1, W2] {
            same!(self.hand(worker).await?, Vec::<String>::new());
        }
        if self.is_stream() {
            same!(self.pending().await?.len(), 0);
        }
        Ok(())
    }

    /// Returns the dead letters: message, error, number of runs, time.
    async fn dead(&self) -> Got<Vec<(String, String, u32, u64)>> {
        let dead = self.verbs.dead(&self.source, None, 100).await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let row = |it: meshwork_broker::nooble::DeadAction| {
            (text(it.message), it.error, it.runs, it.at_ms)
        };
        Ok(dead.letters.into_iter().map(row).collect())
    }

    /// Returns the key with the failed and lost runs of a message.
    fn tries(&self, message: &str) -> String {
        let digest = HEXLOWER.encode(&Sha1::digest(message));
        format!("{}{digest}", self.source.keys().tries)
    }

    /// Returns the time to live of a key: see [`World::ttl`].
    async fn ttl(&self, key: &str) -> Got<i64> {
        self.world.ttl(key).await
    }

    async fn exists(&self, key: &str) -> Got<bool> {
        Ok(self.world.raw::<u8>(&["EXISTS", key]).await? == 1)
    }
}

/// Returns an answer to a list.
fn to<'a>(list: &'a str, message: &'a str) -> Completion<'a> {
    Completion {
        answer: Some(Answer {
            list,
            message,
            waits: Some(WAITS),
        }),
        ..Completion::default()
    }
}

/// Returns the messages as text.
fn texts(received: &[Received]) -> Vec<String> {
    let text = |one: &Received| String::from_utf8_lossy(one.bytes()).into_owned();
    received.iter().map(text).collect()
}
