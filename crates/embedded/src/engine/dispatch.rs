//! Dispatch of a request: the checks in the order of Redis, queueing after MULTI, blocking, logging.

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Core;
use crate::{
    Reply,
    command::{Flags, Spec, Stop},
    session_command::find,
    world::{Call, QUEUE_MAX, Replies},
};

/// The progress of a request.
pub(super) enum Step {
    Done(Reply),
    Waits {
        timeout_ms: u64,
        reply: oneshot::Receiver<Reply>,
    },
}

/// Commands that are not queued after MULTI.
const NEVER_QUEUED: [&str; 6] = ["exec", "discard", "multi", "watch", "quit", "reset"];

/// Commands that RESP2 permits to a subscribed client.
const WHILE_LISTENING: [&str; 9] = [
    "ping",
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "quit",
    "reset",
];

impl Core {
    /// Runs one request of a client.
    pub(super) fn request(&mut self, id: u64, args: &[Bytes]) -> Step {
        let now_us = self.world.clock.now_us();
        let Some(client) = self.world.clients.get_mut(id) else {
            return Step::Done(Reply::Nothing);
        };
        if client.is_over() || args.is_empty() {
            return Step::Done(Reply::Nothing);
        }
        if client.replies == Replies::SkipNext {
            client.replies = Replies::Skip;
        }
        client.last_ms = now_us / 1_000;
        let (db, protocol) = (client.db, client.protocol);
        self.world.commands_done += 1;
        let scripts = Some(&mut self.scripts);
        let mut call = Call {
            scripts,
            ..Call::detached(&mut self.world, id, now_us)
        };
        (call.db, call.protocol) = (db, protocol);
        match call.request(args) {
            Ok(Step::Done(reply)) => Step::Done(self.mute(id, reply)),
            Ok(waits) => waits,
            Err(text) => Step::Done(self.mute(id, Reply::Error(text))),
        }
    }

    /// Drops the reply if the client has switched replies off.
    pub(super) fn mute(&mut self, id: u64, reply: Reply) -> Reply {
        let Some(client) = self.world.clients.get_mut(id) else {
            return reply;
        };
        match client.replies {
            Replies::On => reply,
            Replies::Off | Replies::SkipNext => Reply::Nothing,
            Replies::Skip => {
                client.replies = Replies::On;
                Reply::Nothing
            }
        }
    }
}

impl Call<'_> {
    fn request(&mut self, args: &[Bytes]) -> Result<Step, String> {
        let spec = match find(args) {
            Ok(spec) => spec,
            Err(text) => return Err(self.refuse(None, text)),
        };
        if let Err(text) = self.admit(spec, args) {
            return Err(self.refuse(Some(spec), text));
        }
        self.me().last_command = spec.name;
        if self.me().multi.is_some() && !NEVER_QUEUED.contains(&spec.name) {
            return self.queue(spec, args);
        }
        let unlogged = self.world.effects.len();
        let outcome = self.run(spec, args);
        let wrote = self.world.effects.len() > unlogged;
        self.keep_state();
        let reply = match outcome {
            Ok(reply) => reply,
            Err(Stop::Error(text)) => Reply::Error(text),
            Err(Stop::Wait {
                keys,
                timeout_ms,
                again,
                ..
            }) => {
                let args = again.unwrap_or_else(|| args.to_vec());
                let reply = self.wait(spec, args, keys);
                // Nothing was written except the removal of an expired key; the next write reports the failure.
                let _ = self.world.settle(self.now_us);
                return Ok(Step::Waits { timeout_ms, reply });
            }
        };
        match self.world.settle(self.now_us) {
            // A read's reply is correct even if the expiry of a key could not be logged.
            Err(trouble) if wrote && !spec.flags.has(Flags::READONLY) => Err(trouble),
            _ => Ok(Step::Done(reply)),
        }
    }

    /// Stores the changes of the client's own state by the command.
    fn keep_state(&mut self) {
        let (db, protocol) = (self.db, self.protocol);
        let me = self.me();
        (me.db, me.protocol) = (db, protocol);
    }

    /// Checks the command before it is run or queued.
    fn admit(&mut self, spec: &'static Spec, args: &[Bytes]) -> Result<(), String> {
        spec.check_arity(args.len())?;
        let in_multi = self.me().multi.is_some();
        if in_multi && spec.flags.has(Flags::NO_MULTI) {
            return Err("ERR Command not allowed inside a transaction".to_owned());
        }
        self.admit_by_log(spec, args)?;
        if self.me().only_listens() && !WHILE_LISTENING.contains(&spec.name) {
            return Err(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                spec.name
            ));
        }
        Ok(())
    }

    /// Fails the open transaction after a refused command, and returns the error.
    fn refuse(&mut self, spec: Option<&Spec>, text: String) -> String {
        if let Some(queue) = &mut self.me().multi {
            queue.broken = true;
        }
        if spec.is_none_or(|spec| spec.name != "exec") {
            return text;
        }
        self.end_transaction();
        let reason = text.strip_prefix("ERR ").unwrap_or(&text);
        format!("EXECABORT Transaction discarded because of: {reason}")
    }

    fn queue(&mut self, spec: &'static Spec, args: &[Bytes]) -> Result<Step, String> {
        let queue = self.me().multi.get_or_insert_default();
        if queue.commands.len() >= QUEUE_MAX {
            queue.broken = true;
            return Err(format!(
                "ERR a transaction holds at most {QUEUE_MAX} commands"
            ));
        }
        if !queue.broken {
            queue.commands.push((spec, args.to_vec()));
        }
        Ok(Step::Done(Reply::Status("QUEUED".to_owned())))
    }
}
