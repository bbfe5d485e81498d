//! Left: what becomes of lists without a route on which jobs for others were left ([`super::Foreign::Leave`]). Such a job is
//! the next one there, so nothing is taken from these lists while any is left. Once a second one looks at what stands there,
//! and brings what somebody of ours takes to the lists of their routes, in their order; what is left stays as it was.

use std::time::Duration;

use meshwork_broker::Error;
use meshwork_broker::bananas::{Claim, Forward, Found, Standing};
use meshwork_model::bananas::Place;
use meshwork_model::name::RoutingKey;

use super::state::BananasProtocol;

/// The most jobs looked at of one list at a time.
const LOOK: usize = 1000;
/// So deep one looks into a list; what stands behind so many that are left waits for them.
const DEEPEST: usize = 10_000;
/// The most steps of one call: each job is looked for in its list.
const MOST_STEPS: usize = 1_000_000;
/// The most jobs for this worker that are brought to lists of its routes at a time, since Bananas' workers may not take
/// from there.
const MOST_OWN: usize = 100;

/// Looks through the lists, if it is time to.
///
/// # Errors
/// If the server does not take a call: one looks again after a while.
pub(super) async fn look(state: &BananasProtocol, lease: Duration) -> Result<(), Error> {
    if !state.looks_at_left() {
        return Ok(());
    }
    state.let_plain_rest();
    let lists = state.plain_lists();
    let mut looked = state.behind.lock().await;
    looked.resize(lists.len(), 0);
    hand_back(state, &lists, lease).await?;
    let (mut own, mut left) = (MOST_OWN, false);
    for (list, behind) in lists.iter().zip(looked.iter_mut()) {
        left |= look_through(state, list, behind, &mut own).await?;
    }
    if !left {
        state.end_plain_rest();
    }
    Ok(())
}

/// What came from these lists to this worker before goes back.
async fn hand_back(
    state: &BananasProtocol,
    lists: &[String],
    lease: Duration,
) -> Result<(), Error> {
    let nothing = Claim {
        lists,
        want: 0,
        lease,
        worker: state.identity.worker(),
        token: &state.identity.token(),
    };
    state.broker.claim(nothing).await.map(drop)
}

/// Whether jobs for others are left there, or there are some that nobody has looked at.
async fn look_through(
    state: &BananasProtocol,
    list: &str,
    behind: &mut usize,
    own: &mut usize,
) -> Result<bool, Error> {
    let (broker, from) = (&state.broker, *behind);
    let place = Place::List(list.to_owned());
    let (all, jobs) = broker.peek(&place, from, LOOK).await?;
    let depth = from + jobs.len();
    let mine = |job: &Forward| state.routes.keys().contains(&job.route);
    let (mut going, others): (Vec<_>, Vec<_>) = jobs.iter().map(forward).partition(mine);
    let others_there = !others.is_empty();
    going.truncate(*own);
    *own -= going.len();
    going.extend(others);
    going.truncate(MOST_STEPS / depth.max(1));
    let moved = broker.forward(list, depth, &going).await?;
    let seen_to_the_end = depth >= all || depth >= DEEPEST || jobs.is_empty();
    *behind = if seen_to_the_end { 0 } else { depth - moved };
    Ok(others_there || from > 0 || !seen_to_the_end)
}

/// Where a job goes: what no worker could be asked for so, and what is no job, to those of `default`.
fn forward(job: &Standing) -> Forward {
    let route = match &job.found {
        Found::Job(record) => record.route(),
        _ => None,
    };
    Forward {
        id: job.id.clone(),
        route: route.unwrap_or_else(RoutingKey::default),
    }
}
