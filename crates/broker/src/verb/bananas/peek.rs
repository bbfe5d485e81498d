//! peek: what waits in a place, for who moves it elsewhere.

use meshwork_model::bananas::Place;

use super::claim::is_done;
use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// A job that stands in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    /// Its time as it stands there; nothing in a list.
    pub time: String,
    /// What it is.
    pub found: Found,
    /// When it was done, as its result says it, if that says that it is.
    pub done_at: Option<String>,
}

impl Standing {
    /// Whether it is done already, and its id stands there once more: a worker would drop it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_done(&self.id, &self.found, self.done_at.as_deref())
    }
}

type Row = (Vec<u8>, String, String, Vec<u8>, String);

impl Bananas {
    /// How many jobs stand in a place, and up to `most` of them, the next one first, from behind so many on; fewer if
    /// their records are large. A key of another kind holds none.
    ///
    /// # Errors
    /// If more than [`MAX_ITEMS`] are wanted, or the server does not take the call.
    pub async fn peek(
        &self,
        place: &Place,
        behind: usize,
        most: usize,
    ) -> Result<(usize, Vec<Standing>), Error> {
        at_most("peek", MAX_ITEMS, most)?;
        let call = self.call(Verb::BananasPeek).key(place.key(&self.keys));
        let mut answer = call.arg(behind).arg(most).answer(&self.conn).await?;
        let (all, rows): (usize, Vec<Row>) = (answer.next("all")?, answer.next("jobs")?);
        let standing = |(id, time, state, text, done_at): Row| Standing {
            id,
            time,
            found: Found::read(&state, text),
            done_at: Some(done_at).filter(|time| !time.is_empty()),
        };
        Ok((all, rows.into_iter().map(standing).collect()))
    }
}
