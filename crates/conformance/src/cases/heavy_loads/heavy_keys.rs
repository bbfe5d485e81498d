//! 100,000 jobs with a delay or a key, and 10,000 keys: each call stays short, and repeated calls process all jobs.

use crate::cases::harness::options::{LOOK_MS, exchange, set};
use crate::cases::harness::world::{START, WORKER};
use crate::cases::heavy_loads::heavy::{MANY, seed, short};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    all_are_due_at_one_moment,
    one_key_at_its_limit,
    ten_thousand_keys_have_their_turns,
];

/// Number of jobs that one call of a script handles.
const BATCH: usize = 1000;

/// Creates waiting records with additional fields from `more`.
async fn records(world: &World, more: impl Fn(usize) -> Vec<(&'static str, String)>) -> Outcome {
    let queue = world.queue();
    for from in (0..MANY).step_by(BATCH) {
        let mut pipe = redis::pipe();
        for n in from..from + BATCH {
            let set = pipe.cmd("HSET").arg(world.key(&format!("j{n}")));
            set.arg(&["status", "dispatched", "script", "1"]);
            set.arg("mw_queue").arg(&queue);
            set.arg("mw_reply").arg("0").arg("mw_with").arg("1");
            for (name, value) in more(n) {
                set.arg(name).arg(value);
            }
            set.ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    Ok(())
}

async fn length(world: &World, verb: &str, key: &str) -> Result<usize, Failure> {
    world.raw(&[verb, key]).await
}

/// Each call promotes a thousand jobs.
async fn all_are_due_at_one_moment(world: &World) -> Outcome {
    let due = START + 5;
    records(world, |_| vec![("mw_run_at", due.to_string())]).await?;
    seed(world, &["ZADD", &world.keys().delayed()], |n| {
        vec![due.to_string(), format!("j{n}")]
    })
    .await?;
    same!(short(world.broker.promote()).await?.due, 0);
    world.pass(5);
    for _ in 0..MANY / BATCH {
        same!(short(world.broker.promote()).await?.due, BATCH);
    }
    same!(short(world.broker.promote()).await?.next, None);
    same!(length(world, "LLEN", &world.queue()).await?, MANY);
    Ok(())
}

/// The jobs are set aside, others pass them, and each end admits the next one.
async fn one_key_at_its_limit(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    records(world, |n| {
        vec![("mw_key", "k".to_owned()), ("mw_seq", n.to_string())]
    })
    .await?;
    seed(world, &["LPUSH", &world.queue()], |n| vec![format!("j{n}")]).await?;
    world.put(&["other"]).await?;
    let mut run = world.take_one().await?;
    same!(run.job.id, "j0");
    let mut calls = 0;
    loop {
        calls += 1;
        let taken = short(async {
            let claim = crate::cases::harness::options::claim(world, 1).await;
            Ok(claim)
        })
        .await??;
        if let Some(other) = taken.jobs.first() {
            same!(other.job.id, "other");
            world.finish(other, "42").await?;
            break;
        }
        check!(taken.more);
    }
    check!((MANY / BATCH..=MANY / BATCH + 1).contains(&calls));
    let backlog = format!("{}{} k", world.named("BACKLOG")?, world.queue());
    same!(length(world, "ZCARD", &backlog).await?, MANY - 1);
    for n in 1..100 {
        let next = exchange(world, &[&run], 1).await?.taken.jobs.pop();
        run = next.ok_or_else(|| Failure::new("the next one did not come"))?;
        same!(run.job.id, format!("j{n}"));
    }
    set(world, "").await?;
    world.pass(LOOK_MS);
    for _ in 0..5 {
        same!(short(world.broker.promote()).await?.due, 101);
    }
    Ok(())
}

/// Each key has ten jobs; no call checks all keys.
async fn ten_thousand_keys_have_their_turns(world: &World) -> Outcome {
    const KEYS: usize = MANY / 10;
    set(world, "fair=1").await?;
    let queue = world.queue();
    records(world, |n| {
        vec![
            ("mw_key", format!("k{}", n % KEYS)),
            ("mw_seq", n.to_string()),
        ]
    })
    .await?;
    let (heads, backlog, held) = (
        world.named("HEADS")?,
        world.named("BACKLOG")?,
        world.named("BACKLOG_INDEX")?,
    );
    for from in (0..MANY).step_by(BATCH) {
        let mut pipe = redis::pipe();
        for n in from..from + BATCH {
            let name = format!("{queue} k{}", n % KEYS);
            let (id, set) = (format!("j{n}"), if n < KEYS { &heads } else { &backlog });
            if n < KEYS {
                pipe.cmd("LPUSH").arg(&queue).arg(&id).ignore();
            }
            pipe.cmd("ZADD")
                .arg(format!("{set}{name}"))
                .arg(n)
                .arg(&id)
                .ignore();
            pipe.cmd("ZADD").arg(&held).arg(START).arg(&name).ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    for _ in 0..KEYS / BATCH {
        same!(short(world.broker.promote()).await?.due, BATCH);
    }
    let promoted = short(world.broker.promote()).await?;
    same!(
        (
            promoted.due,
            promoted.next.map(|next| next.as_millis() as u64)
        ),
        (0, Some(LOOK_MS))
    );
    same!(length(world, "LLEN", &queue).await?, KEYS);
    for round in 0..2 {
        for from in (0..KEYS).step_by(BATCH) {
            let jobs = world
                .claim(WORKER, std::slice::from_ref(&queue), BATCH)
                .await?
                .jobs;
            same!(jobs.len(), BATCH);
            same!(jobs[0].job.id, format!("j{}", round * KEYS + from));
        }
    }
    Ok(())
}
