//! A Redis or Valkey server over a socket: one shared connection for commands that do not block, and dedicated ones
//! for blocking commands. The shared one is reconnected automatically, wherever the data is then.

mod slots;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::name::Namespace;
use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, RedisError, RedisResult};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::dial::CLOSED;
use super::locate::{Found, Locator, REFUSED};
use super::socket::{Dedicate, Wire};
use super::stranger::STRANGER;
use super::target::Server;
use super::{
    CALL_TIMEOUT, Changed, Conn, ConnectError, Subscriber, gone, of_slot, requirements, tls,
};
use crate::backoff::Backoff;
use crate::error::{is_elsewhere, timed_out};
use slots::Shared;

/// Time for which a reconnect is tried before waiting callers get an error. The next call tries again.
const ROUND: Duration = Duration::from_secs(3);
/// Time for which a call is repeated that the server refused before it did anything, because the data is moving or
/// being loaded. A normal failover takes less.
const REPEAT_FOR: Duration = Duration::from_secs(2);
/// Time without an answer after which the location of the data is checked. A hanging server does not close its
/// connections when another one replaces it.
const DOUBT: Duration = Duration::from_secs(1);

/// Connects to a server and checks that it is suitable for jobs.
pub(super) async fn connect(server: &Server, namespace: &Namespace) -> Result<Conn, ConnectError> {
    let place = server.place();
    let refused = |e| refused(server, e);
    let mut locator = Locator::new(server, namespace)?;
    let mut found = locator.shared(None, true).await.map_err(refused)?;
    let mut about = requirements::read_info(&mut found.connection, &place).await?;
    if about.is_cluster()
        && let Some(in_cluster) = locator.in_cluster(namespace)?
    {
        locator = in_cluster;
        found = locator.shared(None, true).await.map_err(refused)?;
        about = requirements::read_info(&mut found.connection, &place).await?;
    }
    about.check(&place)?;
    locator.check_nodes();
    Ok(Shared::conn(locator, found))
}

/// Connects to a server without checks. If the namespace has no hash tag, any node of a cluster is used.
pub(super) async fn reach(server: &Server, namespace: &Namespace) -> Result<Conn, ConnectError> {
    let place = server.place();
    let refused = |e| refused(server, e);
    let mut locator = match Locator::new(server, namespace) {
        Err(ConnectError::Untagged { .. }) => Locator::of_first(server)?,
        made => made?,
    };
    let mut found = locator.shared(None, true).await.map_err(refused)?;
    let about = requirements::read_info(&mut found.connection, &place).await;
    if about.is_ok_and(|about| about.is_cluster())
        && let Ok(Some(in_cluster)) = locator.in_cluster(namespace)
    {
        locator = in_cluster;
        found = locator.shared(None, true).await.map_err(refused)?;
    }
    Ok(Shared::conn(locator, found))
}

fn refused(server: &Server, error: RedisError) -> ConnectError {
    let mut place = server.place();
    let text = error.to_string();
    if let Some(said) = error.detail().filter(|_| text.contains(CLOSED)) {
        let said = said.to_owned();
        return ConnectError::Closed { place, said };
    }
    if let Some(said) = error.detail().filter(|_| text.contains(STRANGER)) {
        let said = said.to_owned();
        return ConnectError::NoRedis { place, said };
    }
    if let Some(reason) = error.detail().filter(|_| text.contains(REFUSED)) {
        let reason = reason.to_owned();
        return ConnectError::RefusedBySentinels { place, reason };
    }
    let by_server = matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"))
        || error.kind() == redis::ErrorKind::AuthenticationFailed
        || text.contains("AUTH");
    if by_server {
        return ConnectError::Refused {
            place,
            reason: text,
        };
    }
    // These are the client's words; the server's differ by version.
    if text.contains("refused to switch database") {
        return ConnectError::NoDatabase {
            place,
            source: error,
        };
    }
    if let Some(reason) = tls::reason(&error) {
        return ConnectError::Tls { place, reason };
    }
    if server.security().encrypted {
        // A server without TLS on this port does not answer.
        place.push_str(" over TLS");
    }
    ConnectError::Unreachable {
        place,
        source: error,
    }
}

/// The shared connection, and its server.
struct Remote {
    locator: Locator,
    /// Runtime of the connections: that of the first one. A connection opened on another call's runtime would end
    /// with that runtime.
    runtime: Handle,
    link: watch::Sender<Link>,
    /// True while a task checks the location of the data.
    in_doubt: AtomicBool,
}

#[derive(Clone)]
struct Link {
    /// Number of connections so far.
    number: u64,
    /// Number of times that the data moved to another server.
    moves: u64,
    addr: ConnectionAddr,
    /// Time at which the latest connection was open; `None` before the first one.
    opened: Option<Instant>,
    state: State,
}

