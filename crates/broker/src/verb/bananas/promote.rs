//! promote: moves delayed jobs that are due to the lists of their routes.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::bananas::ClientVariant;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Found, push_draft};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;

/// Greatest number of jobs in a call, which transfers all their records twice.
const MOST: usize = MAX_ITEMS / 4;

/// Delayed jobs that are due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    jobs: Vec<(Vec<u8>, Vec<u8>, Found)>,
    /// Time until the next delayed job is due, if there is one.
    pub next: Option<Duration>,
}

impl Due {
    /// Returns whether no job is due.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

/// The result of a promotion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Promoted {
    /// Number of moved jobs and of ids that became dead letters.
    pub moved: usize,
    /// Number of ids that became dead letters, because no record names their route.
    pub buried: usize,
}

type Row = (Vec<u8>, Vec<u8>, String, Vec<u8>);

impl Bananas {
    /// Finds delayed jobs that are due, a bounded number.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn due(&self) -> Result<Due, Error> {
        let call = self.call(Verb::BananasDue).arg(MOST);
        let mut answer = call.answer(&self.conn).await?;
        let rows: Vec<Row> = answer.next("jobs")?;
        let job = |(id, time, state, text): Row| (id, time, Found::read(&state, text));
        Ok(Due {
            jobs: rows.into_iter().map(job).collect(),
            next: answer.millis("next")?,
        })
    }

    /// Moves jobs that are due to the lists to which `variant` pushes jobs of these routes. Each moves once, even if
    /// other schedulers do the same. An entry without a record becomes a dead letter with the reason. Changed entries
    /// are left for the next call.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn promote(&self, due: &Due, variant: ClientVariant) -> Result<Promoted, Error> {
        let mut call = self.call(Verb::BananasPromote);
        for (id, time, found) in &due.jobs {
            let (list, record) = match found {
                Found::Job(record) => {
                    let route = record.route().unwrap_or_default();
                    let list = variant.list(&self.keys, &route, record.priority());
                    (list, Some(record.promoted()))
                }
                // A job without a readable record gets the defaults.
                found => {
                    let list = variant.list(&self.keys, &RoutingKey::default(), Priority::Normal);
                    (list, found.epitaph(id))
                }
            };
            call.push_key(list);
            call.push_arg(id.as_slice());
            call.push_arg(time.as_slice());
            call.push_arg(found.digest());
            call.push_arg(found.fault().unwrap_or_default());
            push_draft(&mut call, record.as_ref());
        }
        let done: Vec<usize> = call.run(&self.conn).await?;
        let found = done
            .iter()
            .filter_map(|place| due.jobs.get(place.wrapping_sub(1)));
        Ok(Promoted {
            moved: done.len(),
            buried: found
                .filter(|(_, _, found)| found.fault().is_some())
                .count(),
        })
    }
}
