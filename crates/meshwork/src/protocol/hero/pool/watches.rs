//! Watches: one connection of a pool to each server, which reports changes of keys that were read over it. So the cost of
//! a pool follows the activity of its contexts, not their number. Contexts in databases of their own are polled: reports
//! do not name the database. So are those whose server reports nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use meshwork_broker::{Broker, ChangeConn, Error, SlotMap};
use meshwork_model::keys::context::ContextLayout;
use tokio::sync::Notify;
use tokio::time::Instant;

use meshwork_worker::dedicated_thread::within;

/// Time for which the owners of the slots of a cluster are used for new sessions.
const OWNERS_FOR: Duration = Duration::from_secs(1);
/// Time after which the owners are read again. A context without keys moves without a report.
const OWNERS_EVERY: Duration = Duration::from_secs(3);
/// Time since an answer for which a server counts as reached.
const REACHED_FOR: Duration = Duration::from_secs(4);
/// Longest time for opening a connection. The contexts are polled if it takes longer.
const OPEN_MOST: Duration = Duration::from_secs(2);
/// Time after which a connection that could not be opened is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// Time after which a server that reports no changes is tried again: it may have another version by then, or the user
/// the right.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// Longest wait for the answer to a check.
const CHECK_MOST: Duration = Duration::from_secs(2);

/// A session of a member for looks.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) broker: Broker,
    pub(super) reports: Reports,
}

/// The source of reports about the keys of a context.
#[derive(Debug, Clone)]
pub(super) enum Reports {
    By(Arc<Watch>),
    /// None until this time; `None`: none ever.
    Without(Option<Instant>),
}

impl Session {
    /// Returns false if another one may be better.
    pub(super) fn is_usable(&self) -> bool {
        match &self.reports {
            Reports::By(watch) => !watch.is_broken(),
            Reports::Without(until) => until.is_none_or(|until| Instant::now() < until),
        }
    }

    pub(super) fn watch(&self) -> Option<&Arc<Watch>> {
        match &self.reports {
            Reports::By(watch) => Some(watch),
            Reports::Without(_) => None,
        }
    }
}

/// Contexts with changed keys.
#[derive(Debug, Default)]
pub(super) struct Changes {
    contexts: Mutex<BTreeSet<u32>>,
    /// True if any context may have changed.
    all: AtomicBool,
    noted: Notify,
}

impl Changes {
    fn contexts(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a key has changed; `None`: any may have.
    pub(super) fn note(&self, key: Option<&[u8]>) {
        match key.and_then(context_of) {
            Some(number) => {
                self.contexts().insert(number);
            }
            None => self.all.store(true, Ordering::Release),
        }
        self.noted.notify_one();
    }

    /// Returns after a change, not before `from`.
    pub(super) async fn noted(&self, from: Instant) {
        tokio::time::sleep_until(from).await;
        self.noted.notified().await;
    }

    /// Takes the contexts, and true if any may have changed.
    pub(super) fn take(&self) -> (BTreeSet<u32>, bool) {
        let all = self.all.swap(false, Ordering::Acquire);
        (std::mem::take(&mut *self.contexts()), all)
    }
}

/// Returns the number of the context of a key.
fn context_of(key: &[u8]) -> Option<u32> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix("{ctx:")?;
    rest.split_once('}')?.0.parse().ok()
}

/// A connection that reports changes.
#[derive(Debug)]
pub(super) struct Watch {
    conn: ChangeConn,
    /// For calls without keys.
    any: Broker,
    is_broken: Arc<AtomicBool>,
    answered: Mutex<Instant>,
}

impl Watch {
    async fn open(broker: &Broker, changes: &Arc<Changes>) -> Result<Option<Self>, Error> {
        let (changes, is_broken) = (Arc::clone(changes), Arc::<AtomicBool>::default());
        let broken = Arc::clone(&is_broken);
        let changed = move |key: Option<&[u8]>| {
            if key.is_none() {
                // All keys were deleted, or the connection is lost.
                broken.store(true, Ordering::Release);
            }
            changes.note(key);
        };
        let conn = ChangeConn::open(broker, Arc::new(changed)).await?;
        Ok(conn.map(|conn| Self {
            any: conn.over(broker),
            conn,
            is_broken,
            answered: Mutex::new(Instant::now()),
        }))
    }

    pub(super) fn over(&self, broker: &Broker) -> Broker {
        self.conn.over(broker)
    }

    /// Returns true if the server has answered lately.
    pub(super) fn is_reached(&self) -> bool {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.elapsed() < REACHED_FOR && !self.is_broken()
    }

    fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Gives the connection up, since its server does not answer.
    pub(super) fn give_up(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    async fn check(&self) -> Result<(), Error> {
        self.any.now().await?;
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered = Instant::now();
        Ok(())
    }
}

/// The connections of a pool.
#[derive(Debug, Default)]
pub(super) struct Watches {
    pub(super) changes: Arc<Changes>,
    owners: tokio::sync::Mutex<Option<Owners>>,
    /// By address; outside of clusters, there is one without an address.
    servers: Mutex<BTreeMap<String, Arc<Server>>>,
}

/// Owners of the slots; outside of clusters, `None`.
#[derive(Debug)]
struct Owners {
    read: Instant,
    map: Option<SlotMap>,
}

/// Reports of one server; `None` before the first try. One caller at a time opens the connection.
type Server = tokio::sync::Mutex<Option<Reports>>;

impl Watches {
    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the source of reports about the keys of a context.
    pub(super) async fn of(&self, broker: &Broker) -> Result<Reports, Error> {
        let keys = broker.keys().context();
        let Some(keys) = keys.filter(|keys| keys.layout() == ContextLayout::Prefix) else {
            return Ok(Reports::Without(None));
        };
        let name = self.server_of(broker, keys.prefix()).await?;
        let server = Arc::clone(self.servers().entry(name.clone()).or_default());
        let mut server = server.lock().await;
        let is_known = match &*server {
            Some(Reports::By(watch)) => !watch.is_broken(),
            Some(Reports::Without(until)) => until.is_none_or(|until| Instant::now() < until),
            None => false,
        };
        if let Some(reports) = server.as_ref().filter(|_| is_known) {
            return Ok(reports.clone());
        }
        let opened = within("connect", OPEN_MOST, Watch::open(broker, &self.changes)).await;
        let without = |time| Reports::Without(Some(Instant::now() + time));
        let reports = match opened {
            Ok(Some(watch)) if name.is_empty() || watch.conn.server() == name => {
                Reports::By(Arc::new(watch))
            }
            Ok(None) => without(SILENT_FOR),
            // Or the slot has moved since the owners were read.
            Ok(Some(_)) | Err(_) => without(AGAIN),
        };
        *server = Some(reports.clone());
        Ok(reports)
    }

    async fn server_of(&self, broker: &Broker, key: &str) -> Result<String, Error> {
        let mut owners = self.owners.lock().await;
        let owners = self.read(&mut owners, broker, OWNERS_FOR).await?;
        let server = owners.map.as_ref().and_then(|map| map.node_of(key));
        Ok(server.unwrap_or_default().to_owned())
    }

    /// Reads the owners, unless that was done at most `age` ago.
    async fn read<'a>(
        &self,
        owners: &'a mut Option<Owners>,
        broker: &Broker,
        age: Duration,
    ) -> Result<&'a Owners, Error> {
        let is_known = |it: &Owners| it.read.elapsed() <= age;
        let known = match owners.take() {
            Some(known) if is_known(&known) => known,
            before => {
                // Put back first: the call may fail, or be dropped.
                *owners = before;
                let (read, map) = (Instant::now(), broker.slots().await?);
                if owners.as_ref().is_some_and(|before| before.map != map) {
                    self.changes.note(None);
                }
                Owners { read, map }
            }
        };
        Ok(owners.insert(known))
    }

    /// Checks that the servers answer, since without a change they send nothing, and that each slot is where it was.
    pub(super) async fn check(&self, node: &Broker) {
        let watches: Vec<_> = self.open().collect();
        let checks = watches.iter().map(async |watch| {
            if within("look", CHECK_MOST, watch.check()).await.is_err() {
                watch.give_up();
                self.changes.note(None);
            }
        });
        join_all(checks).await;
        if let Ok(mut owners) = self.owners.try_lock()
            && !watches.is_empty()
        {
            // An outage is reported by those who look.
            let read = self.read(&mut owners, node, OWNERS_EVERY);
            let _ = within("look", CHECK_MOST, async { read.await.map(|_| ()) }).await;
        }
    }

    /// Returns the connections in use.
    fn open(&self) -> impl Iterator<Item = Arc<Watch>> + use<> {
        let servers: Vec<_> = self.servers().values().cloned().collect();
        let watches = servers.into_iter().filter_map(|server| {
            let server = server.try_lock().ok()?;
            match server.as_ref()? {
                Reports::By(watch) => Some(Arc::clone(watch)),
                Reports::Without(_) => None,
            }
        });
        watches.filter(|watch| !watch.is_broken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_its_context_or_any() {
        let changes = Changes::default();
        changes.note(Some(b"{ctx:7}:queue:osis"));
        changes.note(Some(b"{ctx:12}:mw:due"));
        assert_eq!(changes.take(), (BTreeSet::from([7, 12]), false));
        for key in [
            None,
            Some(&b"{ctx:x}:a"[..]),
            Some(b"\xff"),
            Some(b"{ctx:7"),
        ] {
            changes.note(key);
            assert_eq!(changes.take(), (BTreeSet::new(), true), "{key:?}");
        }
    }
}
