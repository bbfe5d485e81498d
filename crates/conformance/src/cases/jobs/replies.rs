//! Replies: clients that wait for the end of a job receive one, and no reply stays for ever.

use meshwork_broker::{Claim, Claimed, LegacyList, PrefetchLists};
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{LEASE, WORKER, ids};
use crate::cases::orphans::scan_orphans::sweep;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    our_jobs_get_one_if_asked_for,
    our_jobs_get_none_otherwise,
    jobs_of_others_always_get_one,
    a_run_that_is_repeated_sends_none,
    a_job_handed_or_taken_back_sends_none,
    a_repeated_report_sends_none,
    a_stale_report_sends_none,
    a_retry_takes_the_old_one_away,
    clients_of_old_lists_wait_on_the_old_reply_list,
    our_jobs_reply_where_we_wait,
    what_another_worker_replies_to_ours_has_an_end,
];

/// Kind of the end of a job.
#[derive(Debug, Clone, Copy)]
enum End {
    Finished,
    /// Finished with an output.
    Spoke,
    Failed,
    StoppedWaiting,
    StoppedRunning,
    Lost,
}

const ENDS: [End; 6] = [
    End::Finished,
    End::Spoke,
    End::Failed,
    End::StoppedWaiting,
    End::StoppedRunning,
    End::Lost,
];

/// Ends a waiting job, and returns the expected payload of the reply.
async fn end(world: &World, id: &str, end: End) -> Result<&'static str, Failure> {
    match end {
        End::Finished => {
            let claimed = world.take_one().await?;
            world.finish(&claimed, "42").await?;
            Ok("42")
        }
        End::Spoke => {
            let claimed = world.take_one().await?;
            world.broker.complete(&claimed, b"42", b"said", b"").await?;
            Ok("42")
        }
        End::Failed => {
            let claimed = world.take_one().await?;
            world.fail(&claimed, FailureKind::Permanent).await?;
            Ok("boom")
        }
        End::StoppedWaiting | End::StoppedRunning => {
            if matches!(end, End::StoppedRunning) {
                world.take_one().await?;
            }
            world
                .broker
                .cancel(&world.read(id).await?, "stopped", true)
                .await?;
            Ok("stopped")
        }
        End::Lost => {
            for _ in 0..MAX_LOST {
                world.take_one().await?;
                world.lose_all().await?;
            }
            Ok("lost: 5 workers went away while they ran this job")
        }
    }
}

/// Checks the reply list: one payload, which equals the record's value, for an hour.
async fn replied(world: &World, id: &str, payload: &str) -> Outcome {
    same!(world.list(&world.reply(id)).await?, [payload]);
    let ttl: i64 = world.raw(&["PTTL", &world.reply(id)]).await?;
    check!((3_500_000..=3_600_000).contains(&ttl));
    Ok(())
}

async fn silent(world: &World, id: &str) -> Outcome {
    check!(world.list(&world.reply(id)).await?.is_empty());
    Ok(())
}

/// Each end of the job sends the result or the reason, with a time to live.
async fn our_jobs_get_one_if_asked_for(world: &World) -> Outcome {
    for (n, how) in ENDS.into_iter().enumerate() {
        let id = format!("j{n}");
        let mut job = world.job(&id)?;
        job.reply = true;
        world.put_jobs(&[job]).await?;
        let payload = end(world, &id, how).await?;
        replied(world, &id, payload).await?;
    }
    Ok(())
}

/// Without a waiting client no reply is left.
async fn our_jobs_get_none_otherwise(world: &World) -> Outcome {
    for (n, how) in ENDS.into_iter().enumerate() {
        let id = format!("j{n}");
        world.put(&[&id]).await?;
        end(world, &id, how).await?;
        silent(world, &id).await?;
    }
    Ok(())
}

/// Their records cannot request a reply, and a client may wait.
async fn jobs_of_others_always_get_one(world: &World) -> Outcome {
    for (n, how) in ENDS.into_iter().enumerate() {
        let id = format!("j{n}");
        let fields = [("script", "1"), ("script_type", "osis")];
        world.put_foreign(&id, &fields).await?;
        let payload = end(world, &id, how).await?;
        replied(world, &id, payload).await?;
    }
    Ok(())
}

async fn wanted(world: &World, retries: u32) -> Result<Claimed, Failure> {
    let mut job = world.job("j1")?;
    (job.reply, job.retries) = (true, retries);
    world.put_jobs(&[job]).await?;
    world.take_one().await
}

/// The job has not ended yet.
async fn a_run_that_is_repeated_sends_none(world: &World) -> Outcome {
    let claimed = wanted(world, 1).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    silent(world, "j1").await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    replied(world, "j1", "boom").await
}

/// The job has not ended yet.
async fn a_job_handed_or_taken_back_sends_none(world: &World) -> Outcome {
    let claimed = wanted(world, 0).await?;
    world.broker.release(&claimed).await?;
    silent(world, "j1").await?;
    world.take_one().await?;
    world.lose_all().await?;
    silent(world, "j1").await
}

/// A client that fetched its reply finds no second one.
async fn a_repeated_report_sends_none(world: &World) -> Outcome {
    let claimed = wanted(world, 0).await?;
    for _ in 0..2 {
        world.finish(&claimed, "42").await?;
    }
    replied(world, "j1", "42").await?;
    world.raw::<()>(&["DEL", &world.reply("j1")]).await?;
    world.finish(&claimed, "42").await?;
    silent(world, "j1").await
}

