//! Schedules: several schedulers whose clocks differ by a minute, `kill -9` of the one that stored jobs last, and a
//! simulated day in a minute. Each slot's job reaches its queue exactly once.
//!
//! Each job is taken from the queue at once, recorded in a file, and deleted with its record. So an existing id does
//! not prevent a second job of a slot: only the position does, which is written together with the job.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use meshwork_broker::conn::{Conn, Target, TlsFiles};
use meshwork_broker::{Broker, Clock};
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Route;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;
use meshwork_model::time::iso;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, timeout, timeout_at};

use super::ChaosError;
use meshwork_test_servers::servers::{RealServer, Tool};

/// Factor of the schedulers' time: a day in a minute.
const SPEED: u64 = 1440;
/// Beginning of the day: a quarter to midnight in Brussels, before a day of 25 hours.
const DAWN: u64 = 1_792_878_300_000;
/// Errors of the schedulers' clocks, in milliseconds.
const OFF: [i64; 3] = [0, 60_000, -60_000];
/// Polling interval of a scheduler.
const LOOK: Duration = Duration::from_millis(5);
/// Timeout of the last slots.
const END: Duration = Duration::from_secs(60);
/// Schedules and their time zones.
const RHYTHMS: [(&str, &str); 12] = [
    ("@every 10s", "UTC"),
    ("@every 7m", "UTC"),
    ("*/20 * * * * *", "UTC"),
    ("* * * * *", "Europe/Brussels"),
    ("*/7 1-3 * * *", "Europe/Brussels"),
    ("30 2 * * *", "Europe/Brussels"),
    ("0,30 2 * * *", "Europe/Brussels"),
    ("@hourly", "Europe/Brussels"),
    ("@hourly", "Asia/Kathmandu"),
    ("@daily", "Australia/Lord_Howe"),
    ("15 30 2 * * *", "America/New_York"),
    ("0 0 L * *", "Pacific/Kiritimati"),
];

/// Size and choices of a play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Program and arguments of a scheduler of this scenario. The URL of the server, the beginning of the day on the
    /// host's monotonic clock, and the error of its clock are appended. Both times are in milliseconds.
    pub scheduler: (PathBuf, Vec<String>),
    /// Simulated time of the play.
    pub span: Duration,
    /// Number of kills.
    pub kills: u32,
    /// Seed for the choice of moments and victims. The timing differs from run to run.
    pub seed: u64,
}

/// Result of a play.
#[derive(Clone, Debug)]
pub struct Report {
    /// Number of slots.
    pub slots: usize,
    /// Slots without a job.
    pub lost: Vec<String>,
    /// Slots with several jobs, and jobs of no slot.
    pub wrong: Vec<String>,
    /// Number of killed schedulers.
    pub kills: u32,
    /// Number of schedulers that stored jobs, killed ones included.
    pub busy: usize,
}

impl Report {
    /// Returns true if each slot has exactly one job.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.slots > 0 && self.lost.is_empty() && self.wrong.is_empty()
    }

    /// Returns the report as a JSON object on one line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::json!({
            "scenario": "schedules",
            "slots": self.slots,
            "kills": self.kills,
            "busy": self.busy,
            "lost": self.lost,
            "wrong": self.wrong,
            "holds": self.holds(),
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, wrong) = (self.lost.len(), self.wrong.len());
        write!(
            f,
            "schedules: kills {}, slots {}, lost {lost}, run twice or without a slot {wrong}, ",
            self.kills, self.slots
        )?;
        write!(f, "schedulers that stored jobs {}", self.busy)?;
        for line in self.lost.iter().chain(&self.wrong).take(10) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Returns the host's monotonic clock in milliseconds, which all its processes share.
fn monotonic_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1000 + time.tv_nsec.unsigned_abs() / 1_000_000
}

/// Returns the simulated time.
fn simulated(began: u64, off: i64) -> u64 {
    let passed = monotonic_ms().saturating_sub(began) * SPEED;
    (DAWN + passed).saturating_add_signed(off)
}

