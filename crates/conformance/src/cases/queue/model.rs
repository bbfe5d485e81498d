//! Limits compared to a simple model: random steps on a real engine, while the model counts running jobs. After each
//! step no job runs against a limit; in the end every job has run. The caller chooses the steps.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_broker::script::Scripts;
use meshwork_broker::{Cancelled, Claimed, Completed, Deleted, Failed, Released};
use meshwork_model::job::When;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::harness::options;
use crate::cases::harness::options::{LOOK_MS, set};
use crate::cases::harness::world::{LEASE_MS, START, WORKER};
use crate::cases::{Failure, Outcome, Place, World, check, same};

/// A step. Any number names a job or a run: its remainder counts.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Enqueues a job with one of three keys (0: none) and a delay in milliseconds.
    Enqueue(u8, u16),
    /// Claims up to this many jobs.
    Claim(u8),
    /// Ends a run, and claims up to this many jobs in the same call.
    Exchange(u8, u8),
    /// Ends a run.
    Finish(u8),
    /// Fails a run that has a retry left, with a pause in milliseconds.
    Fail(u8, u16),
    /// Releases a run.
    Release(u8),
    /// Kills the worker of a run: its lease is no longer renewed.
    Kill(u8),
    /// Deletes the record of a run by hand.
    Vanish(u8),
    /// Cancels a job, running or not.
    Cancel(u8),
    /// Deletes a job that does not run.
    Delete(u8),
    /// Reclaims the jobs of dead workers.
    Reclaim,
    /// Moves due jobs into their queue.
    Promote,
    /// Lets this many milliseconds pass, while live workers renew their leases.
    Pass(u32),
    /// Sets other limits: concurrency, concurrency of a key (0: none), fairness, and pause.
    Limit(u8, u8, bool, bool),
}

/// A rate limit of either kind, with times in milliseconds.
#[derive(Debug, Clone, Copy)]
pub enum Rate {
    /// Number of starts in each window, and its length.
    Window(u32, u32),
    /// Number of starts in a time on average, that time, and the burst.
    Bucket(u32, u32, u32),
}

/// Steps for one queue.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Rate limit of the queue.
    pub rate: Option<Rate>,
    /// Rate limit of each key.
    pub key_rate: Option<Rate>,
    /// Steps to run.
    pub steps: Vec<Step>,
}

/// Number of losses after which a job is a dead letter (`reclaim`).
const MOST_LOST: u32 = 5;
/// Rounds for each job in which all jobs must run in the end: a job may fail to pass a rate, and wait for a check.
const ROUNDS: usize = 4;

#[derive(Debug, PartialEq)]
enum Is {
    Waits {
        from: u64,
    },
    Runs {
        run: Claimed,
        until: u64,
        lives: bool,
        slots: (bool, bool),
    },
    Over,
}

#[derive(Debug)]
struct Job {
    id: String,
    key: Option<String>,
    lost: u32,
    is: Is,
}

struct Model<'a> {
    world: &'a World,
    plan: &'a Plan,
    jobs: Vec<Job>,
    limit: (usize, usize, bool, bool),
    now: u64,
    /// Times at which jobs were started, with their keys.
    starts: Vec<(u64, Option<String>)>,
}

impl Plan {
    /// Runs the plan on an empty place.
    ///
    /// # Errors
    /// The violated property, and the step.
    pub async fn run_on(&self, place: &Place) -> Outcome {
        let world = World::new(place.ways().clone(), Scripts::default())?;
        let mut model = Model {
            world: &world,
            plan: self,
            jobs: Vec::new(),
            limit: (0, 0, false, false),
            now: START,
            starts: Vec::new(),
        };
        model.set().await?;
        for (at, step) in self.steps.iter().enumerate() {
            let response = model.step(*step).await;
            response.map_err(|why| Failure::new(format!("step {at}, {step:?}: {why}")))?;
        }
        model.all_run_in_the_end().await
    }
}

