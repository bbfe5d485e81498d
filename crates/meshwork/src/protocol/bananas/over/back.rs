//! From us back to Bananas.

use meshwork_broker::bananas::{GivenBack, Over};
use meshwork_model::bananas::{Place, Return};

use super::Mover;
use super::report::{Moved, Stayed};
use crate::Error;

/// Decision about a job.
enum Fate {
    Goes(Return),
    /// It has ended, or is not included.
    Done,
    Stays(&'static str),
}

impl Mover {
    /// Exports imported jobs that have not completed back to Bananas. Each returns to its list, its delay or the dead
    /// letters, with its record and the changes to it. Calls `progress` after each step.
    ///
    /// # Errors
    /// If the server does not take a call. What was moved until then has moved.
    pub async fn give_back(&self, mut progress: impl FnMut(&Moved)) -> Result<Moved, Error> {
        let all = self.count_back().await?;
        let (mut moved, mut stayed, mut behind) = (Moved::default(), Stayed::default(), 0);
        // What is taken over while this goes on is for the next time.
        while moved.looked < all && moved.count() < self.limit {
            let mut jobs = self.broker.taken_over(behind).await?;
            jobs.truncate(self.limit - moved.count());
            let Some(last) = jobs.last() else { break };
            behind = last.number;
            moved.looked += jobs.len();
            let mut going = Vec::new();
            for job in &jobs {
                match self.fate_back(job) {
                    Fate::Goes(to) => going.push((job, to)),
                    Fate::Done => {}
                    Fate::Stays(why) => stayed.add(job.id.as_str().as_bytes(), place(job), why),
                }
            }
            self.go_back(&going, &mut moved, &mut stayed).await?;
            progress(&moved);
        }
        moved.leave(stayed);
        Ok(moved)
    }

    fn fate_back(&self, job: &Over) -> Fate {
        let keys = self.bananas.keys();
        let Some((origin, record)) = &job.was else {
            return Fate::Stays("what it was cannot be read any more");
        };
        let from = match keys.parse_list(&origin.place) {
            Some(_) => Place::List(origin.place.clone()),
            None => Place::Later,
        };
        let (route, priority) = from.way(keys, record);
        if origin.record != keys.job(job.id.as_str()) || !self.wants(&route) {
            return Fate::Done;
        }
        if job.runs {
            return Fate::Stays("a worker runs it");
        }
        let Some(stands) = &job.stands else {
            return Fate::Done;
        };
        let list = self.peer.list(keys, &route, priority);
        Fate::Goes(record.given_back(keys, stands, origin, &list))
    }

    async fn go_back(
        &self,
        going: &[(&Over, Return)],
        moved: &mut Moved,
        stayed: &mut Stayed,
    ) -> Result<(), Error> {
        if self.dry_run {
            going.iter().for_each(|(_, to)| moved.went(&to.place));
            return Ok(());
        }
        let exported = self.broker.give_back(self.bananas.keys(), going).await?;
        for ((job, to), exported) in going.iter().zip(exported) {
            let why = match exported {
                GivenBack::Given => {
                    moved.went(&to.place);
                    continue;
                }
                GivenBack::Gone => continue,
                GivenBack::Runs => "a worker runs it",
                GivenBack::Changed => "it has changed meanwhile: say it again",
                GivenBack::Awaited => "other jobs here wait for it",
                GivenBack::Odd => "a key there is of another kind",
            };
            stayed.add(job.id.as_str().as_bytes(), place(job), why);
        }
        Ok(())
    }
}

/// Origin of a job.
fn place(job: &Over) -> &str {
    job.was.as_ref().map_or("", |(origin, _)| &origin.place)
}
