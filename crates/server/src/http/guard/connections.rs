//! Limits on connections, in all and for each address. A connection without a token is evicted for a new one. A new one
//! without room is a reserved connection: probes alone are answered on it, all else is refused at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use tokio_util::sync::CancellationToken;

use super::proxies::Proxies;

/// Default of the most connections of one address: more than a browser or a usual connection pool has.
pub const PER_PEER: u16 = 64;
/// The most unauthenticated connections of one address, where a token is needed: a few probes, and clients that mistype.
pub(super) const UNAUTHENTICATED: usize = 8;
/// A younger connection does not count as unauthenticated yet: its first request may be on its way. A busy client that opens
/// 200 at once sends the last one after a second.
pub(crate) const TOKEN_GRACE: Duration = Duration::from_secs(2);
/// Greatest number of reserved connections: a few probes, and clients that are refused for now.
const RESERVED: usize = 16;
/// The most reserved connections of one address, so that the probes of another one have some.
const RESERVED_PER_PEER: usize = 4;
/// The part of an IPv6 address that names a host: each host has at least 64 bits for itself.
const HOST_MASK: u128 = !0 << 64;

/// Limits on connections.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most connections of all addresses together, beside the reserved ones.
    pub total: usize,
    /// The most connections of one address.
    pub per_peer: usize,
    /// The most connections of one address that are older than [`TOKEN_GRACE`] and unauthenticated. `None` where no token
    /// is needed.
    pub unauthenticated: Option<usize>,
    /// Proxies whose connections count towards the total alone: each has those of many clients.
    pub proxies: Proxies,
}

/// All connections of a listener.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    table: Mutex<Table>,
}

/// The right to one connection; dropping it makes room. Each request carries it as an extension, so that a handler that
/// takes the connection over (a WebSocket) keeps it as long.
#[derive(Debug)]
pub struct Permit {
    connections: Arc<Connections>,
    id: u64,
    peer: IpAddr,
    local: SocketAddr,
    reserved: bool,
    /// True for a connection of a trusted proxy.
    of_proxy: bool,
    evicted: CancellationToken,
}

/// Keeps a connection from being evicted until it is dropped.
#[derive(Debug)]
pub struct Busy(Arc<Permit>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// Oldest first.
    open: BTreeMap<u64, Entry>,
    peers: HashMap<IpAddr, BTreeSet<u64>>,
    /// Oldest first, with their addresses.
    reserved: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    since: Instant,
    authenticated: bool,
    busy: usize,
    evicted: CancellationToken,
}

impl Entry {
    fn is_evictable(&self) -> bool {
        !self.authenticated && self.busy == 0
    }
}

impl Connections {
    /// Returns no connections yet, within these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            table: Mutex::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, and evicts the oldest evictable one where there is no room. Where none is evictable, the new
    /// one is reserved for probes.
    pub fn admit(self: &Arc<Self>, peer: IpAddr, local: SocketAddr, now: Instant) -> Permit {
        let of_proxy = self.limits.proxies.trusts(peer);
        let peer = host(peer);
        let evicted = CancellationToken::new();
        let mut table = self.table();
        let id = table.next;
        table.next += 1;
        let per_peer = match of_proxy {
            true => usize::MAX,
            false => self.limits.per_peer,
        };
        let reserved = !table.make_room(peer, (self.limits.total, per_peer));
        match reserved {
            true => table.insert_reserved(id, peer, evicted.clone()),
            false => {
                let entry = Entry {
                    peer,
                    since: now,
                    authenticated: of_proxy,
                    busy: 0,
                    evicted: evicted.clone(),
                };
                table.insert(id, entry);
            }
        }
        Permit {
            connections: Arc::clone(self),
            id,
            peer,
            local,
            reserved,
            of_proxy,
            evicted,
        }
    }
}

impl Table {
    /// Returns true if there is room for one more connection of an address, after an eviction if need be.
    fn make_room(&mut self, peer: IpAddr, (total, per_peer): (usize, usize)) -> bool {
        let of_peer = self.peers.get(&peer).map_or(0, BTreeSet::len);
        let first = if of_peer >= per_peer {
            self.of(peer).find(|(_, entry)| entry.is_evictable())
        } else if self.open.len() >= total {
            self.open
                .iter()
                .map(|(id, entry)| (*id, entry))
                .find(|(_, entry)| entry.is_evictable())
        } else {
            return true;
        };
        let first = first.map(|(id, _)| id);
        first.inspect(|id| self.evict(*id)).is_some()
    }

