//! spread_keys: keys of a spread queue with unfinished jobs in one of its parts.

use meshwork_macros::boxed;
use meshwork_model::spread::SpreadName;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;

/// Greatest number of keys in one call: each reads the state of at least one job.
const PAGE: usize = 200;

/// Keys of a spread queue in a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpreadKeys {
    /// A page of keys with unfinished jobs, and the number of keys to skip for the next page, if there is one.
    Page(Vec<String>, Option<u64>),
    /// The part has seen a later layout, of this generation.
    Stale(u64),
}

impl Broker {
    /// Reads a page of the keys that have unfinished jobs in this part, about 200. The part adopts the generation: it
    /// takes no job any more that was placed by an earlier layout.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn spread_keys(
        &self,
        name: &SpreadName,
        generation: u64,
        skip: u64,
    ) -> Result<SpreadKeys, Error> {
        let call = self.scripts.call(Verb::SpreadKeys);
        let call = call.arg(name.to_string()).arg(generation);
        let mut answer = call.arg(skip).arg(PAGE).answer(&self.conn).await?;
        let (newer, next): (u64, u64) = (answer.next("generation")?, answer.next("skip")?);
        Ok(match newer {
            0 => SpreadKeys::Page(answer.texts("keys")?, (next > 0).then_some(next)),
            newer => SpreadKeys::Stale(newer),
        })
    }
}
