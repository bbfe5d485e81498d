//! Import of jobs from Bananas.

use std::collections::HashMap;

use meshwork_broker::Enqueued;
use meshwork_broker::bananas::{ImportFrom, Imported, MAX_OVER, PeekedJobs};
use meshwork_model::bananas::{Bucket, Conversion, HandlerKind};
use meshwork_model::name::ScriptType;

use super::Migrator;
use super::report::{MigrationReport, SkippedJobs};
use crate::Error;

/// Greatest number of scans of a list, since its jobs may move meanwhile.
const MOST_LOOKS: usize = 10;
/// Greatest number of skipped jobs in a list, since each job is searched from the list's end.
const DEEPEST: usize = 100_000;
/// Greatest number of steps through a list in one call: some milliseconds of the server's time.
const MOST_STEPS: usize = 1_000_000;
/// Number of positions by which a job may have moved in its list since it was read.
const SLACK: usize = 1_000;
/// Greatest number of bytes in one call, except for a single larger job.
const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;

/// Cache: true for names of jobs that a worker handles.
type Known = HashMap<String, bool>;

/// Decision about a job.
enum Decision {
    Goes(Box<Conversion>),
    /// The job's route is not selected.
    NotSelected,
    Stays(String),
}

impl Migrator {
    /// Imports waiting jobs, delayed jobs and dead letters of Bananas. Calls `progress` after each step. Jobs that are
    /// submitted meanwhile may remain for the next import.
    ///
    /// # Errors
    /// A call to the server fails. Jobs that have moved before stay moved.
    pub async fn import(
        &self,
        mut progress: impl FnMut(&MigrationReport),
    ) -> Result<MigrationReport, Error> {
        let (mut moved, mut known) = (MigrationReport::default(), Known::new());
        for place in self.places().await? {
            for look in 1..=MOST_LOOKS {
                let before = moved.count();
                let skipped = self
                    .look_through(&place, &mut moved, &mut known, &mut progress)
                    .await?;
                let over = moved.count() == before || moved.count() >= self.limit;
                if over || self.dry_run || look == MOST_LOOKS {
                    moved.skip(skipped);
                    break;
                }
            }
        }
        Ok(moved)
    }

    /// Returns the lists to read. Two variants of client push jobs of all routes to lists without a route.
    pub(super) async fn places(&self) -> Result<Vec<Bucket>, Error> {
        let keys = self.bananas.keys();
        let lists = self.bananas.depths().await?.lists.into_iter();
        let lists = lists.filter(|depth| keys.is_plain(&depth.list) || self.wants(&depth.route));
        let lists = lists.map(|depth| Bucket::List(depth.list));
        Ok(lists.chain([Bucket::Later, Bucket::Dead]).collect())
    }

    /// Reads all jobs of a list once and imports them. Returns the skipped jobs.
    async fn look_through(
        &self,
        place: &Bucket,
        moved: &mut MigrationReport,
        known: &mut Known,
        progress: &mut impl FnMut(&MigrationReport),
    ) -> Result<SkippedJobs, Error> {
        let (mut skipped, mut behind, mut checked, mut all) = (SkippedJobs::default(), 0, 0, None);
        while all.is_none_or(|all| checked < all) && moved.count() < self.limit {
            let most = (MOST_STEPS / (behind + SLACK)).clamp(1, MAX_OVER);
            let most = most.min(self.limit - moved.count());
            let (length, jobs) = self.bananas.peek(place, behind, most).await?;
            // Jobs that are pushed meanwhile remain for the next import.
            all = all.or(Some(length));
            if jobs.is_empty() {
                break;
            }
            checked += jobs.len();
            moved.checked += jobs.len();
            let depth = behind + jobs.len() + SLACK;
            let mut going = Vec::new();
            for job in &jobs {
                match self.decide_import(place, job, known).await? {
                    Decision::Goes(conversion) => going.push(*conversion),
                    Decision::NotSelected => behind += 1,
                    Decision::Stays(why) => {
                        skipped.add(&job.id, &place.key(self.bananas.keys()), why);
                        behind += 1;
                    }
                }
            }
            behind += self.go(place, depth, &going, moved, &mut skipped).await?;
            progress(moved);
            if behind >= DEEPEST && matches!(place, Bucket::List(_)) {
                let why = format!("{behind} skipped jobs are before this one; later jobs stay too");
                skipped.add(b"", &place.key(self.bananas.keys()), why);
                break;
            }
        }
        Ok(skipped)
    }