    fn of(&self, peer: IpAddr) -> impl Iterator<Item = (u64, &Entry)> {
        let ids = self.peers.get(&peer).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.open.get(id)?)))
    }

    fn insert(&mut self, id: u64, entry: Entry) {
        self.peers.entry(entry.peer).or_default().insert(id);
        self.open.insert(id, entry);
    }

    fn insert_reserved(&mut self, id: u64, peer: IpAddr, evicted: CancellationToken) {
        let of_peer = || self.reserved.iter().filter(|(_, (it, _))| *it == peer);
        let first = match of_peer().count() >= RESERVED_PER_PEER {
            true => of_peer().next().map(|(id, _)| *id),
            false if self.reserved.len() >= RESERVED => self.reserved.keys().next().copied(),
            false => None,
        };
        if let Some((_, evicted)) = first.and_then(|first| self.reserved.remove(&first)) {
            evicted.cancel();
        }
        self.reserved.insert(id, (peer, evicted));
    }

    fn evict(&mut self, id: u64) {
        if let Some(entry) = self.remove(id) {
            entry.evicted.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        self.reserved.remove(&id);
        let entry = self.open.remove(&id)?;
        if let Some(ids) = self.peers.get_mut(&entry.peer) {
            ids.remove(&id);
            if ids.is_empty() {
                self.peers.remove(&entry.peer);
            }
        }
        Some(entry)
    }
}

impl Permit {
    /// The address of the client of a request, behind trusted proxies.
    pub(super) fn client(&self, headers: &HeaderMap) -> IpAddr {
        match self.of_proxy {
            true => host(self.connections.limits.proxies.client(self.peer, headers)),
            false => self.peer,
        }
    }

    /// Returns true for a connection of a trusted proxy, which may say from where it comes.
    pub(crate) fn is_of_proxy(&self) -> bool {
        self.of_proxy
    }

    /// Admits the connection as one that comes from here.
    pub(crate) fn moved(self, from: IpAddr, now: Instant) -> Self {
        let (connections, local) = (Arc::clone(&self.connections), self.local);
        drop(self);
        connections.admit(from, local, now)
    }

    /// The address that the client connected to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns true if only probes are answered on the connection.
    pub fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// Cancelled when the connection is evicted: close it at once.
    pub fn evicted(&self) -> &CancellationToken {
        &self.evicted
    }

    /// Marks the connection as one whose client has shown a token: it is never evicted.
    pub fn authenticate(&self) {
        if let Some(entry) = self.connections.table().open.get_mut(&self.id) {
            entry.authenticated = true;
        }
    }

    /// Keeps the connection from being evicted while a request is worked on.
    pub fn busy(self: &Arc<Self>) -> Busy {
        if let Some(entry) = self.connections.table().open.get_mut(&self.id) {
            entry.busy += 1;
        }
        Busy(Arc::clone(self))
    }

