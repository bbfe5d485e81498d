//! take_over: jobs of Bananas become jobs of ours.

use meshwork_model::bananas::{Passage, Place};
use meshwork_model::job::field;
use meshwork_model::keys::bananas::Bananas as Keys;

use crate::script::Verb;
use crate::verb::enqueue::told;
use crate::verb::{at_most, sha1};
use crate::{Broker, Enqueued, Error};

/// The most jobs in one call: each is looked for in its place.
pub const MAX_OVER: usize = 100;

/// Where jobs are taken from.
#[derive(Debug, Clone, Copy)]
pub struct From<'a> {
    /// The names there.
    pub keys: &'a Keys,
    /// Where they stand.
    pub place: &'a Place,
    /// How deep to look into a list.
    pub depth: usize,
    /// Also those whose time has come. A scheduler of Bananas that has read such a job already pushes it all the same.
    pub overdue: bool,
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenOver {
    /// It is a job of ours now, and no more there.
    Taken,
    /// It is one already, and stood there a second time: that entry is gone.
    Twice,
    /// It stands there no more: a worker has taken it, or somebody else.
    Gone,
    /// It stays, since a worker has it in hand.
    Runs,
    /// It stays, since its time has come: Bananas' scheduler is about to move it.
    Due,
    /// It stays, since its record is another one now.
    Changed,
    /// It stays, since a key here is of another kind.
    Odd(String),
    /// It stays, since enqueue stores no such job.
    Refused(Enqueued),
}

impl Broker {
    /// Takes jobs of Bananas over, each in one step: it leaves the place where it stands there, and waits here for its
    /// run or its time, or is a dead letter. Its record there stays, and says its end when it has ended here; who waits
    /// for it there is told then. Said again, it changes nothing.
    ///
    /// # Errors
    /// If there are more than [`MAX_OVER`], or the server does not take the call: so with two namespaces of different
    /// hash tags on a cluster. Nothing was done then, unless the connection broke.
    pub async fn take_over(
        &self,
        from: From<'_>,
        jobs: &[Passage],
    ) -> Result<Vec<TakenOver>, Error> {
        at_most("take_over", MAX_OVER, jobs.len())?;
        let From { keys, place, .. } = from;
        let mut call = self.scripts.call(Verb::TakeOver);
        for key in [
            place.key(keys),
            keys.processing(),
            keys.held(),
            keys.scheduled(),
        ] {
            call.push_key(key);
        }
        call.push_arg(self.clock.argument());
        call.push_arg(&*self.who);
        call.push_arg(from.depth);
        call.push_arg(place.kind());
        call.push_arg(u8::from(from.overdue));
        for passage in jobs {
            let origin = &passage.origin;
            let died = passage.written_ms.filter(|_| *place == Place::Dead);
            let died = died.map(|ms| ms.to_string());
            call.push_key(&origin.record);
            call.push_arg(died.or(origin.time.clone()).unwrap_or_default());
            call.push_arg(sha1(passage.record.as_bytes()));
            call.push_arg(&passage.error);
            let mut more = passage.fields();
            let queue = passage.job.route.queue(&self.keys);
            more.push((field::QUEUE, queue.into()));
            self.push_job_with(&mut call, &passage.job, more);
        }
        let answers: Vec<String> = call.run(&self.conn).await?;
        answers.into_iter().map(taken_over).collect()
    }
}

fn taken_over(answer: String) -> Result<TakenOver, Error> {
    if let Some(why) = answer.strip_prefix("odd ") {
        return Ok(TakenOver::Odd(why.to_owned()));
    }
    Ok(match answer.as_str() {
        "taken" => TakenOver::Taken,
        "twice" => TakenOver::Twice,
        "gone" => TakenOver::Gone,
        "runs" => TakenOver::Runs,
        "due" => TakenOver::Due,
        "changed" => TakenOver::Changed,
        _ => TakenOver::Refused(told(answer)?),
    })
}
