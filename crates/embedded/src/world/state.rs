//! The state under the lock, and a call on it: data, clients, waits, watches, subscriptions, and the log.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Client, Clients, Clock, Commands, Journal,
    blocking::Waiters,
    pubsub::{Message, PubSub},
    settings::Settings,
};
use crate::{
    Protocol,
    command::{Ctx, Outcome, Spec},
    script::Scripts,
    store::{Effect, Store},
};

/// Time without a refused write after which the log counts as recovered: on a full disk small writes succeed between
/// large ones.
const QUIET: Duration = Duration::from_secs(10);

/// The engine without its scripts.
pub(crate) struct World {
    pub(crate) commands: &'static Commands,
    pub(crate) store: Store,
    /// Writes that are not in the log yet.
    pub(crate) effects: Vec<Effect>,
    pub(crate) clients: Clients,
    pub(crate) waiters: Waiters,
    pub(crate) pubsub: PubSub,
    /// Messages about writes that are not in the log yet, which are delivered after them.
    pub(crate) unsent: Vec<Message>,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) journal: Option<Box<dyn Journal>>,
    /// Reason why the log refuses writes; the engine refuses them too, until this is cleared.
    pub(crate) trouble: Option<Trouble>,
    /// Refused writes since the last log line.
    refusals: Option<Refusals>,
    pub(crate) started_ms: u64,
    pub(crate) commands_done: u64,
    /// Number of scripts that ran and their total duration in microseconds, by the command that ran them.
    pub(crate) scripts_done: BTreeMap<&'static str, (u64, u64)>,
}

impl World {
    pub(crate) fn new(clock: Clock, commands: &'static Commands) -> Self {
        Self {
            commands,
            store: Store::new(),
            effects: Vec::new(),
            clients: Clients::default(),
            waiters: Waiters::default(),
            pubsub: PubSub::default(),
            unsent: Vec::new(),
            settings: Settings::default(),
            started_ms: clock.now_ms(),
            clock,
            journal: None,
            trouble: None,
            refusals: None,
            commands_done: 0,
            scripts_done: BTreeMap::new(),
        }
    }

    /// Appends the effects so far to the log as one unit, then delivers their messages. Clients must not see effects
    /// before: those that could not be logged stay in `effects`, and until they are logged, no command that depends
    /// on data is answered.
    pub(crate) fn log_effects(&mut self) -> Result<(), String> {
        if !self.effects.is_empty() {
            if let Some(journal) = &mut self.journal
                && let Err(error) = journal.append(&self.effects)
            {
                return Err(self.in_trouble(&error));
            }
            self.effects.clear();
            if self.trouble.is_some() {
                // Space for these does not mean space for more.
                let _ = self.make_room(0);
            }
        }
        for message in std::mem::take(&mut self.unsent) {
            self.publish(&message);
        }
        Ok(())
    }

    /// Reserves space in the log for a write of about `bytes`. The error is for the client, and means that the write
    /// must not be done.
    pub(crate) fn make_room(&mut self, bytes: u64) -> Result<(), String> {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.make_room(bytes)
        {
            return Err(self.in_trouble(&error));
        }
        self.trouble = None;
        let over = |refusals: &mut Refusals| refusals.last.elapsed() >= QUIET;
        if let Some(refusals) = self.refusals.take_if(over) {
            tracing::warn!(
                failures = refusals.count,
                "writes accepted again: the log can be written"
            );
        }
        Ok(())
    }

    /// Records that the log refuses writes, which is logged once.
    fn in_trouble(&mut self, error: &std::io::Error) -> String {
        let text = format!("MISCONF Errors writing to the AOF file: {error}");
        if self.refusals.is_none() {
            tracing::error!(%error, "writes refused: the log cannot be written");
        }
        self.refusals = Some(Refusals {
            count: self.refusals.as_ref().map_or(0, |known| known.count) + 1,
            last: Instant::now(),
        });
        self.trouble = Some(Trouble { text: text.clone() });
        text
    }

    /// Logs the effects of a command, script or transaction, then serves waiting clients.
    pub(crate) fn settle(&mut self, now_us: u64) -> Result<(), String> {
        self.log_effects()?;
        self.serve_ready(now_us);
        Ok(())
    }
}

/// The state of a log that refuses writes.
pub(crate) struct Trouble {
    /// Error for clients.
    pub(crate) text: String,
}

/// Refused writes.
struct Refusals {
    count: u64,
    last: Instant,
}

/// Origin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client, directly.
    Client,
    /// A transaction of a client.
    Transaction,
    /// A script.
    Script,
}

/// One call: the state for a command.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a mut World,
    /// `None` in a script.
    pub(crate) scripts: Option<&'a mut Option<Scripts>>,
    /// The id of the client.
    pub(crate) client: u64,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    /// Constant during a command, script or transaction.
    pub(crate) now_us: u64,
    pub(crate) origin: Origin,
    pub(crate) woken_by: Option<Bytes>,
}

impl<'a> Call<'a> {
    /// Returns a call that no client makes.
    pub(crate) fn detached(world: &'a mut World, client: u64, now_us: u64) -> Self {
        let (db, protocol) = (0, Protocol::Resp2);
        let origin = Origin::Client;
        Self {
            world,
            scripts: None,
            client,
            db,
            protocol,
            now_us,
            origin,
            woken_by: None,
        }
    }

    pub(crate) fn with(self, db: usize, protocol: Protocol) -> Self {
        Self {
            db,
            protocol,
            ..self
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    /// Runs a command whose number of arguments has been checked.
    pub(crate) fn run(&mut self, spec: &'static Spec, args: &[Bytes]) -> Outcome {
        let Some(run) = spec.data else {
            let run = (self.world.commands.session)(spec);
            return run.expect("a command needs the data or the session")(self, args);
        };
        let world = &mut *self.world;
        let mut ctx = Ctx {
            store: &mut world.store,
            db: self.db,
            now_ms: self.now_us / 1_000,
            clock_ms: match self.now_us {
                0 => world.clock.now_ms(),
                now_us => now_us / 1_000,
            },
            in_script: self.origin == Origin::Script,
            resp3: self.protocol == Protocol::Resp3,
            woken_by: self.woken_by.clone(),
            effects: &mut world.effects,
        };
        run(&mut ctx, args)
    }

    /// Returns the calling client.
    pub(crate) fn me(&mut self) -> &mut Client {
        self.world
            .clients
            .get_mut(self.client)
            .expect("a client lives as long as its session")
    }
}