#[derive(Clone)]
enum State {
    Up(MultiplexedConnection),
    /// A task reconnects.
    Mending,
    /// The reconnect failed.
    Down(RedisError),
}

/// An open connection.
struct Up {
    number: u64,
    moves: u64,
    connection: MultiplexedConnection,
}

impl Link {
    fn up(&self) -> Option<Up> {
        let State::Up(connection) = &self.state else {
            return None;
        };
        Some(Up {
            number: self.number,
            moves: self.moves,
            connection: connection.clone(),
        })
    }
}

/// The meaning of an answer for the connection.
enum Sign {
    /// A regular answer.
    Answer,
    /// The connection is broken. It is unknown whether the call took effect.
    Broken,
    /// The call did nothing: the data is on another server.
    Elsewhere,
    /// The call did nothing: the server is loading, or the slot is moving.
    Later,
}

impl Sign {
    fn of(error: &RedisError) -> Self {
        match error.code() {
            _ if is_elsewhere(error) => Self::Elsewhere,
            Some("ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING") => Self::Later,
            _ if error.is_io_error() || error.is_unrecoverable_error() => Self::Broken,
            _ => Self::Answer,
        }
    }
}

impl Remote {
    /// Sends a call until it is answered, as far as it may be repeated.
    async fn answered<T, F: Future<Output = RedisResult<T>>>(
        self: &Arc<Self>,
        repeatable: bool,
        send: impl Fn(MultiplexedConnection) -> F,
    ) -> RedisResult<T> {
        let begun = Instant::now();
        let mut backoff = Backoff::new();
        loop {
            let (number, error) = match self.once(begun + CALL_TIMEOUT, &send).await {
                (_, Ok(answer)) => return Ok(answer),
                (number, Err(error)) => (number, error),
            };
            let sign = Sign::of(&error);
            if let (Some(number), Sign::Broken | Sign::Elsewhere) = (number, &sign) {
                self.mend(number, matches!(sign, Sign::Broken));
            }
            let refused = repeatable && matches!(sign, Sign::Elsewhere | Sign::Later);
            if !refused || begun.elapsed() > REPEAT_FOR {
                return Err(error);
            }
            backoff.wait().await;
        }
    }

    /// Sends a call once, and returns the number of its connection.
    async fn once<T, F: Future<Output = RedisResult<T>>>(
        self: &Arc<Self>,
        until: Instant,
        send: &impl Fn(MultiplexedConnection) -> F,
    ) -> (Option<u64>, RedisResult<T>) {
        let up = self.link.borrow().up();
        let up = match up {
            Some(up) => up,
            None => match Box::pin(timeout_at(until, self.mended())).await {
                Ok(Ok(up)) => up,
                Ok(Err(error)) => return (None, Err(error)),
                Err(_) => return (None, Err(timed_out())),
            },
        };
        // The future is pinned here, because it is large and would be copied.
        let sent = pin!(send(up.connection));
        let named = |error| match self.locator.slot() {
            Some(slot) => of_slot(slot, &self.link.borrow().addr, error),
            None => error,
        };
        let sent = timeout_at(until, sent);
        let answer = tokio::select! {
            // An answer that has arrived counts, wherever the data is now.
            biased;
            answer = sent => answer.unwrap_or_else(|_| Err(timed_out())).map_err(named),
            () = self.doubted(up.number, up.moves) => {
                Err(gone("the data is on another server now"))
            }
        };
        (Some(up.number), answer)
    }

    fn is_connected(&self) -> bool {
        matches!(self.link.borrow().state, State::Up(_))
    }

    /// Waits for the next connection after a lost one.
    async fn mended(self: &Arc<Self>) -> RedisResult<Up> {
        let mut links = self.link.subscribe();
        let mut waited = false;
        loop {
            let link = links.borrow_and_update().clone();
            if let Some(up) = link.up() {
                return Ok(up);
            }
            if let State::Down(error) = link.state {
                if waited {
                    return Err(error);
                }
                self.mend(link.number, true);
            }
            waited = true;
            if links.changed().await.is_err() {
                return Err(gone("there is no connection"));
            }
        }
    }

    /// Starts a reconnect in place of the connection with this number, unless one is running. A connection that is not
    /// broken may stay in use: the data is elsewhere.
    fn mend(self: &Arc<Self>, number: u64, is_broken: bool) {
        let mut lost = None;
        let begun = self.link.send_if_modified(|link| {
            let begins = link.number == number && !matches!(link.state, State::Mending);
            if begins {
                link.state = State::Mending;
                lost = link.opened.filter(|_| is_broken);
            }
            begins
        });
        if begun {
            // A separate task continues whether or not the caller is polled.
            self.runtime.spawn(Arc::clone(self).find(lost, false));
        }
    }

