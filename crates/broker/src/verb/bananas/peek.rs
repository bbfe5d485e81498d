//! peek: reads waiting jobs of a key, to move them elsewhere.

use meshwork_macros::boxed;
use meshwork_model::bananas::Bucket;

use super::claim::is_done;
use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A job in a list or set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeekedJobs {
    /// Id of the job, any bytes.
    pub id: Vec<u8>,
    /// Score of a delayed job; empty in a list.
    pub time: String,
    /// Record of the job.
    pub found: Found,
    /// Time of completion in its result, if the result records one.
    pub done_at: Option<String>,
}

impl PeekedJobs {
    /// Returns whether the job has completed already and its id was pushed again. A worker would drop it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_done(&self.id, &self.found, self.done_at.as_deref())
    }
}

type Row = (Vec<u8>, String, String, Vec<u8>, String);

impl Bananas {
    /// Returns the number of jobs in a key, and up to `most` of them from position `behind` on, the next one first.
    /// Large records reduce the number. A key of another type is empty.
    ///
    /// # Errors
    /// `most` exceeds [`MAX_ITEMS`], or the server refuses the call.
    #[boxed]
    pub async fn peek(
        &self,
        place: &Bucket,
        behind: usize,
        most: usize,
    ) -> Result<(usize, Vec<PeekedJobs>), Error> {
        at_most("peek", MAX_ITEMS, most)?;
        let call = self.call(Verb::BananasPeek).key(place.key(&self.keys));
        let mut answer = call.arg(behind).arg(most).answer(&self.conn).await?;
        let (all, rows): (usize, Vec<Row>) = (answer.next("all")?, answer.next("jobs")?);
        let standing = |(id, time, state, text, done_at): Row| PeekedJobs {
            id,
            time,
            found: Found::read(&state, text),
            done_at: Some(done_at).filter(|time| !time.is_empty()),
        };
        Ok((all, rows.into_iter().map(standing).collect()))
    }
}
