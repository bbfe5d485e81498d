//! Registration of a worker, which reserves its name. [`record`] is the record, [`process`] detects processes that have
//! ended, [`dead`] releases the jobs of such workers, and [`discover`] finds workers for clients.

mod dead;
mod discover;
mod policy;
mod process;
mod record;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meshwork_broker::{Backoff, Broker, Claimed, REGISTRATION_TTL, Registration, Tries};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Instance;
use meshwork_model::route::Listen;
use meshwork_model::time::iso;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Error;
use meshwork_worker::Faults;
use meshwork_worker::InFlight;
use meshwork_worker::dedicated_thread::{Never, best_effort, within};

pub(super) use dead::reclaim_dead;
use policy::Policy;
use process::Process;
use record::RegistrationRecord;
pub use record::WorkerInfo;

/// Number of refreshes until a registration expires: two may fail before the name is free.
const REFRESHES: u32 = 3;
/// Time for each worker of a pool between two refreshes, so that a pool refreshes five per second at most.
const REFRESH_EACH: Duration = Duration::from_millis(200);
/// The same for registrations with the time of the last heartbeat.
const SAID_EACH: Duration = Duration::from_millis(1_500);
/// Interval of registrations with the time of the last heartbeat, in a pool.
const SAID_FOR: Duration = Duration::from_secs(120);
/// Interval of checks whether the load has changed much.
const LOOK: Duration = Duration::from_secs(1);
/// A change of the load by this share of all slots is written at once.
const MUCH: f64 = 0.5;
/// Longest time of a call: longer than the retries of an overloaded server, so that its error is reported.
const CALL: Duration = Duration::from_secs(4);
/// Default of the longest wait for the end of another registration: it expires then if it is not refreshed.
pub(super) const PATIENCE: Duration = REGISTRATION_TTL.saturating_add(RETRY);
/// Interval of tries to register a name that another worker has.
const RETRY: Duration = Duration::from_millis(500);
/// Longest time for which the first registration is repeated while the server is unreachable.
const REPEAT_FOR: Duration = Duration::from_secs(10);

/// Names of a worker, and the constant fields of its record.
#[derive(Debug)]
pub(super) struct Present {
    /// Name for messages and key, one per type.
    names: Vec<(String, String)>,
    types: Vec<String>,
    named: bool,
    process: Process,
    incarnation: String,
    mark: String,
    slots: usize,
    /// Time of the start, in milliseconds since 1970, by the server's clock.
    started: u64,
    /// True if the worker claims no more jobs.
    quiet: AtomicBool,
    /// Runtimes that cannot start runs, with the reasons.
    faults: watch::Sender<Faults>,
    /// Number of workers of the process that register in turn.
    pool_size: u32,
}

impl Present {
    /// Creates the registration of a worker, which is not written yet.
    pub(super) fn new(keys: &JobKeys, listens: &[Listen], incarnation: &str, slots: usize) -> Self {
        let process = Process::own();
        let named = listens.iter().any(|listen| listen.instance.is_some());
        // An incarnation ends with a unique part.
        let random = incarnation.rsplit('.').next().unwrap_or(incarnation);
        let made_up = format!("{}-{random}", process.pid);
        let made_up: Instance = made_up.parse().expect("hexadecimal digits and a dash");
        let name = |listen: &Listen| {
            let instance = listen.instance.as_ref().unwrap_or(&made_up);
            let (script_type, group) = (&listen.script_type, &listen.group);
            (
                format!("{script_type} worker {instance} of group {group}"),
                keys.presence_key(script_type, group, instance),
            )
        };
        let types = listens.iter();
        Self {
            names: listens.iter().map(name).collect(),
            types: types.map(|listen| listen.script_type.to_string()).collect(),
            named,
            process,
            mark: record::mark(incarnation),
            incarnation: incarnation.to_owned(),
            slots,
            started: 0,
            quiet: AtomicBool::new(false),
            faults: watch::Sender::default(),
            pool_size: 1,
        }
    }

    /// Sets the number of workers in the pool. The more there are, the longer each registration lives, except under a
    /// name that others wait for.
    pub(super) fn share_calls(&mut self, pool_size: usize, patience: Duration) {
        if !self.named || patience.is_zero() {
            self.pool_size = u32::try_from(pool_size).unwrap_or(u32::MAX).max(1);
        }
    }

    /// Interval of refreshes.
    fn refresh(&self) -> Duration {
        (REGISTRATION_TTL / REFRESHES).max(REFRESH_EACH * self.pool_size)
    }

