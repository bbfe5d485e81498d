//! Scans lists without a route for foreign jobs, which stay there ([`super::Foreign::Leave`]). Nothing is claimed from
//! these lists while one is there, since it is the next job. Once per second one worker scans them and moves jobs for
//! workers of Meshwork to the lists of their routes, in order.

use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::bananas::{Claim, Found, PeekedJobs, Reroute};
use meshwork_model::bananas::Bucket;
use meshwork_model::name::RoutingKey;

use super::state::BananasProtocol;

/// Greatest number of jobs of one list that a scan reads at a time.
const LOOK: usize = 1000;
/// Greatest depth of a scan. Jobs behind as many foreign jobs wait for these.
const DEEPEST: usize = 10_000;
/// Greatest number of steps of one call, since each job is searched in its list.
const MOST_STEPS: usize = 1_000_000;
/// Greatest number of jobs moved to this worker's routes at a time, since workers of Bananas may not claim from there.
const MOST_OWN: usize = 100;

/// Scans the lists if a scan is due.
///
/// # Errors
/// A call to the server fails; the scan is repeated later.
pub(super) async fn look(state: &BananasProtocol, lease: Duration) -> Result<(), Error> {
    if !state.looks_at_left() {
        return Ok(());
    }
    state.let_plain_rest();
    let lists = state.plain_lists();
    let mut looked = state.behind.lock().await;
    looked.resize(lists.len(), 0);
    requeue(state, &lists, lease).await?;
    let (mut own, mut left) = (MOST_OWN, false);
    for (list, behind) in lists.iter().zip(looked.iter_mut()) {
        left |= look_through(state, list, behind, &mut own).await?;
    }
    if !left {
        state.end_plain_rest();
    }
    Ok(())
}

/// Returns jobs that this worker claimed from these lists before.
async fn requeue(state: &BananasProtocol, lists: &[String], lease: Duration) -> Result<(), Error> {
    let nothing = Claim {
        lists,
        want: 0,
        lease,
        worker: state.identity.worker(),
        token: &state.identity.token(),
    };
    state.broker.claim(nothing).await.map(drop)
}

/// Scans one list. Returns true if foreign jobs, or jobs that were not read yet, are on it.
async fn look_through(
    state: &BananasProtocol,
    list: &str,
    behind: &mut usize,
    own: &mut usize,
) -> Result<bool, Error> {
    let (broker, from) = (&state.broker, *behind);
    let place = Bucket::List(list.to_owned());
    let (all, jobs) = broker.peek(&place, from, LOOK).await?;
    let depth = from + jobs.len();
    let mine = |job: &Reroute| state.routes.keys().contains(&job.route);
    let (mut going, others): (Vec<_>, Vec<_>) = jobs.iter().map(forward).partition(mine);
    let others_there = !others.is_empty();
    going.truncate(*own);
    *own -= going.len();
    going.extend(others);
    going.truncate(MOST_STEPS / depth.max(1));
    let moved = broker.reroute(list, depth, &going).await?;
    let seen_to_the_end = depth >= all || depth >= DEEPEST || jobs.is_empty();
    *behind = if seen_to_the_end { 0 } else { depth - moved };
    Ok(others_there || from > 0 || !seen_to_the_end)
}

/// Returns the destination of a job; `default` for an invalid route or record.
fn forward(job: &PeekedJobs) -> Reroute {
    let route = match &job.found {
        Found::Job(record) => record.route(),
        _ => None,
    };
    Reroute {
        id: job.id.clone(),
        route: route.unwrap_or_else(RoutingKey::default),
    }
}
