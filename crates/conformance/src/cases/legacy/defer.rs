//! defer: jobs that a worker without leases runs while their id is on a canonical queue. A client may push an id to a
//! canonical queue and to an old list, without a mark in the record.

use meshwork_broker::{Claim, ClaimedJobs, Completed, LegacyList, PrefetchLists};

use crate::cases::harness::legacy_worker::{
    AGE, fill, look_after, looked_at, migrate, old, pop, put_old, start, write,
};
use crate::cases::harness::world::{LEASE, START, WORKER, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    what_another_worker_runs_is_deferred,
    it_runs_when_its_timeout_and_an_age_have_passed,
    it_is_dropped_when_it_ends,
    it_waits_for_others_when_its_worker_is_gone,
    pushed_again_and_again_it_is_one_job,
    twice_on_one_list_it_is_one_job,
    an_old_list_has_such_ids_too,
    ours_is_deferred_too,
    one_that_waits_for_others_is_no_such_job,
    where_nobody_could_look_after_it_it_runs,
    the_id_is_taken_off_the_old_list_with_the_claim,
    it_is_taken_off_each_kind_of_old_list,
    the_default_old_list_counts_without_a_migration,
    a_walk_through_long_old_lists_ends_the_call,
    a_second_push_is_waited_for,
    an_old_worker_may_be_about_to_say_so,
    what_is_waited_for_comes_once,
    where_nothing_can_be_waited_for_it_runs,
    what_is_ours_or_ran_before_is_not_waited_for,
];

const RUNS: [(&str, &str); 4] = [
    ("script", "1"),
    ("status", "started"),
    ("timeout", "7"),
    ("script_type", "OSIS"),
];
const UNMARKED: [(&str, &str); 3] = [
    ("script", "1"),
    ("status", "dispatched"),
    ("script_type", "OSIS"),
];
/// Time for which a job that is on no old list waits for its second push, in milliseconds.
const GRACE: u64 = 200;
/// Age of types that do not migrate, in milliseconds.
const ANY_AGE: u64 = 30_000;

/// Pushes a job to the canonical queue and to the old list, without a mark.
async fn put_twice(world: &World, id: &str) -> Outcome {
    put_old(world, id, &["timeout", "7"]).await?;
    world.push(id).await
}

async fn claim_old(world: &World, want: usize) -> Result<ClaimedJobs, Failure> {
    let old = LegacyList {
        list: old(world),
        requeue_to: world.queue(),
    };
    let claim = Claim {
        queues: &[],
        old: &[old],
        reverse: false,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    Ok(world.broker.claim(claim).await?)
}

/// The job is checked again soon.
async fn what_another_worker_runs_is_deferred(world: &World) -> Outcome {
    world.put_foreign("j1", &RUNS).await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 1));
    same!(world.status("j1").await?, "started");
    same!(world.waiting().await?.len(), 0);
    same!(looked_at(world, "j1").await?, Some(START));
    same!(world.field("j1", "mw_queue").await?, Some(world.queue()));
    let seen = format!("{START} started ");
    same!(world.field("j1", "mw_seen").await?, Some(seen));
    let last = world.events().await?.pop().unwrap_or_default();
    same!(last, ["j1", "defer", "", "another worker may run it"]);
    Ok(())
}

/// Its worker counts as lost then, and the client gets the reply where it waits.
async fn it_runs_when_its_timeout_and_an_age_have_passed(world: &World) -> Outcome {
    world.put_foreign("j1", &RUNS).await?;
    check!(world.take(5).await?.is_empty());
    same!(look_after(world, 0).await?.len(), 0);
    same!(look_after(world, ANY_AGE).await?.len(), 0);
    same!(look_after(world, 6_999).await?.len(), 0);
    same!(look_after(world, 1).await?, ["j1"]);
    let claimed = world.take_one().await?;
    same!(world.read("j1").await?.lost, 1);
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    same!(world.list(&world.reply("j1")).await?, ["42"]);
    same!(looked_at(world, "j1").await?, None);
    Ok(())
}

