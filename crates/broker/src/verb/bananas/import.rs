//! import_bananas: imports jobs of Bananas.

use meshwork_macros::boxed;
use meshwork_model::bananas::{Bucket, Conversion};
use meshwork_model::job::field;
use meshwork_model::keys::bananas::BananasKeys as Keys;

use crate::Enqueued;
use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::jobs::enqueue::parse_enqueued;
use crate::verb::{at_most, sha1};

/// Greatest number of jobs in a call. Each is searched for in its list.
pub const MAX_OVER: usize = 100;

/// Source of an import.
#[derive(Debug, Clone, Copy)]
pub struct ImportFrom<'a> {
    /// Keys of Bananas.
    pub keys: &'a Keys,
    /// Key that lists the jobs.
    pub place: &'a Bucket,
    /// Number of ids of a list that are searched.
    pub depth: usize,
    /// True to import also jobs that are due. A scheduler of Bananas that has already read such a job pushes it
    /// anyway.
    pub overdue: bool,
}

/// The result of importing a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The job was imported, and removed there.
    Taken,
    /// The job was imported before, and listed there twice; the second entry was removed.
    Twice,
    /// The key does not list the job any more: a worker claimed it, or it was removed.
    Gone,
    /// The job stays, because a worker runs it.
    Runs,
    /// The job stays, because it is due: Bananas' scheduler is about to move it.
    Due,
    /// The job stays, because its record has changed.
    Changed,
    /// The job stays, because a key here has another type.
    Odd(String),
    /// The job stays, because it cannot be enqueued.
    Refused(Enqueued),
}

impl Broker {
    /// Imports jobs of Bananas, each in one step. The job is removed from its list there, and is queued, delayed or a
    /// dead letter here. Its record in Bananas stays, and gets the outcome when the job ends here, with a
    /// notification of waiting clients. Repeating the call changes nothing.
    ///
    /// # Errors
    /// There are more than [`MAX_OVER`], or the server refuses the call, as for two namespaces with different hash
    /// tags on a cluster. Nothing was done then, unless the connection broke.
    #[boxed]
    pub async fn import(
        &self,
        from: ImportFrom<'_>,
        jobs: &[Conversion],
    ) -> Result<Vec<Imported>, Error> {
        at_most("import_bananas", MAX_OVER, jobs.len())?;
        let ImportFrom { keys, place, .. } = from;
        let mut call = self.scripts.call(Verb::ImportBananas);
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
        for conversion in jobs {
            let origin = &conversion.origin;
            let died = conversion.written_ms.filter(|_| *place == Bucket::Dead);
            let died = died.map(|ms| ms.to_string());
            call.push_key(&origin.record);
            call.push_arg(died.or(origin.time.clone()).unwrap_or_default());
            call.push_arg(sha1(conversion.record.as_bytes()));
            call.push_arg(&conversion.error);
            let mut more = conversion.fields();
            let queue = conversion.job.route.queue(&self.keys);
            more.push((field::QUEUE, queue.into()));
            self.push_job_with(&mut call, &conversion.job, more);
        }
        let answers: Vec<String> = call.run(&self.conn).await?;
        answers.into_iter().map(imported).collect()
    }
}

fn imported(answer: String) -> Result<Imported, Error> {
    if let Some(why) = answer.strip_prefix("odd ") {
        return Ok(Imported::Odd(why.to_owned()));
    }
    Ok(match answer.as_str() {
        "taken" => Imported::Taken,
        "twice" => Imported::Twice,
        "gone" => Imported::Gone,
        "runs" => Imported::Runs,
        "due" => Imported::Due,
        "changed" => Imported::Changed,
        _ => Imported::Refused(parse_enqueued(answer)?),
    })
}