    async fn decide_import(
        &self,
        place: &Bucket,
        job: &PeekedJobs,
        known: &mut Known,
    ) -> Result<Decision, Error> {
        let keys = self.bananas.keys();
        let meshwork_broker::bananas::Found::Job(record) = &job.found else {
            return Ok(Decision::Stays(job.found.fault().unwrap_or_default()));
        };
        if !self.wants(&place.way(keys, record).0) {
            return Ok(Decision::NotSelected);
        }
        if job.is_done() {
            let why = "it is done already; a worker of Meshwork for Bananas removes it";
            return Ok(Decision::Stays(why.to_owned()));
        }
        let name = record.name();
        let runs = match self.handlers.get(name) {
            Some(runs) => runs,
            None if self.is_run(name, known).await? => &HandlerKind::Function,
            None => {
                return Ok(Decision::Stays(format!(
                    "nobody here runs jobs of the name {name:?}"
                )));
            }
        };
        let id = String::from_utf8_lossy(&job.id);
        let conversion = record.conversion(keys, &id, (place, &job.time), runs, self.seconds());
        Ok(match conversion {
            Ok(conversion) => Decision::Goes(Box::new(conversion)),
            Err(why) => Decision::Stays(why.to_string()),
        })
    }

    async fn is_run(&self, name: &str, known: &mut Known) -> Result<bool, Error> {
        if let Some(is) = known.get(name) {
            return Ok(*is);
        }
        let is = match name.parse::<ScriptType>() {
            Ok(script_type) => self.broker.has_worker(&script_type).await?,
            Err(_) => false,
        };
        known.insert(name.to_owned(), is);
        Ok(is)
    }

    /// Imports these jobs. Returns the number of skipped jobs.
    async fn go(
        &self,
        place: &Bucket,
        depth: usize,
        going: &[Conversion],
        moved: &mut MigrationReport,
        skipped: &mut SkippedJobs,
    ) -> Result<usize, Error> {
        if self.dry_run {
            going.iter().for_each(|_| moved.count_moved(place));
            return Ok(going.len());
        }
        let from = ImportFrom {
            keys: self.bananas.keys(),
            place,
            depth,
            overdue: self.overdue,
        };
        let mut remaining = 0;
        for jobs in calls(going) {
            let imported = self.broker.import(from, jobs).await?;
            for (job, imported) in jobs.iter().zip(imported) {
                let why = match imported {
                    Imported::Taken => {
                        moved.count_moved(place);
                        continue;
                    }
                    Imported::Twice => {
                        moved.twice += 1;
                        continue;
                    }
                    Imported::Gone => continue,
                    stays => reason(stays),
                };
                skipped.add(job.job.id.as_str().as_bytes(), &job.origin.place, why);
                remaining += 1;
            }
        }
        Ok(remaining)
    }
}

/// Returns the reason why a job was skipped.
fn reason(imported: Imported) -> String {
    let refused = match imported {
        Imported::Runs => return "a worker runs it".to_owned(),
        Imported::Due => {
            return "it is due: the scheduler of Bananas moves it to a list first".to_owned();
        }
        Imported::Odd(why) => return format!("a key of Meshwork has another type: {why}"),
        Imported::Refused(refused) => refused,
        _ => return "its record is changing".to_owned(),
    };
    match refused {
        Enqueued::Exists => "Meshwork has another job with this id".to_owned(),
        Enqueued::Full => "its queue in Meshwork is full".to_owned(),
        Enqueued::Draining => "its queue in Meshwork drains".to_owned(),
        Enqueued::Large(bytes) => format!("its queue in Meshwork refuses {bytes} bytes"),
        other => format!("Meshwork refused it: {other:?}"),
    }
}

/// Splits the jobs into calls.
fn calls(going: &[Conversion]) -> impl Iterator<Item = &[Conversion]> {
    let mut rest = going;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|conversion| {
            // Size of the record, and of its payload as input, perhaps with a script.
            let input = conversion.job.input.as_ref().map_or(0, Vec::len);
            bytes += conversion.record.len() + conversion.job.script.len() + input;
            bytes <= MAX_CALL_BYTES
        });
        let (now, later) = rest.split_at(fits.count().max(1).min(rest.len()));
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}