    /// Connects. With `known`, the first attempt uses an address that was found before.
    async fn find(self: Arc<Self>, lost: Option<Instant>, mut known: bool) {
        let begun = Instant::now();
        let mut backoff = Backoff::new();
        let found = loop {
            match self.locator.shared(lost, std::mem::take(&mut known)).await {
                Ok(found) => break Ok(found),
                Err(error) if begun.elapsed() > ROUND => break Err(error),
                Err(error) => {
                    tracing::debug!(%error, "not connected: trying again");
                    backoff.wait().await;
                }
            }
        };
        self.link.send_modify(|link| match found {
            Ok(Found {
                addr,
                connection,
                opened,
            }) => {
                // Slots of a cluster are found one by one, over connections that are open.
                if link.opened.is_some_and(|before| before != opened) {
                    tracing::info!(%addr, "connected again");
                }
                link.number += 1;
                link.moves += u64::from(link.addr != addr);
                link.addr = addr;
                link.opened = Some(opened);
                link.state = State::Up(connection);
            }
            Err(error) => {
                tracing::debug!(%error, "no connection");
                link.state = State::Down(error);
            }
        });
    }

    /// Returns when the data has moved since `moves`; checks this for a call without an answer.
    async fn doubted(self: &Arc<Self>, number: u64, moves: u64) {
        match self.locator.is_fixed() {
            true => std::future::pending().await,
            false => Box::pin(self.found_out(number, moves)).await,
        }
    }

    /// Does the same where the data can move.
    async fn found_out(self: &Arc<Self>, number: u64, moves: u64) {
        let mut links = self.link.subscribe();
        loop {
            let moved = links.wait_for(|link| link.moves != moves);
            if tokio::time::timeout(DOUBT, moved).await.is_ok() {
                return;
            }
            if !self.in_doubt.swap(true, Ordering::Relaxed) {
                self.runtime.spawn(Arc::clone(self).look_again(number));
            }
        }
    }

    async fn look_again(self: Arc<Self>, number: u64) {
        match self.locator.locate().await {
            Ok(addr) if addr != self.link.borrow().addr => self.mend(number, false),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "address of the server unknown: no Sentinel or cluster node answered");
            }
        }
        self.in_doubt.store(false, Ordering::Relaxed);
    }
}

impl Remote {
    /// Opens a dedicated connection that reports changes, and returns the address of its server.
    async fn tracking(self: Arc<Self>, changed: Changed) -> RedisResult<Option<(Conn, String)>> {
        let moves = self.link.borrow().moves;
        let Some(Found {
            addr, connection, ..
        }) = self.locator.tracking(changed).await?
        else {
            return Ok(None);
        };
        let server = addr.to_string();
        let origin = Arc::new(Branch {
            addr,
            moves,
            remote: self,
        });
        Ok(Some((Wire::conn(connection, origin), server)))
    }
}

impl Dedicate for Remote {
    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Box::pin(async move {
            let (number, moves) = {
                let link = self.link.borrow();
                (link.number, link.moves)
            };
            let found = self.locator.connect().await?;
            let is_new = found.addr != self.link.borrow().addr;
            if is_new {
                self.mend(number, false);
            }
            let origin = Branch {
                addr: found.addr,
                moves,
                remote: self,
            };
            Ok(Wire::conn(found.connection, Arc::new(origin)))
        })
    }

    fn subscriber(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Subscriber>> {
        Box::pin(async move { self.locator.subscriber().await })
    }
}

/// The origin of a dedicated connection.
struct Branch {
    remote: Arc<Remote>,
    addr: ConnectionAddr,
    moves: u64,
}

impl Dedicate for Branch {
    fn is_cluster(&self) -> bool {
        self.remote.locator.slot().is_some()
    }

    fn named(&self, error: RedisError) -> RedisError {
        match self.remote.locator.slot() {
            Some(slot) => of_slot(slot, &self.addr, error),
            None => error,
        }
    }

    fn dedicated(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Conn>> {
        Arc::clone(&self.remote).dedicated()
    }

    fn subscriber(self: Arc<Self>) -> BoxFuture<'static, RedisResult<Subscriber>> {
        Arc::clone(&self.remote).subscriber()
    }

    fn moved(&self) -> BoxFuture<'_, ()> {
        if self.remote.locator.is_fixed() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move {
            let mut links = self.remote.link.subscribe();
            let elsewhere = |link: &Link| link.moves != self.moves && link.addr != self.addr;
            // The sender is in `remote`, which is alive.
            let _ = links.wait_for(elsewhere).await;
        })
    }
}

impl Remote {
    fn new(locator: Locator, runtime: Handle, addr: ConnectionAddr) -> Self {
        let link = Link {
            number: 0,
            moves: 0,
            addr,
            opened: None,
            state: State::Mending,
        };
        Self {
            locator,
            runtime,
            link: watch::Sender::new(link),
            in_doubt: AtomicBool::new(false),
        }
    }
}
