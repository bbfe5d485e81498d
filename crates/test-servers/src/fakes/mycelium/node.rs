//! One fake daemon: its messages, and its links to other daemons.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::PublicKey;
use super::state::{Daemon, Frame};

/// One daemon.
pub struct Node {
    pk: PublicKey,
    state: Mutex<Daemon>,
    /// Links to other daemons.
    pub links: Links,
    /// Held by each call. The real daemon holds it while a pop waits, too.
    api: tokio::sync::Mutex<()>,
    began: Instant,
    started_s: i64,
}

impl Node {
    /// Returns a daemon of this key.
    #[must_use]
    pub fn new(pk: PublicKey) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(Daemon::new(pk.clone())),
            pk,
            links: Links::default(),
            api: tokio::sync::Mutex::new(()),
            began: Instant::now(),
            started_s: clock_gettime(ClockId::Realtime).tv_sec,
        })
    }

    /// Returns its public key.
    #[must_use]
    pub fn pk(&self) -> &str {
        &self.pk
    }

    /// Returns its start, in seconds since 1970.
    #[must_use]
    pub fn started_s(&self) -> i64 {
        self.started_s
    }

    /// Waits until no other call is served, and holds up others.
    pub async fn call(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.api.lock().await
    }

    /// Returns its messages.
    pub fn state(&self) -> MutexGuard<'_, Daemon> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since its start.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A frame on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hop {
    pub(super) hops: u8,
    pub(super) frame: Frame,
}

/// Links of one daemon, by their number.
#[derive(Debug, Default)]
pub struct Links(Mutex<Open>);

/// Open links.
#[derive(Debug, Default)]
struct Open {
    last: u64,
    links: BTreeMap<u64, mpsc::Sender<Arc<str>>>,
}

impl Links {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a link, and returns its number.
    pub(super) fn add(&self, link: mpsc::Sender<Arc<str>>) -> u64 {
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.links.insert(number, link);
        number
    }

    /// Removes a link.
    pub(super) fn remove(&self, number: u64) {
        self.open().links.remove(&number);
    }

    /// Sends a frame of this daemon.
    pub fn send(&self, frame: Frame) {
        self.forward(Hop { hops: 0, frame }, None);
    }

    /// Sends a frame to all links but the one that it came from.
    pub(super) fn forward(&self, hop: Hop, from: Option<u64>) {
        let Ok(line) = serde_json::to_string(&hop) else {
            return;
        };
        let line: Arc<str> = Arc::from(line + "\n");
        for (number, link) in &self.open().links {
            if Some(*number) != from {
                // A full link loses the frame, as a network does.
                let _ = link.try_send(Arc::clone(&line));
            }
        }
    }
}
