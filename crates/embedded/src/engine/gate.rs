//! The gate: conditions of the log for running a request.
//!
//! A write that is in memory and not in the log must not be visible. A client whose call failed would repeat the
//! call, find it done, and take it for accepted. While such a write exists, all reads and writes are refused. To
//! avoid this state, the log reserves space before each write. Without space the write is refused, and reads
//! continue.

use bytes::Bytes;

use crate::{
    command::{Flags, Spec},
    world::{Call, Client},
};

/// Bytes in the log beside each argument: its length, and two line ends.
const FRAME: u64 = 16;

/// Commands that read no data, by the first word of the name. They run whatever state the log is in. Of a
/// transaction, only its commands count.
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
    /// Returns an error if the state of the log does not permit the request.
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
        // A script may only read. Each of its writes is checked separately.
        if writes { room } else { Ok(()) }
    }

    /// Returns whether a request depends on data, whether it writes, and whether it is a script, which may write.
    fn kind(&mut self, spec: &Spec) -> (bool, bool, bool) {
        if spec.name != "exec" {
            return kind(spec);
        }
        let queued = queued(self.me()).map(|(spec, _)| kind(spec));
        let all = queued.fold((false, false, false), |all, one| {
            (all.0 | one.0, all.1 | one.1, all.2 | one.2)
        });
        // The state of watched keys is data, too.
        (all.0 || !self.me().watched.is_empty(), all.1, all.2)
    }

    /// Estimates the bytes of a request in the log.
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