impl Model<'_> {
    async fn step(&mut self, step: Step) -> Outcome {
        match step {
            Step::Enqueue(key, delay) => self.enqueue(key, delay.into()).await,
            Step::Claim(want) => self.claim(want.into()).await,
            Step::Exchange(run, want) => self.exchange(run, want.into()).await,
            Step::Finish(run) => self.finish(run).await,
            Step::Fail(run, delay) => self.fail(run, delay.into()).await,
            Step::Release(run) => self.release(run).await,
            Step::Kill(run) => {
                if let Some((at, _)) = self.run(run)
                    && let Is::Runs { lives, .. } = &mut self.jobs[at].is
                {
                    *lives = false;
                }
                Ok(())
            }
            Step::Vanish(run) => self.vanish(run).await,
            Step::Cancel(job) => self.cancel(job).await,
            Step::Delete(job) => self.delete(job).await,
            Step::Reclaim => self.reclaim().await,
            Step::Promote => {
                self.world.broker.promote().await?;
                Ok(())
            }
            Step::Pass(ms) => self.pass(ms.into()).await,
            Step::Limit(all, of_key, fair, paused) => {
                self.limit = (all.into(), of_key.into(), fair, paused);
                self.set().await
            }
        }
    }

    /// Writes the settings in the format of the scripts.
    async fn set(&self) -> Outcome {
        let (all, of_key, fair, paused) = self.limit;
        let number = |name: &str, n: usize| (n > 0).then(|| format!("{name}={n}"));
        let rate = |name: &str, rate: Option<Rate>| {
            rate.map(|rate| match rate {
                Rate::Window(n, ms) => format!("{name}=window:{n}:{ms}"),
                Rate::Bucket(n, ms, burst) => format!("{name}=bucket:{n}:{ms}:{burst}"),
            })
        };
        let settings = [
            number("concurrency", all),
            number("key_concurrency", of_key),
            number("fair", fair.into()),
            number("paused", paused.into()),
            rate("rate", self.plan.rate),
            rate("key_rate", self.plan.key_rate),
        ];
        let settings: Vec<_> = settings.into_iter().flatten().collect();
        set(self.world, &settings.join(" ")).await
    }

    /// Returns one of the runs that a worker still has.
    fn run(&self, n: u8) -> Option<(usize, Claimed)> {
        let runs = self.jobs.iter().enumerate();
        let runs: Vec<_> = runs
            .filter_map(|(at, job)| match &job.is {
                Is::Runs {
                    run, lives: true, ..
                } => Some((at, run.clone())),
                _ => None,
            })
            .collect();
        let n = usize::from(n).checked_rem(runs.len())?;
        runs.into_iter().nth(n)
    }

    /// Returns one of the jobs that have not ended.
    fn open(&self, n: u8) -> Option<usize> {
        let open = |(at, job): (usize, &Job)| (job.is != Is::Over).then_some(at);
        let open: Vec<_> = self.jobs.iter().enumerate().filter_map(open).collect();
        let n = usize::from(n).checked_rem(open.len())?;
        open.get(n).copied()
    }

    async fn enqueue(&mut self, key: u8, delay: u64) -> Outcome {
        let id = format!("j{}", self.jobs.len());
        let key = key % 4;
        let key = (key > 0).then(|| format!("k{key}"));
        let mut job = self.world.job(&id)?;
        (job.key, job.retries) = (key.clone(), 100);
        if delay > 0 {
            job.when = Some(When::In(delay));
        }
        self.world.put_jobs(&[job]).await?;
        let is = Is::Waits {
            from: self.now + delay,
        };
        self.jobs.push(Job {
            id,
            key,
            lost: 0,
            is,
        });
        Ok(())
    }

    async fn claim(&mut self, want: usize) -> Outcome {
        let taken = options::claim(self.world, want).await?;
        self.started(taken.jobs, want)
    }

    async fn exchange(&mut self, run: u8, want: usize) -> Outcome {
        let Some((at, run)) = self.run(run) else {
            return Ok(());
        };
        let response = options::exchange(self.world, &[&run], want).await?;
        same!(response.finished, [Completed::Finished]);
        self.jobs[at].is = Is::Over;
        self.started(response.taken.jobs, want)
    }

    async fn finish(&mut self, run: u8) -> Outcome {
        if let Some((at, run)) = self.run(run) {
            same!(self.world.finish(&run, "42").await?, Completed::Finished);
            self.jobs[at].is = Is::Over;
            same!(self.world.broker.release(&run).await?, Released::Stale);
        }
        Ok(())
    }

    async fn fail(&mut self, run: u8, delay: u64) -> Outcome {
        if let Some((at, run)) = self.run(run) {
            let failure = Wrong::new(FailureKind::Script, "boom");
            let pause = Duration::from_millis(delay);
            let response = self.world.broker.fail(&run, &failure, b"", b"", pause);
            same!(response.await?, Failed::Requeued);
            self.jobs[at].is = Is::Waits {
                from: self.now + delay,
            };
        }
        Ok(())
    }

    async fn release(&mut self, run: u8) -> Outcome {
        if let Some((at, run)) = self.run(run) {
            same!(self.world.broker.release(&run).await?, Released::Released);
            self.jobs[at].is = Is::Waits { from: self.now };
            same!(self.world.finish(&run, "42").await?, Completed::Stale);
        }
        Ok(())
    }

    async fn vanish(&mut self, run: u8) -> Outcome {
        if let Some((at, run)) = self.run(run) {
            self.world
                .raw::<()>(&["DEL", &self.world.key(&run.job.id)])
                .await?;
            self.jobs[at].is = Is::Over;
        }
        Ok(())
    }

    async fn cancel(&mut self, job: u8) -> Outcome {
        if let Some(at) = self.open(job) {
            let job = self.world.read(&self.jobs[at].id).await?;
            let response = self.world.broker.cancel(&job, "stopped", true).await?;
            same!(response, Cancelled::Cancelled);
            let was = std::mem::replace(&mut self.jobs[at].is, Is::Over);
            if let Is::Runs { run, .. } = was {
                same!(self.world.finish(&run, "42").await?, Completed::Stale);
            }
        }
        Ok(())
    }

    async fn delete(&mut self, job: u8) -> Outcome {
        if let Some(at) = self.open(job)
            && matches!(self.jobs[at].is, Is::Waits { .. })
        {
            let job = self.world.read(&self.jobs[at].id).await?;
            same!(self.world.broker.delete(&job).await?, Deleted::Deleted);
            self.jobs[at].is = Is::Over;
        }
        Ok(())
    }

    async fn reclaim(&mut self) -> Outcome {
        let response = self.world.broker.reclaim().await?;
        let (mut requeued, mut ended) = (Vec::new(), Vec::new());
        let now = self.now;
        for job in &mut self.jobs {
            if !matches!(job.is, Is::Runs { until, .. } if until <= now) {
                continue;
            }
            job.lost += 1;
            if job.lost < MOST_LOST {
                job.is = Is::Waits { from: now };
                requeued.push(job.id.clone());
            } else {
                job.is = Is::Over;
                ended.push(job.id.clone());
            }
        }
        for (mut is, mut should) in [(response.requeued, requeued), (response.ended, ended)] {
            is.sort();
            should.sort();
            same!(is, should);
        }
        Ok(())
    }

    async fn pass(&mut self, ms: u64) -> Outcome {
        let mut left = ms;
        while left > 0 {
            let part = left.min(LEASE_MS - 1);
            left -= part;
            self.now += part;
            self.world.at(self.now);
            let mut held = Vec::new();
            for job in &mut self.jobs {
                if let Is::Runs {
                    run,
                    until,
                    lives: true,
                    ..
                } = &mut job.is
                {
                    *until = self.now + LEASE_MS;
                    held.push(run.clone());
                }
            }
            check!(self.world.renew(WORKER, &held).await?.is_empty());
        }
        Ok(())
    }

    /// Checks the jobs of a claim: each comes once, at its time, and within the limits.
    fn started(&mut self, runs: Vec<Claimed>, want: usize) -> Outcome {
        let (all, of_key, _, paused) = self.limit;
        check!(runs.len() <= want);
        check!(!paused || runs.is_empty());
        let any = !runs.is_empty();
        let mut keys = Vec::new();
        for run in runs {
            let (now, id) = (self.now, run.job.id.clone());
            let job = self.jobs.iter_mut().find(|job| job.id == id);
            let job = job.ok_or_else(|| Failure::new(format!("{id} was never enqueued")))?;
            let Is::Waits { from } = job.is else {
                return Err(Failure::new(format!(
                    "{id} was started, but it is {:?}",
                    job.is
                )));
            };
            check!(from <= now);
            let slots = (all > 0, of_key > 0 && job.key.is_some());
            job.is = Is::Runs {
                run,
                until: now + LEASE_MS,
                lives: true,
                slots,
            };
            self.starts.push((now, job.key.clone()));
            keys.extend(job.key.clone());
        }
        let run_with = |which: &dyn Fn(&Job, (bool, bool)) -> bool| {
            let runs = self.jobs.iter().filter(|job| match job.is {
                Is::Runs { slots, .. } => which(job, slots),
                _ => false,
            });
            runs.count()
        };
        if any && all > 0 {
            check!(run_with(&|_, slots| slots.0) <= all);
        }
        for key in keys.iter().filter(|_| of_key > 0) {
            check!(run_with(&|job, slots| slots.1 && job.key.as_ref() == Some(key)) <= of_key);
        }
        self.rates_hold()
    }

    fn rates_hold(&self) -> Outcome {
        if let Some(rate) = self.plan.rate {
            let all: Vec<_> = self.starts.iter().map(|(at, _)| *at).collect();
            rate.holds(&all)?;
        }
        if let Some(rate) = self.plan.key_rate {
            let mut of = BTreeMap::<_, Vec<u64>>::new();
            for (at, key) in &self.starts {
                if let Some(key) = key {
                    of.entry(key).or_default().push(*at);
                }
            }
            for starts in of.values() {
                rate.holds(starts)?;
            }
        }
        Ok(())
    }

    /// Checks that no job and no slot is lost: while workers return and time passes, every waiting job starts.
    async fn all_run_in_the_end(&mut self) -> Outcome {
        let (all, of_key, fair, _) = self.limit;
        self.limit = (all, of_key, fair, false);
        self.set().await?;
        let ms = |rate: Option<Rate>| match rate {
            Some(Rate::Window(_, ms) | Rate::Bucket(_, ms, _)) => u64::from(ms),
            None => 0,
        };
        let pause = LOOK_MS + LEASE_MS + ms(self.plan.rate).max(ms(self.plan.key_rate));
        for _ in 0..ROUNDS * (self.jobs.len() + 1) {
            while self.run(0).is_some() {
                self.finish(0).await?;
            }
            self.now += pause;
            self.world.at(self.now);
            self.reclaim().await?;
            self.world.broker.promote().await?;
            self.claim(5).await?;
            if self.jobs.iter().all(|job| job.is == Is::Over) {
                return self.nothing_is_left().await;
            }
        }
        let left = self.jobs.iter().filter(|job| job.is != Is::Over);
        let left: Vec<_> = left.map(|job| (&job.id, &job.is)).collect();
        Err(Failure::new(format!(
            "never started: {left:?}\n{}",
            self.world.all().await?
        )))
    }

    async fn nothing_is_left(&self) -> Outcome {
        same!(self.world.broker.running().await?, 0);
        check!(!self.world.all().await?.contains(":q:backlog:"));
        Ok(())
    }
}

impl Rate {
    /// Checks that these starts, in order of time, keep the rate.
    fn holds(self, starts: &[u64]) -> Outcome {
        let within = match self {
            Self::Window(n, ms) => {
                let (mut begun, mut used) = (None, 0);
                starts.iter().all(|at| {
                    if begun.is_none_or(|begun| *at >= begun + u64::from(ms)) {
                        (begun, used) = (Some(*at), 0);
                    }
                    used += 1;
                    used <= n
                })
            }
            Self::Bucket(n, ms, burst) => starts.iter().enumerate().all(|(from, first)| {
                starts[from..].iter().zip(1_u64..).all(|(last, count)| {
                    let more = (last - first) * u64::from(n) / u64::from(ms);
                    // Part of a permit may exist at the beginning.
                    count <= u64::from(burst) + more + 1
                })
            }),
        };
        if within {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{starts:?} are more than {self:?} lets start"
        )))
    }
}
