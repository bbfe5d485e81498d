//! Slots: schedules start flows while workers and the server are killed. Each slot has one flow in the end, which has
//! finished with the slot as its result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use meshwork_model::time::{iso, parse_iso};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{
    AWAY, Callers, END, Engine, FIRST, Files, LOOK, Member, Plan, Reader, SOON, Seen, Store,
};
use super::{WORKERS, failed, make_context, peace, quarters};
use crate::chaos::ChaosError;

/// Schedules, each with a slot every second.
const SCHEDULES: usize = 10;
/// Time in which slots are due.
const SPAN: Duration = Duration::from_secs(12);
const FILE: &str = "flow: tick\njobs: {a: {script: 'ENV.MESHWORK_SLOT', type: osis}}\n";

/// Result of a play.
#[derive(Debug, Clone)]
pub struct SlotReport {
    /// Engine of the store.
    pub engine: &'static str,
    /// Number of slots.
    pub slots: usize,
    /// Number of killed workers and servers.
    pub kills: [u32; 2],
    /// Slots without a flow, with several ones, or with another result.
    pub wrong: Vec<String>,
}

/// Plays on an engine of the plan.
///
/// # Errors
/// This machine lacks a program, a worker ends by itself, or files cannot be written.
pub async fn play_slots(plan: &Plan, engine: Engine) -> Result<SlotReport, ChaosError> {
    let dir = tempfile::Builder::new().prefix("mw-s-").tempdir();
    let dir = dir.map_err(ChaosError::io("a temporary directory"))?;
    let mut store = Store::start(engine, dir.path(), None)?;
    let quarters = quarters(plan, dir.path(), &store);
    make_context(&quarters).await?;
    fs::write(dir.path().join("tick.yaml"), FILE).map_err(ChaosError::io("a flow"))?;
    let callers = Callers::new(&quarters);
    let mut firsts = Vec::new();
    for number in 0..SCHEDULES {
        firsts.push(add(&callers, number, None).await?);
    }
    // The span begins when all are there, however long that took.
    let end = meshwork::host_ms() + SPAN.as_millis() as u64;
    for number in 0..SCHEDULES {
        add(&callers, number, Some(end)).await?;
    }
    let mut troop = Vec::new();
    for number in 0..WORKERS {
        troop.push(Member::start(&quarters, number)?);
    }
    for member in &mut troop {
        member.listens().await?;
    }
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut kills = [0, 0];
    for number in 0..plan.kills {
        peace(&mut troop, SOON.mul_f64(random.random())).await?;
        if number % 3 == 1 && matches!(store, Store::Server { .. }) {
            store.kill();
            peace(&mut troop, AWAY).await?;
            store.start_again();
            kills[1] += 1;
        } else {
            let victim = random.random_range(0..troop.len());
            troop[victim].replace(&quarters).await?;
            kills[0] += 1;
        }
    }
    fired(&store, dir.path(), &mut troop).await?;
    let seen = Seen::read(&store, dir.path(), &mut troop).await?;
    for member in troop {
        member.stop().await?;
    }
    let mut wrong = seen.open.clone();
    let expected = firsts.iter().map(|first| (end - first) / 1_000 + 1);
    let slots = expected.sum::<u64>() as usize;
    wrong.extend(judge(&seen, &firsts, end).await?);
    Ok(SlotReport {
        engine: engine.name(),
        slots,
        kills,
        wrong,
    })
}

/// Waits until each schedule has fired its last slot.
async fn fired(store: &Store, dir: &Path, troop: &mut [Member]) -> Result<(), ChaosError> {
    let reader = Reader::open(store, dir).await?;
    let (mut until, mut least) = (Instant::now() + END, usize::MAX);
    loop {
        let mut open = Vec::new();
        for number in 0..SCHEDULES {
            let name = format!("s{number}").parse();
            let name = name.map_err(|_| ChaosError::Line("a name of a schedule".to_owned()))?;
            let there = reader.client.scheduled(&name).await;
            let next = there.map_err(|it| failed(&it))?.and_then(|it| it.next);
            open.extend(next.map(|next| format!("s{number}: next slot {}", iso(next))));
        }
        if open.is_empty() {
            return Ok(());
        }
        if open.len() < least {
            (until, least) = (Instant::now() + END, open.len());
        }
        if Instant::now() > until {
            return Err(ChaosError::Line(open.join("; ")));
        }
        peace(troop, LOOK).await?;
    }
}

/// Adds a schedule, or replaces it by one with an end. Returns its next slot.
async fn add(callers: &Callers, number: usize, end: Option<u64>) -> Result<u64, ChaosError> {
    let out = callers.dir.join(format!("add-{number}-{}", end.is_some()));
    let name = format!("s{number}");
    let end = end.map(|end| ["--replace".to_owned(), format!("--end={}", iso(end))]);
    let words = [
        "schedule",
        "add",
        &name,
        "--every",
        "1s",
        "--overlap",
        "allow",
        "--catch-up",
        "all",
        "--json",
        "tick.yaml",
    ];
    let files = Files {
        stdout: &out,
        stderr: &out.with_extension("err"),
    };
    let words = words.map(str::to_owned).into_iter();
    let words: Vec<_> = words.chain(end.into_iter().flatten()).collect();
    callers.call(&words, "", files, FIRST).await?;
    let said = fs::read_to_string(&out).map_err(ChaosError::io("an answer"))?;
    let added: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let next = added["next_at"].as_str().and_then(parse_iso);
    next.ok_or_else(|| ChaosError::Line(format!("the schedule {name} was not added: {said}")))
}

/// Compares the flows with the slots.
async fn judge(seen: &Seen, firsts: &[u64], end: u64) -> Result<Vec<String>, ChaosError> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for view in &seen.views {
        let record = seen.flows.record(view.id).await;
        let record = record.map_err(|error| ChaosError::Line(error.to_string()))?;
        let text = |field: &str| record.get(field).cloned().unwrap_or_default();
        let result = view.jobs[0].result.as_str().unwrap_or_default();
        let flows = found
            .entry((text("mw_schedule"), text("mw_mark")))
            .or_default();
        flows.push(format!("{} {result}", view.status));
    }
    let mut wrong = Vec::new();
    for (number, first) in firsts.iter().enumerate() {
        for slot in (*first..=end).step_by(1_000) {
            let key = (format!("s{number}"), format!("slot {slot}"));
            let flows = found.remove(&key).unwrap_or_default();
            if flows != [format!("finished {}", iso(slot))] {
                wrong.push(format!("{key:?}: {flows:?}"));
            }
        }
    }
    wrong.extend(found.into_iter().map(|it| format!("no slot: {it:?}")));
    Ok(wrong)
}
