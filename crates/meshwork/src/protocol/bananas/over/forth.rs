//! Import of jobs from Bananas.

use std::collections::HashMap;

use meshwork_broker::Enqueued;
use meshwork_broker::bananas::{From, MAX_OVER, Standing, TakenOver};
use meshwork_model::bananas::{Passage, Place, Runs};
use meshwork_model::name::ScriptType;

use super::Mover;
use super::report::{Moved, Stayed};
use crate::Error;

/// Most scans of a list while jobs move: earlier jobs may leave meanwhile.
const MOST_LOOKS: usize = 10;
/// Most remaining jobs of a list. Each job is searched from the list's end.
const DEEPEST: usize = 100_000;
/// Steps through a list in one call: some milliseconds of the server's time.
const MOST_STEPS: usize = 1_000_000;
/// Jobs by which others may have moved a job in its list since it was read.
const SLACK: usize = 1_000;
/// Most bytes of one call, except for a single larger job.
const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;

/// Cache: true for job names that a worker handles.
type Known = HashMap<String, bool>;

/// Decision about a job.
enum Fate {
    Goes(Box<Passage>),
    /// It is of a route that is not included.
    NotAsked,
    Stays(String),
}

impl Mover {
    /// Imports Bananas' waiting jobs, delayed jobs and dead letters. Calls `progress` after each step. Jobs submitted
    /// meanwhile may remain for the next import.
    ///
    /// # Errors
    /// If the server does not take a call. What was moved until then has moved.
    pub async fn take_over(&self, mut progress: impl FnMut(&Moved)) -> Result<Moved, Error> {
        let (mut moved, mut known) = (Moved::default(), Known::new());
        for place in self.places().await? {
            for look in 1..=MOST_LOOKS {
                let before = moved.count();
                let stayed = self
                    .look_through(&place, &mut moved, &mut known, &mut progress)
                    .await?;
                let over = moved.count() == before || moved.count() >= self.limit;
                if over || self.dry_run || look == MOST_LOOKS {
                    moved.leave(stayed);
                    break;
                }
            }
        }
        Ok(moved)
    }

    /// The places to look in: two makes of clients push jobs of all routes to lists without one.
    pub(super) async fn places(&self) -> Result<Vec<Place>, Error> {
        let keys = self.bananas.keys();
        let lists = self.bananas.depths().await?.lists.into_iter();
        let lists = lists.filter(|depth| keys.is_plain(&depth.list) || self.wants(&depth.route));
        let lists = lists.map(|depth| Place::List(depth.list));
        Ok(lists.chain([Place::Later, Place::Dead]).collect())
    }

    /// Looks once at all that stands in a place. Gives what stayed.
    async fn look_through(
        &self,
        place: &Place,
        moved: &mut Moved,
        known: &mut Known,
        progress: &mut impl FnMut(&Moved),
    ) -> Result<Stayed, Error> {
        let (mut stayed, mut behind, mut looked, mut all) = (Stayed::default(), 0, 0, None);
        while all.is_none_or(|all| looked < all) && moved.count() < self.limit {
            let most = (MOST_STEPS / (behind + SLACK)).clamp(1, MAX_OVER);
            let most = most.min(self.limit - moved.count());
            let (length, jobs) = self.bananas.peek(place, behind, most).await?;
            // What comes while this goes on is for the next time.
            all = all.or(Some(length));
            if jobs.is_empty() {
                break;
            }
            looked += jobs.len();
            moved.looked += jobs.len();
            let depth = behind + jobs.len() + SLACK;
            let mut going = Vec::new();
            for job in &jobs {
                match self.fate(place, job, known).await? {
                    Fate::Goes(passage) => going.push(*passage),
                    Fate::NotAsked => behind += 1,
                    Fate::Stays(why) => {
                        stayed.add(&job.id, &place.key(self.bananas.keys()), why);
                        behind += 1;
                    }
                }
            }
            behind += self.go(place, depth, &going, moved, &mut stayed).await?;
            progress(moved);
            if behind >= DEEPEST && matches!(place, Place::List(_)) {
                let why = format!("{behind} jobs that stay stand before it and those behind it");
                stayed.add(b"", &place.key(self.bananas.keys()), why);
                break;
            }
        }
        Ok(stayed)
    }