    /// Evicts the oldest unauthenticated connections of this address beyond [`Limits::unauthenticated`]. Call it when the
    /// connection is as old as [`TOKEN_GRACE`].
    pub fn end_grace(&self, now: Instant) {
        let Some(most) = self.connections.limits.unauthenticated else {
            return;
        };
        let mut table = self.connections.table();
        let Some(peer) = table.open.get(&self.id).map(|entry| entry.peer) else {
            return;
        };
        let ids: Vec<u64> = table
            .of(peer)
            .filter(|(_, entry)| {
                entry.is_evictable() && now.duration_since(entry.since) >= TOKEN_GRACE
            })
            .map(|(id, _)| id)
            .collect();
        for id in ids.iter().take(ids.len().saturating_sub(most)) {
            table.evict(*id);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.table().remove(self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut table = self.0.connections.table();
        if let Some(entry) = table.open.get_mut(&self.0.id) {
            entry.busy -= 1;
        }
    }
}

/// The part of an address that names a host.
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & HOST_MASK).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        total: 6,
        per_peer: 4,
        unauthenticated: Some(2),
        proxies: Proxies::NONE,
    };

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn admit(connections: &Arc<Connections>, last: u8) -> Arc<Permit> {
        let local = SocketAddr::from(([10, 0, 0, 99], 80));
        Arc::new(connections.admit(peer(last), local, Instant::now()))
    }

    #[test]
    fn the_oldest_of_an_address_is_evicted_for_its_next() {
        let connections = Connections::new(LIMITS);
        let all: Vec<_> = (0..5).map(|_| admit(&connections, 1)).collect();
        let evicted: Vec<_> = all.iter().map(|it| it.evicted().is_cancelled()).collect();
        assert_eq!(evicted, [true, false, false, false, false]);
        assert!(all.iter().all(|it| !it.is_reserved()));
        assert!(!admit(&connections, 2).is_reserved());
    }

    #[test]
    fn an_authenticated_or_busy_connection_is_not_evicted() {
        let connections = Connections::new(LIMITS);
        let all: Vec<_> = (0..4).map(|_| admit(&connections, 1)).collect();
        all[..3].iter().for_each(|it| it.authenticate());
        let busy = all[3].busy();
        assert!(admit(&connections, 1).is_reserved());
        drop(busy);
        assert!(!admit(&connections, 1).is_reserved());
        let evicted: Vec<_> = all.iter().map(|it| it.evicted().is_cancelled()).collect();
        assert_eq!(evicted, [false, false, false, true]);
    }

    #[test]
    fn at_the_total_limit_the_oldest_of_all_is_evicted() {
        let connections = Connections::new(LIMITS);
        let all: Vec<_> = [1, 1, 1, 2, 2, 3].map(|it| admit(&connections, it)).into();
        let _more = admit(&connections, 4);
        let evicted: Vec<_> = all.iter().map(|it| it.evicted().is_cancelled()).collect();
        assert_eq!(evicted, [true, false, false, false, false, false]);
        drop(all);
        assert_eq!(connections.table().open.len(), 1);
        assert_eq!(connections.table().peers.len(), 1);
    }

    #[test]
    fn few_unauthenticated_connections_stay() {
        let connections = Connections::new(LIMITS);
        let began = Instant::now();
        let all: Vec<_> = (0..4).map(|_| admit(&connections, 1)).collect();
        let later = Instant::now() + TOKEN_GRACE;
        all[0].end_grace(began + Duration::from_secs(1));
        assert!(!all[0].evicted().is_cancelled(), "they are young");
        all[1].authenticate();
        all[0].end_grace(later);
        let evicted: Vec<_> = all.iter().map(|it| it.evicted().is_cancelled()).collect();
        assert_eq!(evicted, [true, false, false, false]);
    }

    #[test]
    fn reserved_connections_are_few_and_each_address_has_some() {
        let connections = Connections::new(Limits { total: 0, ..LIMITS });
        let first = admit(&connections, 1);
        let greedy: Vec<_> = (0..100).map(|_| admit(&connections, 2)).collect();
        assert!(greedy.iter().all(|it| it.is_reserved()) && !first.evicted().is_cancelled());
        let left =
            |all: &[Arc<Permit>]| all.iter().filter(|it| !it.evicted().is_cancelled()).count();
        assert_eq!(left(&greedy), RESERVED_PER_PEER);
        let others: Vec<_> = (3..103).map(|it| admit(&connections, it)).collect();
        assert_eq!(left(&others), RESERVED);
        drop((first, greedy, others));
        assert!(connections.table().reserved.is_empty());
    }

    #[test]
    fn connections_of_a_proxy_count_towards_the_total_alone() {
        let connections = Connections::new(Limits {
            proxies: Proxies::new(vec!["10.0.0.1/32".parse().unwrap()]),
            ..LIMITS
        });
        let of_proxy: Vec<_> = (0..5).map(|_| admit(&connections, 1)).collect();
        of_proxy[0].end_grace(Instant::now() + TOKEN_GRACE);
        let other = admit(&connections, 2);
        let stays = |it: &Arc<Permit>| !it.is_reserved() && !it.evicted().is_cancelled();
        assert!(of_proxy.iter().all(stays) && stays(&other));
        // One that says from where it comes counts there.
        let moved = Arc::into_inner(of_proxy.into_iter().next().unwrap()).unwrap();
        let moved = moved.moved(peer(2), Instant::now());
        assert_eq!(
            (moved.client(&HeaderMap::new()), moved.is_of_proxy()),
            (peer(2), false)
        );
        assert_eq!(connections.table().peers[&peer(2)].len(), 2);
    }

    #[test]
    fn one_host_counts_as_one_address() {
        let of = |text: &str| host(text.parse().unwrap()).to_string();
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
