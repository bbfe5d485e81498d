//! Clients that wait for keys: their order, and the return of an element that was popped for a client that has gone.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Call, World};
use crate::{
    Protocol, Reply,
    command::{Spec, Stop},
};

/// A waiting client.
struct Waiter {
    db: usize,
    protocol: Protocol,
    spec: &'static Spec,
    args: Vec<Bytes>,
    keys: Vec<Bytes>,
    /// Sequence number of the wait: the order of service.
    turn: u64,
    reply: oneshot::Sender<Reply>,
}

/// The kind of element that a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// An element of a list, which serves one client.
    List,
    /// Entries of a stream, which may serve all clients.
    Stream,
}

impl For {
    fn of(spec: &Spec) -> Self {
        match spec.name {
            "xread" | "xreadgroup" => Self::Stream,
            _ => Self::List,
        }
    }
}

/// The clients that wait for a key, by sequence number.
#[derive(Default)]
struct Line {
    lists: BTreeMap<u64, u64>,
    streams: BTreeMap<u64, u64>,
}

impl Line {
    fn of(&self, what: For) -> &BTreeMap<u64, u64> {
        match what {
            For::List => &self.lists,
            For::Stream => &self.streams,
        }
    }

    fn of_mut(&mut self, what: For) -> &mut BTreeMap<u64, u64> {
        match what {
            For::List => &mut self.lists,
            For::Stream => &mut self.streams,
        }
    }
}

/// All waiting clients, and their keys.
#[derive(Default)]
pub(crate) struct Waiters {
    by_client: HashMap<u64, Waiter>,
    by_key: HashMap<(usize, Bytes), Line>,
    turns: u64,
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.by_client.len()
    }

    pub(crate) fn has(&self, client: u64) -> bool {
        self.by_client.contains_key(&client)
    }

    /// Removes a client without a reply.
    pub(crate) fn forget(&mut self, client: u64) {
        self.take(client);
    }

    /// Ends the wait of a client with `reply`, and returns whether it was waiting.
    pub(crate) fn answer(&mut self, client: u64, reply: Reply) -> bool {
        self.take(client)
            .is_some_and(|waiter| waiter.reply.send(reply).is_ok())
    }

    fn take(&mut self, client: u64) -> Option<Waiter> {
        let waiter = self.by_client.remove(&client)?;
        for key in &waiter.keys {
            let place = (waiter.db, key.clone());
            if let Some(line) = self.by_key.get_mut(&place) {
                line.of_mut(For::of(waiter.spec)).remove(&waiter.turn);
                if line.lists.is_empty() && line.streams.is_empty() {
                    self.by_key.remove(&place);
                }
            }
        }
        Some(waiter)
    }

    /// Returns the first client that waits for a key with a sequence number after `turn`.
    fn next(&self, place: &(usize, Bytes), what: For, turn: u64) -> Option<(u64, u64)> {
        let line = self.by_key.get(place)?;
        let mut later = line.of(what).range(turn + 1..);
        later.next().map(|(turn, client)| (*turn, *client))
    }
}

impl Call<'_> {
    /// Lets the client of this call wait until one of `keys` serves it.
    pub(crate) fn wait(
        &mut self,
        spec: &'static Spec,
        args: Vec<Bytes>,
        keys: Vec<Bytes>,
    ) -> oneshot::Receiver<Reply> {
        let (reply, receiver) = oneshot::channel();
        let waiters = &mut self.world.waiters;
        waiters.turns += 1;
        for key in &keys {
            let line = waiters.by_key.entry((self.db, key.clone())).or_default();
            line.of_mut(For::of(spec))
                .insert(waiters.turns, self.client);
        }
        let (db, protocol, turn) = (self.db, self.protocol, waiters.turns);
        waiters.by_client.insert(
            self.client,
            Waiter {
                db,
                protocol,
                spec,
                args,
                keys,
                turn,
                reply,
            },
        );
        receiver
    }
}

impl World {
    /// Serves clients that wait for keys that became ready, first come first served, and for keys that become ready
    /// by it (BLMOVE). This happens after the whole command, script or transaction, as in Redis.
    pub(super) fn serve_ready(&mut self, now_us: u64) {
        loop {
            let ready = self.store.take_ready();
            if ready.is_empty() {
                break;
            }
            for (at, place) in ready.iter().enumerate() {
                if !self.effects.is_empty() && self.log_effects().is_err() {
                    // Clients of the other keys wait until the log accepts writes.
                    self.store.still_ready(&ready[at..]);
                    return;
                }
                self.serve_line(place, For::List, now_us);
                self.serve_line(place, For::Stream, now_us);
            }
        }
        // These are returned elements. If the log refuses them, the next write gets the error.
        let _ = self.log_effects();
    }

