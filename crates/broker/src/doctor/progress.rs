//! Flows and batches that do not go on: flows without a plan or without a time at which a worker looks at them, and batches
//! whose members are not those that are counted.

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::number::counted;
use redis::RedisResult;

use super::{Finding, Level, such_as};
use crate::BatchStatus;
use crate::broker::Broker;
use crate::flow::Flows;

/// Greatest number of flows and of batches that are examined in each namespace and context, the latest ones.
const MOST: usize = 1_000;

/// Finds batches outside contexts. Finds nothing for a user that may not read them.
pub(super) async fn check(broker: &Broker) -> Vec<Finding> {
    batches(&batch_faults(broker).await).into_iter().collect()
}

/// Returns a finding about batches with these faults.
pub(super) fn batches(faults: &[String]) -> Option<Finding> {
    const CHECK: &str = "batches";
    const WHY: &str =
        "a batch that has lost members ends as failed, and its on_success does not run";
    let what = such_as(faults.len(), faults);
    let remedy = "see its jobs with `meshwork job list --batch ID`, end it with `meshwork batch cancel ID`, and enqueue again what \
                  is missing";
    (!faults.is_empty()).then(|| Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}

/// Returns a finding about flows with these faults.
pub(super) fn flows(faults: &[String]) -> Option<Finding> {
    const CHECK: &str = "flows";
    const WHY: &str = "no step of them can be made";
    let what = such_as(faults.len(), faults);
    let remedy = "a worker of the context finds a lost time within two minutes; delete a flow without a plan with `meshwork flow \
                  delete ID`, and submit it again";
    (!faults.is_empty()).then(|| Finding::bad(Level::Problem, CHECK, what, WHY, remedy))
}

/// Returns the end of the text about a thing: its context, if it is in one.
fn place(keys: &JobKeys) -> String {
    let context = keys.context().map(|keys| keys.context());
    context.map_or_else(String::new, |id| format!(" of context {id}"))
}

/// Returns the open batches whose list of open members has another length than their counts say.
pub(super) async fn batch_faults(broker: &Broker) -> Vec<String> {
    let before = unequal(broker).await;
    if before.is_empty() {
        return Vec::new();
    }
    // A job may have ended between the two reads; what is wrong stays as it is.
    let now = unequal(broker).await;
    let place = place(broker.keys());
    let lasting = now.into_iter().filter(|fault| before.contains(fault));
    let text = |(id, open, listed)| {
        let open = counted(open, "open job");
        format!("batch {id}{place} has {open} by its counts, and {listed} in its list")
    };
    lasting.map(text).collect()
}

/// Returns the open batches with two different numbers of open members: by the counts, and in the list.
async fn unequal(broker: &Broker) -> Vec<(String, u64, u64)> {
    let Ok((batches, _)) = broker.batches(0, MOST).await else {
        return Vec::new();
    };
    let is_open = |batch: &BatchStatus| batch.ended_ms.is_none();
    let open: Vec<_> = batches.into_iter().filter(is_open).collect();
    let mut counts = redis::pipe();
    for batch in &open {
        counts.cmd("SCARD").arg(broker.keys().members(&batch.id));
    }
    if open.is_empty() {
        return Vec::new();
    }
    counts.ignore_errors();
    let counts: RedisResult<Vec<RedisResult<u64>>> =
        counts.query_async(&mut broker.conn().clone()).await;
    let pairs = open.iter().zip(counts.unwrap_or_default());
    let pair = |(batch, listed): (&BatchStatus, RedisResult<u64>)| {
        let listed = listed.ok()?;
        let is_wrong = listed != batch.pending();
        is_wrong.then(|| (batch.id.to_string(), batch.pending(), listed))
    };
    pairs.filter_map(pair).collect()
}

/// Returns the open flows of a context that cannot go on.
pub(super) async fn flow_faults(broker: &Broker) -> Vec<String> {
    let Some(flows) = Flows::of(broker) else {
        return Vec::new();
    };
    let before = stuck(&flows).await;
    if before.is_empty() {
        return Vec::new();
    }
    // A flow may have ended between the two reads.
    let now = stuck(&flows).await;
    now.into_iter()
        .filter(|fault| before.contains(fault))
        .collect()
}

async fn stuck(flows: &Flows) -> Vec<String> {
    let (broker, keys) = (flows.broker(), flows.keys());
    let Ok(ids) = flows.list(0, MOST).await else {
        return Vec::new();
    };
    let Ok(records) = flows.flow_fields(&ids, &["status", "mw_plain"]).await else {
        return Vec::new();
    };
    let (mut faults, mut open) = (Vec::new(), Vec::new());
    let place = place(broker.keys());
    for (id, record) in ids.into_iter().zip(records) {
        let Some([status, plain]) = record.as_deref() else {
            faults.push(format!("{} is no hash", keys.flow(id)));
            continue;
        };
        let is_final = matches!(status.as_deref(), None | Some(b"finished" | b"error"));
        if !is_final {
            open.push((id, plain.is_some()));
        }
    }
    let mut parts = redis::pipe();
    for (id, _) in &open {
        parts.cmd("EXISTS").arg(keys.flow_part(*id, "plan"));
        parts
            .cmd("ZSCORE")
            .arg(keys.flows_due())
            .arg(id.to_string());
    }
    if open.is_empty() {
        return faults;
    }
    parts.ignore_errors();
    let parts: RedisResult<Vec<RedisResult<Option<f64>>>> =
        parts.query_async(&mut broker.conn().clone()).await;
    let parts = parts.unwrap_or_default();
    for ((id, is_plain), parts) in open.into_iter().zip(parts.chunks(2)) {
        match parts {
            [Ok(Some(plan)), _] if *plan == 0.0 && !is_plain => {
                faults.push(format!("flow {id}{place} has no plan"));
            }
            [_, Ok(None)] => {
                faults.push(format!("flow {id}{place} is not among those that are due"));
            }
            _ => {}
        }
    }
    faults
}
