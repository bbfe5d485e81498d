//! fire_schedules: decides the slots of schedules that are due. This module computes the slots from the definition; the
//! script accepts them only if the schedule is unchanged.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::job::{NewJob, limits};
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::{MAX_SLOTS, Schedule};

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::jobs::enqueue::MAX_CALL_BYTES;
use crate::verb::schedule::Scheduled;
use crate::verb::schedule::fire_flow::{FlowDue, schedule_of_flows};
use crate::verb::schedule::slots::{FiredSlots, Read, ScheduleRun};
use crate::verb::{MAX_ITEMS, text};

/// Greatest number of schedules in a call: with their jobs, about 10 ms of the server's time.
const MOST_SCHEDULES: usize = 250;
/// Greatest total length of records that one call reads, in bytes, unless a single one is longer.
const MOST_BYTES: usize = 1024 * 1024;

/// Due schedules.
#[derive(Debug)]
struct Due {
    /// Time of the server, in milliseconds since 1970.
    now: u64,
    next: Option<Duration>,
    schedules: Vec<Read>,
    /// Schedules that cannot be read, with the reason.
    unread: Vec<(String, String)>,
}

/// The decision about one schedule.
#[derive(Debug)]
struct Item {
    name: String,
    version: String,
    position: String,
    to: String,
    next: Next,
    overlap: &'static str,
    trouble: String,
    control: String,
    timeout_ms: u64,
    /// Slots and their jobs.
    jobs: Vec<(String, NewJob)>,
}

/// Next slot of a schedule after the decision.
#[derive(Debug, Clone, Copy)]
enum Next {
    At(u64),
    Never,
    AsBefore,
}

impl Broker {
    /// Decides the slots of due schedules, at most 250 in a call, and stores their jobs. Concurrent callers are safe:
    /// each slot is decided once.
    ///
    /// # Errors
    /// The server refuses a call; repeat it then.
    #[boxed]
    pub async fn fire_schedules(&self) -> Result<FiredSlots, Error> {
        let due = self.due().await?;
        let (now, count) = (due.now, due.schedules.len());
        let mut next = due.next;
        let mut items = Vec::with_capacity(count);
        let mut fired = FiredSlots::default();
        for read in due.schedules {
            if let Some(flow) = self.flow_schedule(&read) {
                let first = self.fire_flow(&flow, now, &mut fired).await?;
                let pause = first.map(|at| Duration::from_millis(at.saturating_sub(now)));
                next = next.into_iter().chain(pause).min();
                continue;
            }
            let item = self.plan(read, now);
            if let Next::At(at) = item.next {
                let pause = Duration::from_millis(at.saturating_sub(now));
                next = Some(next.map_or(pause, |next| next.min(pause)));
            }
            items.push(item);
        }
        let decided = self.decide(items).await?;
        fired.stored += decided.stored;
        fired.skipped += decided.skipped;
        fired.troubles.extend(decided.troubles);
        let unread = due.unread.into_iter();
        let named = unread.filter_map(|(name, why)| Some((name.parse().ok()?, why)));
        fired.troubles.extend(named);
        (fired.due, fired.next) = (count, next);
        Ok(fired)
    }

    /// Runs the job of a schedule now, beside its slots, as job `NAME.suffix`. Its overlap rule applies. Returns the
    /// result, or `None` if the schedule has changed.
    ///
    /// # Errors
    /// The server refuses a call; repeat it then.
    #[boxed]
    pub async fn run_schedule(
        &self,
        there: &Scheduled,
        schedule: &Schedule,
        suffix: &str,
    ) -> Result<Option<ScheduleRun>, Error> {
        let now = self.now().await?;
        if let Some(flows) = schedule_of_flows(self, schedule) {
            return flows.run_schedule(there, schedule, suffix, now).await;
        }
        let job = schedule.job_as(suffix, now);
        job.check()?;
        let id = job.id.clone();
        let position = there.position_text();
        let mut item = self.item(schedule, &there.version, position);
        item.jobs.push((position.to_owned(), job));
        let answer = self.call(&[item]).await?;
        Ok(
            match answer
                .first()
                .and_then(|answer| answer.first())
                .map(String::as_str)
            {
                Some("changed") | None => None,
                Some("stored" | "exists") => Some(ScheduleRun::Stored(id)),
                Some("skipped") => Some(ScheduleRun::Skipped),
                Some(why) => Some(ScheduleRun::Refused(why.to_owned())),
            },
        )
    }

    /// Decides slots of one schedule.
    pub(crate) async fn fire_one(&self, there: &Scheduled, now: u64) -> Result<(), Error> {
        if let Ok(schedule) = &there.schedule {
            if let Some(flows) = schedule_of_flows(self, schedule) {
                let (schedule, version) = (schedule.clone(), there.version.clone());
                let due = FlowDue {
                    flows,
                    schedule,
                    version,
                    position: there.position_text().to_owned(),
                };
                self.fire_flow(&due, now, &mut FiredSlots::default())
                    .await?;
                return Ok(());
            }
            let item = self.planned(schedule, &there.version, there.position_text(), now);
            self.decide(vec![item]).await?;
        }
        Ok(())
    }