/// The job waits when it is to run again, and not before.
async fn it_waits_for_others_when_its_worker_is_gone(world: &World) -> Outcome {
    let after = ("prerequisites", r#"["first"]"#);
    world.put(&["first"]).await?;
    world
        .put_foreign("j1", &[&RUNS[..], &[after]].concat())
        .await?;
    let taken = world.take(5).await?;
    same!(ids(&taken), ["first"]);
    same!(world.read("j1").await?.waiting, 0);
    look_after(world, 0).await?;
    same!(look_after(world, ANY_AGE).await?.len(), 0);
    same!(look_after(world, 7_000).await?, ["j1"]);
    check!(world.take(5).await?.is_empty());
    same!(world.read("j1").await?.waiting, 1);
    world.finish(&taken[0], "42").await?;
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// The worker that runs it ends it.
async fn it_is_dropped_when_it_ends(world: &World) -> Outcome {
    world.put_foreign("j1", &RUNS).await?;
    check!(world.take(5).await?.is_empty());
    write(world, "j1", &["status", "finished", "output", "42"]).await?;
    same!(look_after(world, 9 * ANY_AGE).await?.len(), 0);
    same!(looked_at(world, "j1").await?, None);
    check!(world.take(5).await?.is_empty());
    same!(world.field("j1", "output").await?.as_deref(), Some("42"));
    same!(world.list(&world.reply("j1")).await?.len(), 0);
    Ok(())
}

/// The time counts from the first push.
async fn pushed_again_and_again_it_is_one_job(world: &World) -> Outcome {
    world.put_foreign("j1", &RUNS).await?;
    check!(world.take(5).await?.is_empty());
    for _ in 0..3 {
        world.pass(9_000);
        world.push("j1").await?;
        check!(world.take(5).await?.is_empty());
    }
    let seen = format!("{START} started ");
    same!(world.field("j1", "mw_seen").await?, Some(seen));
    same!(look_after(world, ANY_AGE).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// The same call has claimed it already.
async fn twice_on_one_list_it_is_one_job(world: &World) -> Outcome {
    world.put_foreign("j1", &UNMARKED).await?;
    world.push("j1").await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(looked_at(world, "j1").await?, None);
    same!(world.field("j1", "mw_seen").await?, None);
    Ok(())
}

/// Its client waits for the reply on the old list.
async fn an_old_list_has_such_ids_too(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    put_old(world, "j1", &["status", "started", "timeout", "1"]).await?;
    same!(claim_old(world, 5).await?.dropped, 1);
    same!(look_after(world, 2 * AGE).await?, ["j1"]);
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    let reply = format!("{}j1", world.keys().legacy_reply_prefix());
    same!(world.list(&reply).await?, ["42"]);
    same!(world.list(&world.reply("j1")).await?.len(), 0);
    Ok(())
}

/// A foreign worker has popped the id, and a client has pushed it again.
async fn ours_is_deferred_too(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    (job.reply, job.timeout) = (true, 7);
    world.put_jobs(&[job]).await?;
    write(world, "j1", &["status", "started"]).await?;
    check!(world.take(5).await?.is_empty());
    same!(look_after(world, ANY_AGE + 7_000).await?, ["j1"]);
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    same!(world.list(&world.reply("j1")).await?, ["42"]);
    Ok(())
}

/// Nor is a job that an old list already tracks.
async fn one_that_waits_for_others_is_no_such_job(world: &World) -> Outcome {
    let waits = [&RUNS[..], &[("mw_waiting", "\"j\"")]].concat();
    world.put_foreign("j1", &waits).await?;
    let elsewhere = format!("{}w", world.named("OLD_WORK")?);
    let locked = [&RUNS[..], &[("mw_lock", &*elsewhere)]].concat();
    world.put_foreign("j2", &locked).await?;
    check!(world.take(5).await?.is_empty());
    for id in ["j1", "j2"] {
        same!(looked_at(world, id).await?, None);
        same!(world.field(id, "mw_seen").await?, None);
    }
    Ok(())
}

/// The key of the watch has another type.
async fn where_nobody_could_look_after_it_it_runs(world: &World) -> Outcome {
    let watch = world.keys().watch();
    world.raw::<()>(&["SET", &watch, "x"]).await?;
    world.put_foreign("j1", &RUNS).await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// No old worker finds the id any more; the ids before and after it stay.
async fn the_id_is_taken_off_the_old_list_with_the_claim(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "before", &[]).await?;
    put_twice(world, "j1").await?;
    put_old(world, "behind", &[]).await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(world.list(&old(world)).await?, ["before", "behind"]);
    Ok(())
}

/// The lists are those of the type, of a worker in both spellings, and of the migration.
async fn it_is_taken_off_each_kind_of_old_list(world: &World) -> Outcome {
    let set = format!("{}x", world.keys().legacy_work_prefix());
    crate::cases::harness::legacy_worker::set(world, "osis", &format!("dual {set} {AGE}")).await?;
    let work = world.keys().legacy_work_prefix();
    let lists = [
        ("type", old(world)),
        ("actor", world.key("runner_1")),
        ("work", format!("{work}runner_1")),
        ("set", set),
    ];
    for (id, list) in &lists {
        let fields = [
            "status",
            "dispatched",
            "script",
            "1",
            "actor_id",
            "runner_1",
        ];
        write(world, id, &fields).await?;
        world.raw::<()>(&["LPUSH", list, id]).await?;
        world.push(id).await?;
    }
    same!(ids(&world.take(5).await?), ["type", "actor", "work", "set"]);
    for (_, list) in &lists {
        same!(world.list(list).await?.len(), 0);
    }
    Ok(())
}

/// The mark of a Meshwork job already says where else it is.
async fn the_default_old_list_counts_without_a_migration(world: &World) -> Outcome {
    crate::cases::harness::legacy_worker::set(world, "sal", &format!("dual {} {AGE}", old(world)))
        .await?;
    put_twice(world, "j1").await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(world.list(&old(world)).await?, [""; 0]);
    world.put(&["j2"]).await?;
    migrate(world, "dual").await?;
    world.raw::<()>(&["LPUSH", &old(world), "j2"]).await?;
    same!(ids(&world.take(5).await?), ["j2"]);
    same!(world.list(&old(world)).await?, ["j2"]);
    Ok(())
}

/// The next call takes the rest.
async fn a_walk_through_long_old_lists_ends_the_call(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    fill(world, &old(world), 0..20_001).await?;
    for id in ["j1", "j2"] {
        world
            .put_foreign(id, &[("status", "dispatched"), ("script", "1")])
            .await?;
        world.raw::<()>(&["RPUSH", &old(world), id]).await?;
    }
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((ids(&taken.jobs), taken.more), (vec!["j1"], true));
    same!(ids(&world.take(5).await?), ["j2"]);
    Ok(())
}

/// Waits for the grace period, and returns the ids that come to the queue then.
async fn grace(world: &World) -> Result<Vec<String>, Failure> {
    world.pass(GRACE - 1);
    world.broker.promote().await?;
    same!(world.waiting().await?.len(), 0);
    world.pass(1);
    world.broker.promote().await?;
    world.waiting().await
}

/// The client pushes to the canonical queue first; a worker may sleep until the job is due.
async fn a_second_push_is_waited_for(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put_foreign("j1", &UNMARKED).await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 1));
    same!(world.list(&world.keys().due()).await?, ["1"]);
    world.raw::<()>(&["LPUSH", &old(world), "j1"]).await?;
    same!(grace(world).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    Ok(())
}

/// The old worker popped the id, and writes `started` a moment later.
async fn an_old_worker_may_be_about_to_say_so(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    for id in ["ours", "started", "between"] {
        put_twice(world, id).await?;
    }
    // Old workers take the newest id.
    same!(pop(world).await?.as_deref(), Some("between"));
    start(world, "started").await?;
    same!(ids(&world.take(5).await?), ["ours"]);
    same!(pop(world).await?, None);
    write(world, "between", &["status", "started"]).await?;
    same!(grace(world).await?.len(), 0);
    for id in ["started", "between"] {
        write(world, id, &["status", "finished"]).await?;
    }
    same!(look_after(world, 99 * AGE).await?.len(), 0);
    check!(world.take(5).await?.is_empty());
    Ok(())
}

/// The job was pushed to the canonical queue only, and runs from its queue.
async fn what_is_waited_for_comes_once(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    let list = world.queue_of("osis:group:io");
    world.put_foreign("j1", &UNMARKED).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.raw::<()>(&["LPUSH", &list, "j1"]).await?;
    check!(
        world
            .claim(WORKER, std::slice::from_ref(&list), 5)
            .await?
            .jobs
            .is_empty()
    );
    same!(look_after(world, GRACE).await?.len(), 0);
    world.broker.promote().await?;
    same!(world.list(&list).await?, ["j1"]);
    let taken = world.claim(WORKER, std::slice::from_ref(&list), 5).await?;
    same!(ids(&taken.jobs), ["j1"]);
    same!(world.field("j1", "mw_seen").await?, None);
    world.finish(&taken.jobs[0], "42").await?;
    same!(world.list(&world.reply("j1")).await?, ["42"]);
    Ok(())
}

/// The key of delayed jobs has another type.
async fn where_nothing_can_be_waited_for_it_runs(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let delayed = world.keys().delayed();
    world.raw::<()>(&["SET", &delayed, "x"]).await?;
    world.put_foreign("j1", &UNMARKED).await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// Nor is a job that waited for prerequisites.
async fn what_is_ours_or_ran_before_is_not_waited_for(world: &World) -> Outcome {
    world.put(&["ours"]).await?;
    migrate(world, "dual").await?;
    let again = [&UNMARKED[..], &[("mw_attempt", "0")]].concat();
    world.put_foreign("again", &again).await?;
    same!(ids(&world.take(5).await?), ["ours", "again"]);
    Ok(())
}
