//! The gate: what the log has to have, or to have room for, before a request may run.
//!
//! A write that is in memory and not in the log must not be seen: a client whose call failed would
//! repeat it, find it done, and take it for accepted. So as long as one is there, whatever reads or
//! writes data is refused. That this does not happen, the log is asked for room before a write: where
//! there is none the write is not done, and readers go on.

use bytes::Bytes;

use crate::{
    command::{Flags, Spec},
    world::{Call, Client},
};

/// Bytes that the log needs beside each argument: its length, and the ends of two lines.
const FRAME: u64 = 16;

/// What looks at no data, by the first word of the name: a session goes on with it whatever the log
/// does. Of a transaction, only what is in it counts.
const SESSION_ONLY: [&str; 26] = [
    "auth",
    "bgrewriteaof",
    "client",
    "command",
    "config",
    "discard",
    "echo",
    "hello",
    "info",
    "lastsave",
    "multi",
    "ping",
    "psubscribe",
    "pubsub",
    "punsubscribe",
    "quit",
    "reset",
    "role",
    "script",
    "select",
    "ssubscribe",
    "subscribe",
    "sunsubscribe",
    "time",
    "unsubscribe",
    "unwatch",
];

impl Call<'_> {
    /// An error for the client if the request must not run as things are with the log.
    pub(super) fn admit_by_log(&mut self, spec: &Spec, args: &[Bytes]) -> Result<(), String> {
        let (depends, writes, scripts) = self.kind(spec);
        if !self.world.effects.is_empty()
            && let Err(trouble) = self.world.settle(self.now_us)
            && depends
        {
            return Err(trouble);
        }
        if !writes && !scripts {
            return Ok(());
        }
        let bytes = self.bytes(spec, args);
        let room = self.world.make_room(bytes);
        // A script may read only. Each write of it is refused by itself.
        if writes { room } else { Ok(()) }
    }

    /// Whether a request depends on data, whether it writes, and whether it is a script, which may.
    fn kind(&mut self, spec: &Spec) -> (bool, bool, bool) {
        if spec.name != "exec" {
            return kind(spec);
        }
        let queued = queued(self.me()).map(|(spec, _)| kind(spec));
        let all = queued.fold((false, false, false), |all, one| {
            (all.0 | one.0, all.1 | one.1, all.2 | one.2)
        });
        // Whether a key has changed that it watches is data, too.
        (all.0 || !self.me().watched.is_empty(), all.1, all.2)
    }

    /// About how much the log will take of a request.
    fn bytes(&mut self, spec: &Spec, args: &[Bytes]) -> u64 {
        let size = |args: &[Bytes]| -> u64 {
            let sizes = args.iter().map(|arg| arg.len() as u64 + FRAME);
            sizes.sum()
        };
        match spec.name {
            "exec" => queued(self.me()).map(|(_, args)| size(args)).sum(),
            _ => size(args),
        }
    }
}

fn queued(me: &Client) -> impl Iterator<Item = &(&'static Spec, Vec<Bytes>)> {
    me.multi.iter().flat_map(|queue| &queue.commands)
}

fn kind(spec: &Spec) -> (bool, bool, bool) {
    let group = spec.name.split('|').next().unwrap_or_default();
    let session = spec.data.is_none() && SESSION_ONLY.contains(&group);
    let script = matches!(spec.name, "eval" | "evalsha");
    (!session, spec.flags.has(Flags::WRITE), script)
}