    /// Returns a part of the due schedules, and the time.
    async fn due(&self) -> Result<Due, Error> {
        let call = self.scripts.call(Verb::DueSchedules);
        let call = call
            .arg(self.clock.argument())
            .arg(MOST_SCHEDULES)
            .arg(MOST_BYTES);
        type Row = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Option<Vec<u8>>);
        let mut answer = call.answer(&self.conn).await?;
        let (now, next) = (answer.next("now")?, answer.millis("next")?);
        let schedules = answer.next::<Vec<Row>>("schedules")?.into_iter();
        let schedules = schedules.map(|(name, version, position, record, input)| Read {
            name,
            version,
            position,
            record,
            input,
        });
        let schedules = schedules.collect();
        let unread = answer.next::<Vec<(Vec<u8>, String)>>("unread")?.into_iter();
        Ok(Due {
            now,
            next,
            schedules,
            unread: unread.map(|(name, why)| (text(name), why)).collect(),
        })
    }

    /// Returns the decision about a due schedule. An unreadable one must not block the others.
    fn plan(&self, read: Read, now: u64) -> Item {
        let (name, version, position) = (text(read.name), text(read.version), text(read.position));
        let known = name
            .parse::<ScheduleName>()
            .map_err(|error| error.to_string());
        let schedule = known.and_then(|name| {
            Schedule::decode(&name, &read.record, read.input).map_err(|error| error.to_string())
        });
        match schedule {
            Ok(schedule) => self.planned(&schedule, &version, &position, now),
            Err(trouble) => Item {
                name,
                version,
                to: position.clone(),
                position,
                next: Next::Never,
                overlap: "allow",
                trouble,
                // A placeholder, to which nothing is sent.
                control: self.keys.schedules(),
                timeout_ms: 0,
                jobs: Vec::new(),
            },
        }
    }

    fn planned(&self, schedule: &Schedule, version: &str, position: &str, now: u64) -> Item {
        let mut item = self.item(schedule, version, position);
        // Without a stored position, which other programs may have deleted, no slot before now is due.
        let from = position.parse().unwrap_or(now);
        let plan = schedule.plan(from, now, fitting(schedule.template()));
        item.to = plan.position.to_string();
        item.next = plan.next.map_or(Next::Never, Next::At);
        let job = |slot: u64| (slot.to_string(), schedule.job_at(slot));
        item.jobs = plan.slots.into_iter().map(job).collect();
        item
    }

    /// Returns a decision that does nothing.
    fn item(&self, schedule: &Schedule, version: &str, position: &str) -> Item {
        let template = schedule.template();
        Item {
            name: schedule.name.to_string(),
            version: version.to_owned(),
            position: position.to_owned(),
            to: position.to_owned(),
            next: Next::AsBefore,
            overlap: schedule.overlap.as_str(),
            trouble: String::new(),
            control: self.keys.control_queue_type(&template.route.script_type),
            timeout_ms: template.timeout.min(limits::MAX_TIMEOUT) * 1000,
            jobs: Vec::new(),
        }
    }

    /// Decides in calls of a bounded size.
    async fn decide(&self, items: Vec<Item>) -> Result<FiredSlots, Error> {
        let mut fired = FiredSlots::default();
        let mut rest = items.as_slice();
        while !rest.is_empty() {
            let (mut count, mut jobs, mut bytes) = (0, 0, 0);
            for item in rest {
                jobs += item.jobs.len().max(1);
                bytes += item.jobs.iter().map(|(_, job)| size(job)).sum::<usize>();
                if count > 0 && (jobs > MAX_ITEMS || bytes > MAX_CALL_BYTES) {
                    break;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            let answer = self.call(now).await?;
            for (item, answer) in now.iter().zip(answer) {
                fired.add(item, answer);
            }
            rest = later;
        }
        Ok(fired)
    }

    async fn call(&self, items: &[Item]) -> Result<Vec<Vec<String>>, Error> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self.scripts.call(Verb::FireSchedules);
        call.push_arg(self.clock.argument());
        call.push_arg(&*self.who);
        for item in items {
            call.push_key(format!("{}{}", self.keys.schedule_prefix(), item.name));
            call.push_key(&item.control);
            for word in [&item.name, &item.version, &item.position, &item.to] {
                call.push_arg(word);
            }
            call.push_arg(match item.next {
                Next::At(ms) => ms.to_string(),
                Next::Never => String::new(),
                Next::AsBefore => "=".to_owned(),
            });
            call.push_arg(item.overlap);
            call.push_arg(item.timeout_ms);
            call.push_arg(&item.trouble);
            call.push_arg(item.jobs.len());
            for (slot, job) in &item.jobs {
                call.push_arg(slot);
                self.push_job(&mut call, job);
            }
        }
        call.run(&self.conn).await
    }
}

impl FiredSlots {
    fn add(&mut self, item: &Item, answer: Vec<String>) {
        let mut trouble = (!item.trouble.is_empty()).then(|| item.trouble.clone());
        for word in answer {
            match word.as_str() {
                "stored" => self.stored += 1,
                "skipped" => self.skipped += 1,
                // Another worker was first, another job has the unique name, or the job exists.
                "changed" | "exists" => {}
                word if word.starts_with("keep ") || word.starts_with("refuse ") => {}
                _ => trouble = Some(word),
            }
        }
        // Only the script knows an invalid name, which cannot be reported.
        if let (Some(why), Ok(name)) = (trouble, item.name.parse()) {
            self.troubles.push((name, why));
        }
    }
}

/// Returns how many jobs of this kind fit into one call.
fn fitting(job: &NewJob) -> usize {
    (MAX_CALL_BYTES / size(job).max(1)).clamp(1, MAX_SLOTS)
}

/// Returns the approximate size of a job, in bytes.
fn size(job: &NewJob) -> usize {
    job.script.len() + job.input.as_ref().map_or(0, Vec::len)
}