/// A refused report sends no reply.
async fn a_stale_report_sends_none(world: &World) -> Outcome {
    let claimed = wanted(world, 0).await?;
    world.lose_all().await?;
    world.finish(&claimed, "42").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    silent(world, "j1").await
}

/// A client that waits for the new end does not receive the old reply.
async fn a_retry_takes_the_old_one_away(world: &World) -> Outcome {
    let claimed = wanted(world, 0).await?;
    world.finish(&claimed, "42").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    silent(world, "j1").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "43").await?;
    replied(world, "j1", "43").await
}

/// Claims from the queue and from an old list beside it.
async fn claim_old(world: &World, old: &str) -> Result<Vec<Claimed>, Failure> {
    let queues = [world.queue()];
    let old = [LegacyList {
        list: old.to_owned(),
        requeue_to: world.queue(),
    }];
    let token = world.token();
    let claim = Claim {
        queues: &queues,
        old: &old,
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 5,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &token,
    };
    Ok(world.broker.claim(claim).await?.jobs)
}

/// Each end of the job sends a reply to `hero:reply:{id}` of Hero; a retry removes it.
async fn clients_of_old_lists_wait_on_the_old_reply_list(world: &World) -> Outcome {
    let old = format!("{}actor_queue:osis", world.keys().job_prefix());
    let old_reply = |id: &str| format!("{}{id}", world.keys().legacy_reply_prefix());
    for id in ["old", "failed", "new"] {
        world.put_foreign(id, &[("script_type", "osis")]).await?;
    }
    for _ in 0..2 {
        let (queue, right) = (world.queue(), "RIGHT");
        world
            .raw::<()>(&["LMOVE", &queue, &old, right, "LEFT"])
            .await?;
    }
    let mut jobs = claim_old(world, &old).await?;
    // The other one may be pushed to the old list too.
    same!(ids(&jobs), ["old", "failed"]);
    world.pass(200);
    world.broker.promote().await?;
    jobs.insert(0, world.take_one().await?);
    same!(ids(&jobs), ["new", "old", "failed"]);
    world.finish(&jobs[0], "42").await?;
    replied(world, "new", "42").await?;
    same!(world.list(&old_reply("new")).await?.len(), 0);
    same!(world.field("new", "mw_legacy").await?, None);
    world.finish(&jobs[1], "43").await?;
    world.fail(&jobs[2], FailureKind::Permanent).await?;
    for (id, payload) in [("old", "43"), ("failed", "boom")] {
        same!(world.field(id, "mw_legacy").await?.as_deref(), Some("1"));
        same!(world.list(&old_reply(id)).await?, [payload]);
        silent(world, id).await?;
        let ttl: i64 = world.raw(&["PTTL", &old_reply(id)]).await?;
        check!((3_500_000..=3_600_000).contains(&ttl));
        world.broker.retry(&world.read(id).await?).await?;
        same!(world.list(&old_reply(id)).await?.len(), 0);
    }
    // The list from which it came counts, whatever ends it later.
    for id in ["old", "failed"] {
        world
            .broker
            .cancel(&world.read(id).await?, "stopped", true)
            .await?;
        same!(world.list(&old_reply(id)).await?, ["stopped"]);
        world.broker.delete(&world.read(id).await?).await?;
        same!(world.list(&old_reply(id)).await?.len(), 0);
    }
    Ok(())
}

/// The list from which the job was taken does not matter.
async fn our_jobs_reply_where_we_wait(world: &World) -> Outcome {
    let old = format!("{}actor_queue:osis", world.keys().job_prefix());
    for (id, said) in [("j1", ""), ("j2", "said")] {
        let mut job = world.job(id)?;
        job.reply = true;
        world.put_jobs(&[job]).await?;
        let moved = ["LMOVE", &world.queue(), &old, "LEFT", "LEFT"];
        world.raw::<()>(&moved).await?;
        let jobs = claim_old(world, &old).await?;
        let (output, said) = (b"42", said.as_bytes());
        world.broker.complete(&jobs[0], output, said, b"").await?;
        replied(world, id, "42").await?;
    }
    Ok(())
}

/// A walk sets the same time to live as on Meshwork's replies. A reply to a foreign job, and one with a time to live,
/// stay unchanged.
async fn what_another_worker_replies_to_ours_has_an_end(world: &World) -> Outcome {
    let keys = world.keys();
    world.put(&["j1", "j2"]).await?;
    world
        .put_foreign("theirs", &[("status", "dispatched"), ("script", "1")])
        .await?;
    let mut lists = Vec::new();
    for id in ["j1", "theirs", "gone", "j2"] {
        let id = id.parse()?;
        lists.push(keys.reply_queue_key(&id));
        lists.push(keys.legacy_reply_queue(&id));
    }
    for list in &lists {
        world.raw::<()>(&["LPUSH", list, "42"]).await?;
    }
    for list in &lists[6..] {
        world.raw::<()>(&["PEXPIRE", list, "5000"]).await?;
    }
    sweep(world).await?;
    for (at, list) in lists.iter().enumerate() {
        let ends: i64 = world.raw(&["PTTL", list]).await?;
        let expected = match at {
            0 | 1 => 3_000_000..3_600_001,
            2..6 => -1..0,
            _ => 0..5_001,
        };
        let as_expected = expected.contains(&ends);
        same!((list, ends, as_expected), (list, ends, true));
        same!(world.list(list).await?, ["42"]);
    }
    Ok(())
}
