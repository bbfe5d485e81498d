//! Faults: kills, pauses, cut connections, missing rights, full memory and full disks, injected in turn while the jobs run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use rustix::process::Signal;

use super::jobs::Kind as Job;
use super::processes::alive;
use super::starts::Written;
use super::store::Store;
use super::submit::Submitting;
use super::{Engine, LEASE, failed};
use crate::chaos::ChaosError;
use crate::chaos::fleet::ledger::{Trouble, What};
use crate::chaos::fleet::troop::{Member, Quarters, peace};
use crate::chaos::fleet::troubles::now;

/// Longest pause between two faults.
const CALM: Duration = Duration::from_millis(600);
/// Pause of a worker that is to lose its jobs by it …
const LONG_PAUSE: Duration = LEASE.saturating_add(Duration::from_millis(1500));
/// … and one that is not: less than what is left of a lease before the next renewal.
const SHORT_PAUSE: Duration = Duration::from_secs(3);
/// Downtime of a killed server.
const AWAY: Duration = Duration::from_millis(700);
/// Duration of a full memory or disk: calls are refused and repeated, and no lease ends meanwhile.
const FULL: Duration = Duration::from_millis(1500);
/// Faults that may take jobs from their workers, in a row. A job that loses its worker five times ends in error …
const IN_A_ROW: usize = 4;
/// … so that after these the jobs get the time to run.
const REST: Duration = LEASE.saturating_mul(2);
/// Time after which no process of a killed worker's runs may live. No second run begins before its lease has expired,
/// of which a renewal has left at least two thirds.
const GONE: Duration = Duration::from_millis(1500);
/// Longest wait for a moment at which a fault does harm.
const MOMENT: Duration = Duration::from_secs(3);
/// Greatest age of a long run that still lasts for longer than [`GONE`].
const FRESH: Duration = Duration::from_millis(1500);
/// Interval of polling.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KillWorker,
    /// `kill -9` of the worker that owns the embedded engine.
    KillOwner,
    /// The lock of the data directory is deleted, and its owner ends itself.
    DeleteLock,
    LongPause,
    ShortPause,
    KillSubmitter,
    KillServer,
    ForgetScripts,
    CutConnections,
    FullMemory,
    /// The server's ACL takes a right away.
    MissingRight,
    FullDisk,
    /// A full disk, and a kill of its writer before there is room again.
    FullDiskAndKill,
    /// A job that kills each worker that runs it.
    KillerJob,
    /// A further worker, whose folder for temporary files does not exist.
    SickWorker,
}

/// Faults of a redis-server, in turn. Those that do the most harm come first, so that a short play has them.
const SERVER: [Kind; 16] = [
    Kind::KillWorker,
    Kind::FullDiskAndKill,
    Kind::MissingRight,
    Kind::SickWorker,
    Kind::KillerJob,
    Kind::CutConnections,
    Kind::LongPause,
    Kind::FullMemory,
    Kind::ForgetScripts,
    Kind::KillSubmitter,
    Kind::KillServer,
    Kind::ShortPause,
    Kind::KillWorker,
    Kind::MissingRight,
    Kind::CutConnections,
    Kind::FullMemory,
];
/// Rights of which one is taken away.
const RIGHTS: [&str; 10] = [
    "lpush", "hmget", "zadd", "rpush", "hexists", "hset", "zrem", "lmpop", "hdel", "exists",
];
/// Faults of the embedded engine. It has no limit of memory that could be full.
const EMBEDDED: [Kind; 16] = [
    Kind::KillWorker,
    Kind::DeleteLock,
    Kind::FullDiskAndKill,
    Kind::SickWorker,
    Kind::KillerJob,
    Kind::CutConnections,
    Kind::LongPause,
    Kind::KillOwner,
    Kind::ForgetScripts,
    Kind::KillSubmitter,
    Kind::FullDisk,
    Kind::ShortPause,
    Kind::DeleteLock,
    Kind::KillOwner,
    Kind::CutConnections,
    Kind::KillWorker,
];

/// The end of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// `kill -9`.
    Kill,
    /// `kill -9` before the disk has room again.
    KillWithFullDisk,
    /// It ends itself, because the lock of its data directory was deleted.
    LostLock,
}

/// The processes that the faults hit.
pub(super) struct Scene<'a> {
    pub(super) engine: Engine,
    pub(super) store: Store,
    pub(super) troop: Vec<Member>,
    pub(super) quarters: Quarters<'a>,
    pub(super) submitting: Submitting,
    pub(super) tally: &'a Path,
}