    /// Reserves the names. Names of ended processes of this host are taken over. A worker that may have ended, such as
    /// one in a container that was restarted, keeps its name until its registration expires, at most for `patience`.
    ///
    /// # Errors
    /// A live worker has one of the names; none is reserved then. Or the server is unreachable for [`REPEAT_FOR`].
    pub(super) async fn register(
        &mut self,
        broker: &Broker,
        patience: Duration,
    ) -> Result<(), Error> {
        let (began, mut backoff) = (Instant::now(), Backoff::new());
        let mut tries = Tries::within(REPEAT_FOR);
        let mut first: Option<Rival> = None;
        loop {
            match self.try_register(broker).await {
                Err(Error::Broker(error)) if tries.repeat(&error) => {
                    broker.outages().failed("register", &error);
                    backoff.wait().await;
                }
                Err(error) => {
                    self.depart(broker).await;
                    return Err(error);
                }
                Ok(Some(rival)) => {
                    let lives = first
                        .as_ref()
                        .is_some_and(|first| first.value != rival.value);
                    if rival.certain || lives || began.elapsed() >= patience {
                        self.depart(broker).await;
                        return Err(rival.into());
                    }
                    if first.is_none() {
                        tracing::info!(
                            name = rival.name,
                            "waiting for the end of the name's registration"
                        );
                    }
                    first.get_or_insert(rival);
                    tokio::time::sleep(RETRY).await;
                }
                Ok(None) => {
                    broker.outages().succeeded("register");
                    return Ok(());
                }
            }
        }
    }

    /// Reserves the names. Returns another worker that has one.
    async fn try_register(&mut self, broker: &Broker) -> Result<Option<Rival>, Error> {
        let now = within("register", CALL, broker.now()).await?;
        self.started = now;
        let value = self.value(now, 0);
        for (name, key) in &self.names {
            let say = |over| within("register", CALL, self.say(broker, key, &value, over));
            let Some(other) = say(None).await? else {
                continue;
            };
            let info = WorkerInfo::read("", &other);
            let gone = info
                .process()
                .is_some_and(|process| process.is_gone(&self.process));
            if !gone {
                return Ok(Some(self.rival(name, other)));
            }
            if let Some(worker) = info.dead(&self.process) {
                // Before the record is overwritten, since it identifies the jobs.
                let dead = BTreeSet::from([worker.to_owned()]);
                within("expire_workers", CALL, broker.expire_workers(&dead)).await?;
            }
            if let Some(other) = say(Some(&other)).await? {
                return Ok(Some(self.rival(name, other)));
            }
            tracing::info!(name, "worker registered under the name of a dead one");
        }
        Ok(None)
    }

    fn rival(&self, name: &str, value: String) -> Rival {
        let process = WorkerInfo::read("", &value).process();
        Rival {
            name: name.to_owned(),
            certain: process.is_some_and(|process| process.is_alive(&self.process)),
            value,
        }
    }

    /// Refreshes the registration until the connection breaks. With `seldom`, an unchanged registration is prolonged
    /// without a script.
    pub(super) async fn keep(
        &self,
        broker: &Broker,
        in_flight: &InFlight<Claimed>,
        seldom: bool,
    ) -> Result<Never, meshwork_broker::Error> {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last: Option<(Instant, (usize, bool))> = None;
        let mut faults = self.faults.subscribe();
        let mut said_at: Option<Instant> = None;
        let (mut lost, mut policy) = (false, Policy::of(self.pool_size));
        let (refresh, said_for) = (self.refresh(), SAID_FOR.max(SAID_EACH * self.pool_size));
        // The refreshes of a pool are spread: the first one comes early.
        let mut early = refresh.mul_f64(rand::random_range(0.0..1.0));
        let mut said_early = said_for.mul_f64(rand::random_range(0.0..1.0));
        let keys: Vec<_> = self.names.iter().map(|(_, key)| key.as_str()).collect();
        loop {
            ticks.tick().await;
            policy.check(broker).await;
            let (running, quiet) = (in_flight.count(), self.quiet.load(Ordering::Relaxed));
            let changed = faults.has_changed().unwrap_or_default();
            faults.mark_unchanged();
            last = last.filter(|_| !changed);
            if last.is_some_and(|(at, (said, was_quiet))| {
                at.elapsed() + early < refresh
                    && !self.is_much(running.abs_diff(said))
                    && was_quiet == quiet
            }) {
                continue;
            }
            let is_same = last.is_some_and(|(_, said)| said == (running, quiet));
            if seldom
                && is_same
                && !lost
                && said_at.is_some_and(|at| at.elapsed() + said_early < said_for)
            {
                let held = broker.renew_registration(&keys, &self.mark, refresh * REFRESHES);
                if best_effort(broker.outages(), "present", CALL, held).await? == Some(true) {
                    last = Some((Instant::now(), (running, quiet)));
                    early = Duration::ZERO;
                    continue;
                }
            }
            let said = self.say_all(broker, running, lost);
            if let Some(now_lost) = best_effort(broker.outages(), "present", CALL, said).await? {
                lost = now_lost;
                if said_at.replace(Instant::now()).is_some() {
                    (early, said_early) = (Duration::ZERO, Duration::ZERO);
                }
                last = Some((Instant::now(), (running, quiet)));
            }
        }
    }

