//! What the lock guards, and one call on it: the data, the clients, who waits, watches and
//! listens, and the log that is told of every write.

use bytes::Bytes;

use super::{Clients, Clock, Journal, blocking::Waiters, pubsub::PubSub, settings::Settings};
use crate::{
    Protocol,
    command::{Ctx, Effect, Outcome, Run, Spec},
    script::Scripts,
    store::Store,
};

/// The engine without its scripts.
pub(crate) struct World {
    pub(crate) store: Store,
    /// The writes that are not in the log yet.
    pub(crate) effects: Vec<Effect>,
    pub(crate) clients: Clients,
    pub(crate) waiters: Waiters,
    pub(crate) pubsub: PubSub,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) journal: Option<Box<dyn Journal>>,
    /// Why the log does not take writes, as the error that clients get. What was done and could
    /// not be logged stays in `effects`; nothing more is written until it is in the log.
    pub(crate) trouble: Option<String>,
    pub(crate) started_ms: u64,
    pub(crate) commands_done: u64,
}

impl World {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            store: Store::new(),
            effects: Vec::new(),
            clients: Clients::default(),
            waiters: Waiters::default(),
            pubsub: PubSub::default(),
            settings: Settings::default(),
            started_ms: clock.now_ms(),
            clock,
            journal: None,
            trouble: None,
            commands_done: 0,
        }
    }

    /// Writes the effects so far to the log as one unit. Nobody may be told of them before.
    pub(super) fn log_effects(&mut self) -> Result<(), String> {
        if self.effects.is_empty() {
            return Ok(());
        }
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.append(&self.effects)
        {
            let trouble = format!("MISCONF Errors writing to the AOF file: {error}");
            if self.trouble.is_none() {
                tracing::error!(%error, "the log takes no writes");
            }
            self.trouble = Some(trouble.clone());
            return Err(trouble);
        }
        self.effects.clear();
        self.trouble = None;
        Ok(())
    }

    /// After a command, script or transaction: logs what it did, then serves who waits for it.
    pub(super) fn settle(&mut self, now_us: u64) -> Result<(), String> {
        self.log_effects()?;
        self.serve_ready(now_us);
        Ok(())
    }
}

/// Where a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client, directly.
    Client,
    /// A transaction of a client.
    Transaction,
    /// A script.
    Script,
}

/// One call: what a command works on.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a mut World,
    /// None within a script.
    pub(crate) scripts: Option<&'a mut Option<Scripts>>,
    /// The id of the client.
    pub(crate) client: u64,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    /// Stands still for the whole of a command, script or transaction.
    pub(crate) now_us: u64,
    pub(crate) origin: Origin,
    pub(super) woken_by: Option<Bytes>,
}

impl<'a> Call<'a> {
    /// A call that no client makes at this moment.
    pub(super) fn detached(world: &'a mut World, client: u64, now_us: u64) -> Self {
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

    pub(super) fn with(self, db: usize, protocol: Protocol) -> Self {
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
        match spec.run {
            Run::Session(run) => run(self, args),
            Run::Data(run) => {
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
        }
    }

    /// The client that calls.
    pub(crate) fn me(&mut self) -> &mut super::Client {
        self.world
            .clients
            .get_mut(self.client)
            .expect("a client lives as long as its session")
    }
}