impl Scene<'_> {
    pub(super) async fn peace(&mut self, time: Duration) -> Result<(), ChaosError> {
        peace(&mut self.troop, time).await
    }

    /// The worker that owns the embedded engine. A submitter may own it for a moment.
    async fn owner(&mut self) -> Result<Option<usize>, ChaosError> {
        let until = Instant::now() + MOMENT;
        while self.engine == Engine::Embedded && Instant::now() < until {
            let owner = self.store.owner();
            let at = self.troop.iter().position(|it| it.pid().ok() == owner);
            if at.is_some() {
                return Ok(at);
            }
            self.peace(LOOK).await?;
        }
        Ok(None)
    }

    /// Sends a command to the store, again and again while the store is down.
    async fn say(&mut self, words: &[&str]) -> Result<(), ChaosError> {
        let until = Instant::now() + MOMENT;
        loop {
            match self.store.say(words).await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(failed(&error)),
                Err(_) => self.peace(LOOK).await?,
            }
        }
    }

    /// The worker of a run that has just begun and is long; any if there is none soon.
    async fn busy(&mut self, random: &mut StdRng) -> Result<usize, ChaosError> {
        let until = Instant::now() + MOMENT;
        while Instant::now() < until {
            let written = Written::read(self.quarters.dir, self.tally)?;
            let fresh = |at| now().checked_sub(at).is_some_and(|age| age < FRESH);
            for (at, member) in self.troop.iter().enumerate() {
                let mut its = written.of_worker(member.pid()?);
                its.retain(|noted| {
                    fresh(noted.at) && Job::of(&noted.job).is_some_and(Job::is_long)
                });
                if !alive(&its).is_empty() {
                    return Ok(at);
                }
            }
            self.peace(LOOK).await?;
        }
        Ok(random.random_range(0..self.troop.len()))
    }
}

/// Random choices, and the faults so far.
pub(super) struct Faults {
    random: StdRng,
    drawn: usize,
    /// Number of harmful faults since the last rest.
    harmful: usize,
    /// Faults that may take jobs from their workers, for the judge.
    pub(super) happened: Vec<Trouble>,
    /// Number of faults of each kind.
    pub(super) counts: BTreeMap<String, u32>,
    /// Processes of killed workers that lived on for too long.
    pub(super) left: Vec<String>,
}

impl Faults {
    pub(super) fn new(random: StdRng) -> Self {
        Self {
            random,
            drawn: 0,
            harmful: 0,
            happened: Vec::new(),
            counts: BTreeMap::new(),
            left: Vec::new(),
        }
    }