    /// Writes the record under all names. Returns true if another worker has one of them, and warns of it once.
    async fn say_all(
        &self,
        broker: &Broker,
        in_flight: usize,
        known: bool,
    ) -> Result<bool, meshwork_broker::Error> {
        let value = self.value(broker.now().await?, in_flight);
        let mut lost = false;
        for (name, key) in &self.names {
            if let Some(other) = self.say(broker, key, &value, None).await? {
                lost = true;
                if !known {
                    let error = Error::from(self.rival(name, other));
                    tracing::warn!(%error, "this worker has lost its name");
                }
            }
        }
        Ok(lost)
    }

    /// Marks the worker as quiet, which others see within a second.
    pub(super) fn set_quiet(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Sets the runtimes that cannot start runs, which others see within a second.
    pub(super) fn set_faults(&self, faults: &Faults) {
        self.faults.send_if_modified(|known| {
            let changed = known != faults;
            known.clone_from(faults);
            changed
        });
    }

    fn is_much(&self, change: usize) -> bool {
        change > 0 && change as f64 >= self.slots as f64 * MUCH
    }

    /// Releases the names. Without an answer of the server, they expire.
    pub(super) async fn depart(&self, broker: &Broker) {
        for (name, key) in &self.names {
            let presence = self.presence(key, "", None);
            if let Err(error) = within("depart", CALL, broker.deregister(presence)).await {
                tracing::debug!(name, %error, "worker not deregistered: its name stays reserved until the registration expires");
                return;
            }
        }
    }

    async fn say(
        &self,
        broker: &Broker,
        key: &str,
        value: &str,
        over: Option<&str>,
    ) -> Result<Option<String>, meshwork_broker::Error> {
        let presence = self.presence(key, value, over);
        let live = self.refresh() * REFRESHES;
        broker.register_for(presence, live).await
    }

    fn presence<'a>(
        &'a self,
        key: &'a str,
        value: &'a str,
        over: Option<&'a str>,
    ) -> Registration<'a> {
        Registration {
            key,
            value,
            mark: &self.mark,
            over,
        }
    }

    fn value(&self, now: u64, in_flight: usize) -> String {
        let faults = self.faults.borrow();
        let said = RegistrationRecord {
            faults: &faults,
            pid: self.process.pid,
            hostname: &self.process.hostname,
            started_at: &iso(self.started),
            version: env!("CARGO_PKG_VERSION"),
            capabilities: &self.types,
            last_heartbeat: &iso(now),
            incarnation: &self.incarnation,
            in_flight,
            slots: self.slots,
            quiet: self.quiet.load(Ordering::Relaxed),
            named: self.named,
            pid_started: self.process.started,
            pid_counted_in: self.process.counted_in.as_deref(),
        };
        serde_json::to_string(&said).expect("numbers and texts are JSON")
    }
}

/// Another worker that has a name.
#[derive(Debug)]
struct Rival {
    name: String,
    /// Its record.
    value: String,
    /// True if its process certainly runs.
    certain: bool,
}

impl From<Rival> for Error {
    fn from(rival: Rival) -> Self {
        let by = WorkerInfo::read("", &rival.value);
        let unknown = || "unknown".to_owned();
        Self::WorkerNameTaken {
            name: rival.name,
            pid: by.pid.map_or_else(unknown, |pid| pid.to_string()),
            hostname: by.hostname.unwrap_or_else(unknown),
            since: by.started_at.unwrap_or_else(unknown),
            certain: rival.certain,
        }
    }
}