    async fn fate(&self, place: &Place, job: &Standing, known: &mut Known) -> Result<Fate, Error> {
        let keys = self.bananas.keys();
        let meshwork_broker::bananas::Found::Job(record) = &job.found else {
            return Ok(Fate::Stays(job.found.fault().unwrap_or_default()));
        };
        if !self.wants(&place.way(keys, record).0) {
            return Ok(Fate::NotAsked);
        }
        if job.is_done() {
            let why = "it is done already; a worker of ours for Bananas takes it off";
            return Ok(Fate::Stays(why.to_owned()));
        }
        let name = record.name();
        let runs = match self.handlers.get(name) {
            Some(runs) => runs,
            None if self.is_run(name, known).await? => &Runs::Function,
            None => {
                return Ok(Fate::Stays(format!(
                    "nobody here runs jobs of the name {name:?}"
                )));
            }
        };
        let id = String::from_utf8_lossy(&job.id);
        let passage = record.passage(keys, &id, (place, &job.time), runs, self.seconds());
        Ok(match passage {
            Ok(passage) => Fate::Goes(Box::new(passage)),
            Err(why) => Fate::Stays(why.to_string()),
        })
    }

    async fn is_run(&self, name: &str, known: &mut Known) -> Result<bool, Error> {
        if let Some(is) = known.get(name) {
            return Ok(*is);
        }
        let is = match name.parse::<ScriptType>() {
            Ok(script_type) => self.broker.is_run(&script_type).await?,
            Err(_) => false,
        };
        known.insert(name.to_owned(), is);
        Ok(is)
    }

    /// Takes these over. Gives how many stay.
    async fn go(
        &self,
        place: &Place,
        depth: usize,
        going: &[Passage],
        moved: &mut Moved,
        stayed: &mut Stayed,
    ) -> Result<usize, Error> {
        if self.dry_run {
            going.iter().for_each(|_| moved.went(place));
            return Ok(going.len());
        }
        let from = From {
            keys: self.bananas.keys(),
            place,
            depth,
            overdue: self.overdue,
        };
        let mut stay = 0;
        for jobs in calls(going) {
            let imported = self.broker.take_over(from, jobs).await?;
            for (job, imported) in jobs.iter().zip(imported) {
                let why = match imported {
                    TakenOver::Taken => {
                        moved.went(place);
                        continue;
                    }
                    TakenOver::Twice => {
                        moved.twice += 1;
                        continue;
                    }
                    TakenOver::Gone => continue,
                    stays => reason(stays),
                };
                stayed.add(job.job.id.as_str().as_bytes(), &job.origin.place, why);
                stay += 1;
            }
        }
        Ok(stay)
    }
}

/// Why a job stays.
fn reason(imported: TakenOver) -> String {
    let refused = match imported {
        TakenOver::Runs => return "a worker has it in hand".to_owned(),
        TakenOver::Due => {
            return "its time has come or is about to: its scheduler moves it to a list first"
                .to_owned();
        }
        TakenOver::Odd(why) => return format!("a key here is of another kind: {why}"),
        TakenOver::Refused(refused) => refused,
        _ => return "its record is changing".to_owned(),
    };
    match refused {
        Enqueued::Exists => "there is another job of its id here".to_owned(),
        Enqueued::Full => "its queue here holds as many as it may".to_owned(),
        Enqueued::Draining => "its queue here is being drained".to_owned(),
        Enqueued::Large(bytes) => format!("its queue here takes no {bytes} bytes"),
        other => format!("it was refused here: {other:?}"),
    }
}

/// The jobs of one call each.
fn calls(going: &[Passage]) -> impl Iterator<Item = &[Passage]> {
    let mut rest = going;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|passage| {
            // The record, and its payload once more, perhaps with a script.
            let input = passage.job.input.as_ref().map_or(0, Vec::len);
            bytes += passage.record.len() + passage.job.script.len() + input;
            bytes <= MAX_CALL_BYTES
        });
        let (now, later) = rest.split_at(fits.count().max(1).min(rest.len()));
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}
