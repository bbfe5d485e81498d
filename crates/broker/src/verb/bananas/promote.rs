//! promote: bring jobs whose time has come to the lists of their routes.

use std::time::Duration;

use meshwork_model::bananas::Peer;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Found, push_draft};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::MAX_ITEMS;

/// The most jobs in one call: the records of all of them go to and fro.
const MOST: usize = MAX_ITEMS / 4;

/// What one look found: jobs whose time has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Due {
    jobs: Vec<(Vec<u8>, Vec<u8>, Found)>,
    /// When the next one is due, if any waits.
    pub next: Option<Duration>,
}

impl Due {
    /// Whether nothing is due.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

/// What was moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Promoted {
    /// Jobs that were moved, and ids that became dead letters.
    pub moved: usize,
    /// How many of these became dead letters: there is no record that says where they belong.
    pub buried: usize,
}

type Row = (Vec<u8>, Vec<u8>, String, Vec<u8>);

impl Bananas {
    /// Finds jobs whose time has come, a bounded number.
    ///
    /// # Errors
    /// If the server does not take the call.
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

    /// Moves what was found to be due to the lists to which `peer` pushes jobs of these routes, each once, whoever
    /// else does the same. An entry without a record becomes a dead letter with the reason; what has changed since
    /// is left for the next look.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn promote(&self, due: &Due, peer: Peer) -> Result<Promoted, Error> {
        let mut call = self.call(Verb::BananasPromote);
        for (id, time, found) in &due.jobs {
            let (list, record) = match found {
                Found::Job(record) => {
                    let route = record.route().unwrap_or_default();
                    let list = peer.list(&self.keys, &route, record.priority());
                    (list, Some(record.promoted()))
                }
                // Nothing tells what it was for: it counts as a job that asks for nothing.
                found => {
                    let list = peer.list(&self.keys, &RoutingKey::default(), Priority::Normal);
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