    /// Waits a little, calls `begins`, and causes the next fault. Returns its name.
    pub(super) async fn make(
        &mut self,
        scene: &mut Scene<'_>,
        begins: impl FnOnce(&Scene<'_>),
    ) -> Result<String, ChaosError> {
        let mut calm = CALM.mul_f64(self.random.random());
        if self.harmful >= IN_A_ROW {
            calm += REST;
            self.harmful = 0;
        }
        scene.peace(calm).await?;
        begins(scene);
        let kinds: &[Kind] = match scene.engine {
            Engine::Redis => &SERVER,
            Engine::Embedded => &EMBEDDED,
        };
        let kind = kinds[self.drawn % kinds.len()];
        self.drawn += 1;
        let name = format!("{kind:?}");
        *self.counts.entry(name.clone()).or_default() += 1;
        match kind {
            Kind::KillWorker => {
                let victim = scene.busy(&mut self.random).await?;
                self.end(scene, victim, End::Kill).await?;
            }
            Kind::KillOwner => {
                let victim = scene.owner().await?;
                let victim = victim.unwrap_or_else(|| self.any(scene));
                self.end(scene, victim, End::Kill).await?;
            }
            Kind::DeleteLock => {
                if let Some(owner) = scene.owner().await? {
                    self.end(scene, owner, End::LostLock).await?;
                }
            }
            Kind::LongPause => self.pause(scene, LONG_PAUSE).await?,
            Kind::ShortPause => self.pause(scene, SHORT_PAUSE).await?,
            Kind::KillSubmitter => self.kill_submitter(scene).await?,
            Kind::KillServer => self.away(scene, AWAY).await?,
            Kind::ForgetScripts => {
                scene.say(&["SCRIPT", "FLUSH"]).await?;
                if scene.engine == Engine::Redis {
                    scene.say(&["FUNCTION", "FLUSH"]).await?;
                }
            }
            Kind::CutConnections => scene.say(&["CLIENT", "KILL", "TYPE", "normal"]).await?,
            Kind::FullMemory => {
                scene.say(&["CONFIG", "SET", "maxmemory", "1"]).await?;
                scene.peace(FULL).await?;
                scene.say(&["CONFIG", "SET", "maxmemory", "0"]).await?;
            }
            Kind::MissingRight => {
                let right = RIGHTS[self.random.random_range(0..RIGHTS.len())];
                let (without, with) = (format!("-{right}"), format!("+{right}"));
                scene.say(&["ACL", "SETUSER", "default", &without]).await?;
                scene.peace(FULL).await?;
                scene.say(&["ACL", "SETUSER", "default", &with]).await?;
            }
            Kind::FullDisk | Kind::FullDiskAndKill => {
                self.full_disk(scene, kind == Kind::FullDiskAndKill).await?;
            }
            Kind::KillerJob => self.killer_job(scene).await?,
            Kind::SickWorker => self.sick_worker(scene).await?,
        }
        Ok(name)
    }

    /// Returns the processes of all killed workers.
    pub(super) fn killed(&self) -> Vec<u32> {
        let process = |fault: &Trouble| match fault.what {
            What::Killed(process) => Some(process),
            What::Paused(_) | What::Sick(_) | What::ServerAway => None,
        };
        self.happened.iter().filter_map(process).collect()
    }

    fn any(&mut self, scene: &Scene<'_>) -> usize {
        self.random.random_range(0..scene.troop.len())
    }

    /// Notes a fault that may take jobs from their workers.
    pub(super) fn note(&mut self, what: What, from: Duration) {
        let to = now();
        self.happened.push(Trouble { what, from, to });
    }

    /// Ends a worker, and starts another one with its number.
    async fn end(
        &mut self,
        scene: &mut Scene<'_>,
        victim: usize,
        end: End,
    ) -> Result<(), ChaosError> {
        self.harmful += 1;
        let from = now();
        let process = scene.troop[victim].pid()?;
        let owns = scene.store.owner() == Some(process);
        match end {
            End::Kill | End::KillWithFullDisk => scene.troop[victim].kill().await?,
            End::LostLock => {
                scene.store.delete_lock()?;
                scene.troop[victim].gives_up().await?;
            }
        }
        self.note(What::Killed(process), from);
        if end == End::KillWithFullDisk {
            scene.store.fill(false);
        }
        scene.troop[victim].start_again(&scene.quarters)?;
        // It cannot start while the next fault stops the server.
        scene.troop[victim].listens().await?;
        if owns {
            self.note(What::ServerAway, from);
        }
        let until = Instant::now() + GONE;
        loop {
            let written = Written::read(scene.quarters.dir, scene.tally)?;
            let left = alive(&written.of_worker(process));
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                let words = |line: String| format!("{line}, {GONE:?} after its worker was killed");
                self.left.extend(left.into_iter().map(words));
                return Ok(());
            }
            scene.peace(LOOK).await?;
        }
    }

    async fn pause(&mut self, scene: &mut Scene<'_>, time: Duration) -> Result<(), ChaosError> {
        let victim = self.any(scene);
        let from = now();
        let process = scene.troop[victim].pid()?;
        let owns = scene.store.owner() == Some(process);
        scene.troop[victim].signal(Signal::STOP)?;
        scene.peace(time).await?;
        scene.troop[victim].signal(Signal::CONT)?;
        if time > LEASE {
            self.harmful += 1;
            self.note(What::Paused(process), from);
            if owns {
                self.note(What::ServerAway, from);
            }
        }
        Ok(())
    }

    async fn kill_submitter(&mut self, scene: &mut Scene<'_>) -> Result<(), ChaosError> {
        let until = Instant::now() + MOMENT;
        while scene.submitting.kill(&mut self.random).is_none() && Instant::now() < until {
            scene.peace(LOOK / 10).await?;
        }
        Ok(())
    }

    /// Kills the server with `kill -9`, and starts it again after `time`.
    async fn away(&mut self, scene: &mut Scene<'_>, time: Duration) -> Result<(), ChaosError> {
        self.harmful += 1;
        let from = now();
        scene.store.kill();
        scene.peace(time).await?;
        scene.store.start_again();
        self.note(What::ServerAway, from);
        Ok(())
    }

    async fn full_disk(&mut self, scene: &mut Scene<'_>, kill: bool) -> Result<(), ChaosError> {
        let from = now();
        scene.store.fill(true);
        scene.peace(FULL).await?;
        match (kill, scene.owner().await?) {
            (true, Some(owner)) => self.end(scene, owner, End::KillWithFullDisk).await?,
            (true, None) if scene.engine == Engine::Redis => {
                scene.store.kill();
                scene.store.fill(false);
                scene.store.start_again();
            }
            _ => scene.store.fill(false),
        }
        self.harmful += 1;
        self.note(What::ServerAway, from);
        Ok(())
    }
}