    /// Serves clients that wait for a key. An entry of a stream serves all; an element of a list that the first
    /// client does not take serves none.
    fn serve_line(&mut self, place: &(usize, Bytes), what: For, now_us: u64) {
        let mut turn = 0;
        while let Some((next, client)) = self.waiters.next(place, what, turn) {
            turn = next;
            if !self.serve(client, &place.1, now_us) && what == For::List {
                break;
            }
        }
    }

    /// Serves one client, if the key can, and returns whether it did.
    fn serve(&mut self, id: u64, key: &Bytes, now_us: u64) -> bool {
        let Some(waiter) = self.waiters.by_client.get(&id) else {
            return true;
        };
        let (db, protocol, spec) = (waiter.db, waiter.protocol, waiter.spec);
        let args = waiter.args.clone();
        let mut call = Call::detached(self, id, now_us).with(db, protocol);
        call.woken_by = Some(key.clone());
        let reply = match call.run(spec, &args) {
            Err(Stop::Wait { .. }) => return false,
            Err(Stop::Error(text)) => Reply::Error(text),
            Ok(reply) => reply,
        };
        let reply = match self.log_effects() {
            Ok(()) => reply,
            Err(trouble) => {
                self.undo_pop(db, &args, &reply, now_us);
                Reply::Error(trouble)
            }
        };
        if let Some(waiter) = self.waiters.take(id)
            && let Err(reply) = waiter.reply.send(reply)
        {
            // Its future was dropped, and has not removed the wait yet.
            self.undo_pop(db, &args, &reply, now_us);
        }
        true
    }

    /// Returns elements that were popped for a client that will never get them. An element that BLMOVE moved stays,
    /// because it is in a list. Entries that XREADGROUP delivered are pending for their consumer.
    pub(crate) fn undo_pop(&mut self, db: usize, args: &[Bytes], reply: &Reply, now_us: u64) {
        let Some(undo) = undo(args, reply) else {
            return;
        };
        let Ok(spec) = (self.commands.find)(&undo) else {
            return;
        };
        let outcome = Call::detached(self, 0, now_us)
            .with(db, Protocol::Resp2)
            .run(spec, &undo);
        if let Err(Stop::Error(error)) = outcome {
            tracing::error!(
                error,
                "an element popped for a client that left cannot go back"
            );
        }
    }
}

/// Returns the command that undoes a blocking pop.
fn undo(args: &[Bytes], reply: &Reply) -> Option<Vec<Bytes>> {
    let Reply::Array(items) = reply else {
        return None;
    };
    let name = args.first()?.to_ascii_lowercase();
    let (Reply::Bulk(key), rest) = items.split_first()? else {
        return None;
    };
    let from_left = |where_at: usize| args.get(where_at).is_some_and(|word| word.len() == 4);
    let (verb, popped): (&'static str, Vec<Bytes>) = match (name.as_slice(), rest) {
        (b"blpop", [Reply::Bulk(element)]) => ("lpush", vec![element.clone()]),
        (b"brpop", [Reply::Bulk(element)]) => ("rpush", vec![element.clone()]),
        (b"bzpopmin" | b"bzpopmax", [member, score]) => ("zadd", vec![text(score)?, text(member)?]),
        (b"blmpop", [Reply::Array(elements)]) => {
            // BLMPOP timeout numkeys key … LEFT|RIGHT [COUNT n]: the end follows the keys.
            let keys: usize = std::str::from_utf8(args.get(2)?).ok()?.parse().ok()?;
            let verb = if from_left(3 + keys) {
                "lpush"
            } else {
                "rpush"
            };
            (verb, elements.iter().rev().filter_map(text).collect())
        }
        (b"bzmpop", [Reply::Array(pairs)]) => ("zadd", scored(pairs)?),
        _ => return None,
    };
    let head = [Bytes::from_static(verb.as_bytes()), key.clone()];
    Some(head.into_iter().chain(popped).collect())
}

/// Returns pairs of member and score as arguments of ZADD.
fn scored(pairs: &[Reply]) -> Option<Vec<Bytes>> {
    let mut args = Vec::with_capacity(pairs.len() * 2);
    for pair in pairs {
        let Reply::Array(pair) = pair else {
            return None;
        };
        let [member, score] = pair.as_slice() else {
            return None;
        };
        args.push(text(score)?);
        args.push(text(member)?);
    }
    Some(args)
}

fn text(reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes.clone()),
        Reply::Double(value) => Some(Bytes::from(crate::resp::double_text(*value))),
        _ => None,
    }
}