/// Runs one scheduler for ever, which prints a line when it has stored jobs.
///
/// # Errors
/// An argument is missing or wrong, or the server cannot be reached.
pub async fn be_scheduler(arguments: &[String]) -> Result<(), String> {
    let [url, began, off] = arguments else {
        return Err("a scheduler needs a URL, a start time and an offset".to_owned());
    };
    let began: u64 = began.parse().map_err(|error| format!("{began}: {error}"))?;
    let off: i64 = off.parse().map_err(|error| format!("{off}: {error}"))?;
    let (clock, hand) = Clock::manual(simulated(began, off));
    let broker = connected(url).await.map_err(|error| error.to_string())?;
    let broker = broker.with_clock(clock).acting_as(&format!("{off}"));
    let mut looks = interval(LOOK);
    let mut stdout = std::io::stdout();
    loop {
        looks.tick().await;
        hand.store(simulated(began, off), Ordering::SeqCst);
        match broker.fire_schedules().await {
            Ok(ticked) if ticked.stored > 0 => {
                // The reader may have ended; then this process is killed too.
                writeln!(stdout, "{}", ticked.stored).ok();
                stdout.flush().ok();
            }
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

async fn connected(url: &str) -> Result<Broker, ChaosError> {
    let failed = |error: &dyn fmt::Display| ChaosError::Line(error.to_string());
    let target = Target::parse(url, TlsFiles::default()).map_err(|error| failed(&error))?;
    let keys = JobKeys::default();
    let conn = Conn::open(&target, keys.namespace()).await;
    Ok(Broker::new(conn.map_err(|error| failed(&error))?, keys))
}

/// Schedulers by their number, killed when dropped.
struct Scheduler {
    child: Child,
    said: PathBuf,
}

impl Scheduler {
    fn start(
        plan: &Plan,
        dir: &Path,
        number: usize,
        life: u32,
        url: &str,
        began: u64,
    ) -> Result<Self, ChaosError> {
        let said = dir.join(format!("scheduler-{number}-{life}"));
        let out = File::create(&said).map_err(ChaosError::io("a scheduler's output"))?;
        let (program, first) = &plan.scheduler;
        let child = Command::new(program)
            .args(first)
            .args([url, &began.to_string(), &OFF[number].to_string()])
            .stdin(Stdio::null())
            .stdout(out)
            .kill_on_drop(true)
            .spawn()
            .map_err(ChaosError::io("a scheduler"))?;
        Ok(Self { child, said })
    }

    /// Returns the time at which it last printed that it stored jobs.
    fn busy_at(&self) -> Option<std::time::SystemTime> {
        let about = fs::metadata(&self.said).ok()?;
        (about.len() > 0).then(|| about.modified().ok())?
    }
}

/// Plays until all slots are decided.
///
/// # Errors
/// This machine lacks a program, a scheduler ends by itself, or files cannot be written.
pub async fn play(plan: &Plan) -> Result<Report, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-schedules-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let server = RealServer::redis().append_only().start_for("chaos");
    let server = server.ok_or(ChaosError::Missing(Tool::Redis.program()))?;
    let (url, began) = (server.url(), monotonic_ms());
    let (clock, hand) = Clock::manual(DAWN);
    let broker = connected(&url).await?.with_clock(clock);
    let schedules = schedules(plan)?;
    for schedule in &schedules {
        let put = broker.put_schedule(schedule, false).await;
        put.map_err(|error| ChaosError::Line(error.to_string()))?;
    }
    let file = dir.path().join("slots");
    let taking = tokio::spawn(take(broker.clone(), file.clone(), schedules.clone()));
    let mut troop = Troop::start(plan, dir.path(), url, began)?;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let real = plan.span / u32::try_from(SPEED).unwrap_or(u32::MAX);
    let end = Instant::now() + real;
    for kill in 0..plan.kills {
        let left = end.saturating_duration_since(Instant::now());
        let pause = left.mul_f64(random.random_range(0.0..2.0) / f64::from(plan.kills - kill + 1));
        troop.peace(pause).await?;
        troop.kill(&mut random)?;
        // A change of a schedule in between loses and repeats no slot either.
        let again = &schedules[random.random_range(0..schedules.len())];
        hand.store(simulated(began, 0), Ordering::SeqCst);
        match broker.put_schedule(again, true).await {
            Ok(_) | Err(meshwork_broker::Error::ScheduleOver { .. }) => {}
            Err(error) => return Err(ChaosError::Line(error.to_string())),
        }
    }
    troop
        .peace(end.saturating_duration_since(Instant::now()))
        .await?;
    let stuck = || ChaosError::Line(format!("the last slots have not come within {END:?}"));
    let taken = timeout_at(end + END, taking).await.map_err(|_| stuck())?;
    taken.map_err(|error| ChaosError::Line(error.to_string()))??;
    let busy = troop.busy();
    let said = fs::read_to_string(&file).map_err(ChaosError::io("the slots"))?;
    Ok(judge(&schedules, &said, plan.kills, busy))
}

fn schedules(plan: &Plan) -> Result<Vec<Schedule>, ChaosError> {
    let wrong = |error: &dyn fmt::Display| ChaosError::Line(error.to_string());
    let end = DAWN + u64::try_from(plan.span.as_millis()).unwrap_or(u64::MAX);
    let mut schedules = Vec::new();
    for (number, (rhythm, zone)) in RHYTHMS.iter().enumerate() {
        let mut timing = Timing::new(rhythm.parse().map_err(|error| wrong(&error))?);
        timing.zone = zone.parse().map_err(|error| wrong(&error))?;
        // All clocks are past that time when the first slot is due.
        timing.start = Some(DAWN + 120_000);
        timing.end = Some(end);
        if timing.next(0).is_none() {
            continue;
        }
        let name = format!("s{number}");
        let name = |error: &dyn fmt::Display| ChaosError::Line(format!("{name}: {error}"));
        let id = format!("s{number}");
        let route = Route::to("osis".parse().map_err(|error| name(&error))?);
        let job = NewJob::new(id.parse().map_err(|error| name(&error))?, route, "1");
        let mut schedule = Schedule::new(id.parse().map_err(|error| name(&error))?, timing, job);
        (schedule.catch_up, schedule.overlap) = (CatchUp::All(1000), Overlap::Allow);
        schedules.push(schedule);
    }
    Ok(schedules)
}

/// Takes jobs from the queue, records and deletes them, until all schedules are over and no job is left.
async fn take(broker: Broker, file: PathBuf, schedules: Vec<Schedule>) -> Result<(), ChaosError> {
    let mut file = File::create(file).map_err(ChaosError::io("the slots"))?;
    let failed = |error: redis::RedisError| ChaosError::Line(error.to_string());
    let mut conn = broker.conn().clone();
    let queue = schedules[0].template().route.queue(broker.keys());
    let mut looks = interval(LOOK);
    loop {
        // Checked before the queue, so that no job can come after it was found empty.
        let mut over = true;
        for schedule in &schedules {
            let there = broker.read_schedule(&schedule.name).await;
            let there = there.map_err(|error| ChaosError::Line(error.to_string()))?;
            over &= there.is_some_and(|there| there.next.is_none());
        }
        loop {
            let ids: Option<Vec<String>> = redis::cmd("RPOP")
                .arg(&queue)
                .arg(500)
                .query_async(&mut conn)
                .await
                .map_err(failed)?;
            let Some(ids) = ids else { break };
            let mut forget = redis::cmd("DEL");
            for id in ids {
                writeln!(file, "{id}").map_err(ChaosError::io("the slots"))?;
                forget.arg(format!("{}{id}", broker.keys().job_prefix()));
            }
            forget.query_async::<()>(&mut conn).await.map_err(failed)?;
        }
        if over {
            return Ok(());
        }
        looks.tick().await;
    }
}

/// All schedulers, and the settings for their restart.
struct Troop<'a> {
    plan: &'a Plan,
    dir: &'a Path,
    url: String,
    began: u64,
    life: u32,
    members: Vec<Scheduler>,
}

impl<'a> Troop<'a> {
    fn start(plan: &'a Plan, dir: &'a Path, url: String, began: u64) -> Result<Self, ChaosError> {
        let members =
            (0..OFF.len()).map(|number| Scheduler::start(plan, dir, number, 0, &url, began));
        let members = members.collect::<Result<_, _>>()?;
        Ok(Self {
            plan,
            dir,
            url,
            began,
            life: 0,
            members,
        })
    }

    /// Waits for a time in which no scheduler may end by itself.
    async fn peace(&mut self, time: Duration) -> Result<(), ChaosError> {
        let ends = self
            .members
            .iter_mut()
            .map(|member| Box::pin(member.child.wait()));
        match timeout(time, futures_util::future::select_all(ends)).await {
            Ok((status, ..)) => Err(ChaosError::Ended {
                program: "a scheduler".to_owned(),
                status: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
                said: String::new(),
            }),
            Err(_) => Ok(()),
        }
    }

    /// Kills the scheduler that stored jobs last, or sometimes a random one, with `kill -9`. Starts another one.
    fn kill(&mut self, random: &mut impl Rng) -> Result<(), ChaosError> {
        let last = (0..self.members.len()).max_by_key(|number| self.members[*number].busy_at());
        let victim = match last {
            Some(last) if random.random_bool(0.75) => last,
            _ => random.random_range(0..self.members.len()),
        };
        self.life += 1;
        let next = Scheduler::start(
            self.plan, self.dir, victim, self.life, &self.url, self.began,
        )?;
        let mut old = std::mem::replace(&mut self.members[victim], next);
        old.child
            .start_kill()
            .map_err(ChaosError::io("to kill a scheduler"))
    }

    /// Returns the number of schedulers that stored jobs.
    fn busy(&self) -> usize {
        let files = fs::read_dir(self.dir).into_iter().flatten().flatten();
        let spoke = files.filter(|file| {
            let scheduler = file.file_name().to_string_lossy().starts_with("scheduler-");
            scheduler && file.metadata().is_ok_and(|about| about.len() > 0)
        });
        spoke.count()
    }
}

/// Compares the recorded jobs with the slots.
fn judge(schedules: &[Schedule], said: &str, kills: u32, busy: usize) -> Report {
    let mut came = BTreeMap::<&str, usize>::new();
    for id in said.lines() {
        *came.entry(id).or_default() += 1;
    }
    let (mut slots, mut lost, mut wrong) = (0, Vec::new(), Vec::new());
    for schedule in schedules {
        for slot in schedule.upcoming(0) {
            slots += 1;
            let id = schedule.job_at(slot).id;
            match came.remove(id.as_str()) {
                Some(1) => {}
                Some(times) => wrong.push(format!("{id} came {times} times")),
                None => lost.push(format!("{id}, which was due at {}", iso(slot))),
            }
        }
    }
    wrong.extend(came.keys().map(|id| format!("{id} is of no slot")));
    Report {
        slots,
        lost,
        wrong,
        kills,
        busy,
    }
}
