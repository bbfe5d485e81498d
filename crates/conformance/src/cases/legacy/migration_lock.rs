//! The migration lock: if an id is also on its old list, the side that removes it from there runs the job.

use meshwork_broker::{Claim, ClaimedJobs, Failed, LegacyList, PrefetchLists, SetJob};
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Priority;

use crate::cases::harness::legacy_worker::{
    AGE, fill, look_after, looked_at, migrate, old, pop, put_old, set, start, write,
};
use crate::cases::harness::world::{LEASE, START, WORKER, ids};
use crate::cases::jobs::set_job::{HIGH, change, high, in_ms};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    an_id_stands_on_both_lists,
    without_a_migration_on_one,
    each_worker_may_have_an_old_list_of_its_own,
    a_job_for_some_workers_is_not_for_all_old_ones,
    a_setting_that_is_none_is_passed_over,
    an_old_list_that_is_no_list_is_passed_over,
    a_watch_that_is_none_is_passed_over,
    our_claim_takes_the_id_off_the_old_list,
    an_id_that_an_old_worker_took_is_left,
    one_that_it_runs_is_left_too,
    the_old_list_serves_us_as_well,
    a_job_taken_from_the_old_list_goes_back_to_its_own_queue,
    a_retry_of_ours_stands_on_one_list,
    a_dependant_is_pushed_to_both,
    a_job_asked_for_again_is_pushed_to_both,
    a_stopped_job_is_on_neither,
    a_changed_job_is_moved_on_both,
    a_deleted_job_is_on_neither,
    wherever_the_id_stands_in_a_long_old_list,
    a_walk_through_a_long_old_list_ends_the_call,
    each_job_is_run_by_one_side,
    an_unannounced_second_push_is_run_by_one_side,
];

/// Claims from the queue and from the old list of type `osis`, the old list last.
async fn claim_both(world: &World, want: usize, reverse: bool) -> Result<ClaimedJobs, Failure> {
    let old = LegacyList {
        list: old(world),
        requeue_to: world.queue(),
    };
    let claim = Claim {
        queues: &[world.queue()],
        old: &[old],
        reverse,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    Ok(world.broker.claim(claim).await?)
}

/// The record names the list, and the job is watched.
async fn an_id_stands_on_both_lists(world: &World) -> Outcome {
    for phase in ["dual", "canonical"] {
        migrate(world, phase).await?;
        world.put(&[phase]).await?;
        same!(world.list(&old(world)).await?.pop().as_deref(), Some(phase));
        same!(world.waiting().await?.pop().as_deref(), Some(phase));
        same!(world.field(phase, "mw_lock").await?, Some(old(world)));
        same!(world.field(phase, "mw_queue").await?, Some(world.queue()));
        same!(looked_at(world, phase).await?, Some(START + AGE));
    }
    migrate(world, "closing").await?;
    world.put(&["j1"]).await?;
    same!(world.field("j1", "mw_lock").await?, None);
    same!(world.list(&old(world)).await?, ["dual", "canonical"]);
    Ok(())
}

/// Nor while another type migrates.
async fn without_a_migration_on_one(world: &World) -> Outcome {
    set(world, "sal", &format!("dual {} {AGE}", old(world))).await?;
    world.put(&["j1"]).await?;
    same!(world.list(&old(world)).await?.len(), 0);
    same!(world.field("j1", "mw_lock").await?, None);
    same!(looked_at(world, "j1").await?, None);
    migrate(world, "dual").await?;
    let mut other = world.job("j2")?;
    other.route.script_type = "python".parse()?;
    world.put_jobs(&[other]).await?;
    same!(world.list(&old(world)).await?.len(), 0);
    Ok(())
}

/// The key has another type: the job waits all the same.
async fn a_watch_that_is_none_is_passed_over(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world
        .raw::<()>(&["SET", &world.keys().watch(), "x"])
        .await?;
    world.put(&["j1"]).await?;
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A job without a target worker is on none of these lists.
async fn each_worker_may_have_an_old_list_of_its_own(world: &World) -> Outcome {
    let pattern = world.key("{worker_id}");
    set(world, "osis", &format!("dual {pattern} {AGE}")).await?;
    let mut job = world.job("j1")?;
    job.route.instance = Some("runner_1".parse()?);
    world.put_jobs(&[job]).await?;
    world.put(&["j2"]).await?;
    same!(world.list(&world.key("runner_1")).await?, ["j1"]);
    same!(
        world.field("j1", "mw_lock").await?,
        Some(world.key("runner_1"))
    );
    same!(world.field("j2", "mw_lock").await?, None);
    let pattern = world.key("{worker_id}:old");
    set(world, "osis", &format!("dual {pattern} {AGE}")).await?;
    let mut job = world.job("j3")?;
    job.route.instance = Some("runner_1".parse()?);
    world.put_jobs(&[job]).await?;
    same!(world.list(&world.key("runner_1:old")).await?, ["j3"]);
    Ok(())
}

/// Workers of the type's old list may not be among the targets.
async fn a_job_for_some_workers_is_not_for_all_old_ones(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut jobs = [world.job("j1")?, world.job("j2")?, world.job("j3")?];
    jobs[0].route.group = Some("io".parse()?);
    jobs[1].route.instance = Some("runner_1".parse()?);
    jobs[2].route.priority = Priority::High;
    world.put_jobs(&jobs).await?;
    same!(world.list(&old(world)).await?, ["j3"]);
    same!(world.field("j1", "mw_lock").await?, None);
    same!(world.field("j2", "mw_lock").await?, None);
    Ok(())
}

/// An invalid setting, written by hand, blocks no job.
async fn a_setting_that_is_none_is_passed_over(world: &World) -> Outcome {
    for (at, odd) in ["", "dual", "dual list", "dual list soon", "  "]
        .iter()
        .enumerate()
    {
        set(world, "osis", odd).await?;
        let id = format!("j{at}");
        world.put(&[&id]).await?;
        same!(world.field(&id, "mw_lock").await?, None);
        same!(world.take_one().await?.job.id, id);
    }
    Ok(())
}

/// Before the job is pushed, and after.
async fn an_old_list_that_is_no_list_is_passed_over(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.raw::<()>(&["SET", &old(world), "x"]).await?;
    world.put(&["j1"]).await?;
    same!(world.field("j1", "mw_lock").await?, None);
    world.raw::<()>(&["DEL", &old(world)]).await?;
    world.put(&["j2"]).await?;
    world.raw::<()>(&["SET", &old(world), "x"]).await?;
    same!(ids(&world.take(5).await?), ["j1", "j2"]);
    Ok(())
}

/// All marks of the old list are removed too.
async fn our_claim_takes_the_id_off_the_old_list(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1", "j2", "j3"]).await?;
    same!(world.take_one().await?.job.id, "j1");
    same!(world.list(&old(world)).await?, ["j2", "j3"]);
    same!(world.field("j1", "mw_lock").await?, None);
    same!(looked_at(world, "j1").await?, None);
    check!(looked_at(world, "j2").await?.is_some());
    same!(world.field("j1", "mw_legacy").await?, None);
    Ok(())
}

/// Its record stays unchanged.
async fn an_id_that_an_old_worker_took_is_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1", "j2"]).await?;
    same!(pop(world).await?.as_deref(), Some("j2"));
    let record = world.record("j2").await?;
    world.pass(1);
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], 1));
    same!(world.record("j2").await?, record);
    same!(world.lease("j2").await?, None);
    check!(looked_at(world, "j2").await?.is_some());
    Ok(())
}

/// A `started` job with a lock differs from one of a worker that died.
async fn one_that_it_runs_is_left_too(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    start(world, "j1").await?;
    check!(world.take(5).await?.is_empty());
    world.push("j1").await?;
    check!(world.take(5).await?.is_empty());
    world.push("j1").await?;
    world.raw::<()>(&["LPUSH", &old(world), "j1"]).await?;
    check!(world.take(5).await?.is_empty());
    same!(world.status("j1").await?, "started");
    Ok(())
}

/// A job on the old list only is run, and its client gets the reply where it waits.
async fn the_old_list_serves_us_as_well(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    put_old(world, "j1", &[]).await?;
    let taken = claim_both(world, 5, false).await?.jobs;
    same!(ids(&taken), ["j1"]);
    world.finish(&taken[0], "42").await?;
    let reply = format!("{}j1", world.keys().legacy_reply_prefix());
    same!(world.list(&reply).await?, ["42"]);
    same!(world.list(&world.reply("j1")).await?.len(), 0);
    Ok(())
}

/// Its queue had the id all the while: no copy of the id runs the job again, on either side.
async fn a_job_taken_from_the_old_list_goes_back_to_its_own_queue(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let taken = claim_both(world, 1, true).await?.jobs;
    same!(ids(&taken), ["j1"]);
    same!(world.field("j1", "mw_queue").await?, Some(world.queue()));
    let mut urgent = world.job("j2")?;
    urgent.route.priority = Priority::High;
    let queue = urgent.route.queue(world.keys());
    world.put_jobs(&[urgent]).await?;
    same!(ids(&claim_both(world, 1, true).await?.jobs), ["j2"]);
    same!(world.field("j2", "mw_queue").await?, Some(queue));
    same!(
        world.fail(&taken[0], FailureKind::Script).await?,
        Failed::Requeued
    );
    same!(pop(world).await?, None);
    same!(ids(&claim_both(world, 5, false).await?.jobs), ["j1"]);
    check!(claim_both(world, 5, false).await?.jobs.is_empty());
    Ok(())
}

/// The worker of the failed run is one of Meshwork's.
async fn a_retry_of_ours_stands_on_one_list(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.waiting().await?, ["j1"]);
    same!(pop(world).await?, None);
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// The push comes when the job is ready, not before.
async fn a_dependant_is_pushed_to_both(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let claimed = world.take_one().await?;
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.depends_on = vec!["first".parse()?];
    world.put_jobs(&[job]).await?;
    same!(pop(world).await?, None);
    world.finish(&claimed, "1").await?;
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    Ok(())
}

/// The lock of its last run, which an old worker had, is removed.
async fn a_job_asked_for_again_is_pushed_to_both(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    start(world, "j1").await?;
    write(world, "j1", &["status", "error", "error", "boom"]).await?;
    check!(world.take(5).await?.is_empty());
    world.broker.retry(&world.read("j1").await?).await?;
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    set(world, "osis", "").await?;
    start(world, "j1").await?;
    write(world, "j1", &["status", "error", "mw_lock", &old(world)]).await?;
    world.broker.retry(&world.read("j1").await?).await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// The length of the old list does not matter: an old worker runs whatever it pops.
async fn a_stopped_job_is_on_neither(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    fill(world, &old(world), 0..12_000).await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    same!(world.raw::<usize>(&["LLEN", &old(world)]).await?, 12_000);
    same!(world.waiting().await?.len(), 0);
    same!(world.field("j1", "mw_lock").await?, None);
    same!(looked_at(world, "j1").await?, None);
    Ok(())
}

/// The same holds for a deleted job.
async fn a_deleted_job_is_on_neither(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    fill(world, &old(world), 0..12_000).await?;
    world.broker.delete(&world.read("j1").await?).await?;
    same!(world.raw::<usize>(&["LLEN", &old(world)]).await?, 12_000);
    same!(looked_at(world, "j1").await?, None);
    Ok(())
}

/// The id is at the old end, at the new end, in between, or missing; the others stay in order.
async fn wherever_the_id_stands_in_a_long_old_list(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    for (at, id) in ["tail", "middle", "head"].iter().enumerate() {
        world.put(&[id]).await?;
        if at < 2 {
            fill(world, &old(world), at * 1_500..(at + 1) * 1_500).await?;
        }
    }
    world.put(&["absent"]).await?;
    same!(pop(world).await?.as_deref(), Some("absent"));
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.extend(world.take(4).await?);
    }
    same!(ids(&taken), ["tail", "middle", "head"]);
    let rest = world.list(&old(world)).await?;
    let others: Vec<_> = (0..3_000).map(|n| format!("g{n}")).collect();
    same!(rest, others);
    same!(world.status("absent").await?, "dispatched");
    Ok(())
}

/// The other ids return in order, and come with the next call.
async fn a_walk_through_a_long_old_list_ends_the_call(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1", "j2", "j3"]).await?;
    fill(world, &old(world), 0..2_500).await?;
    world.raw::<()>(&["LREM", &old(world), "0", "j1"]).await?;
    world.raw::<()>(&["RPUSH", &old(world), "x"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 3).await?;
    same!((taken.jobs.len(), taken.dropped, taken.more), (0, 1, true));
    same!(world.waiting().await?, ["j2", "j3"]);
    let taken = world.claim(WORKER, &[world.queue()], 3).await?;
    same!((ids(&taken.jobs), taken.more), (vec!["j2", "j3"], false));
    Ok(())
}

/// Two Meshwork workers and an old worker run 60 jobs at the same time.
async fn each_job_is_run_by_one_side(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    let names: Vec<_> = (0..60).map(|n| format!("j{n}")).collect();
    world
        .put(&names.iter().map(String::as_str).collect::<Vec<_>>())
        .await?;
    let ours = async || {
        let mut run = Vec::new();
        for n in 0..20 {
            run.extend(claim_both(world, 2, n % 2 == 1).await?.jobs);
        }
        Ok::<_, Failure>(run)
    };
    let theirs = async {
        let mut run = Vec::new();
        while let Some(id) = pop(world).await? {
            write(world, &id, &["status", "started"]).await?;
            run.push(id);
        }
        Ok::<_, Failure>(run)
    };
    let (one, two, mut run) = tokio::try_join!(ours(), ours(), theirs)?;
    run.extend(one.iter().chain(&two).map(|taken| taken.job.id.clone()));
    run.sort();
    let mut all = names;
    all.sort();
    same!(run, all);
    same!(look_after(world, AGE).await?.len(), 0);
    Ok(())
}

/// No migration was started, and clients push each id to both lists, without a mark. Once the old list has held an id,
/// a job waits for its second push.
async fn an_unannounced_second_push_is_run_by_one_side(world: &World) -> Outcome {
    world.raw::<()>(&["LPUSH", &old(world), "j0"]).await?;
    world.put_foreign("j0", &[]).await?;
    same!(ids(&world.take(1).await?), ["j0"]);
    same!(pop(world).await?, None);
    // The second push follows.
    world.put_foreign("j1", &[]).await?;
    same!(ids(&world.take(1).await?), [""; 0]);
    world.raw::<()>(&["LPUSH", &old(world), "j1"]).await?;
    world.pass(200);
    world.broker.promote().await?;
    same!(ids(&world.take(1).await?), ["j1"]);
    same!(pop(world).await?, None);
    // An old worker was faster.
    world.put_foreign("j2", &[]).await?;
    same!(ids(&world.take(1).await?), [""; 0]);
    start(world, "j2").await?;
    world.pass(200);
    world.broker.promote().await?;
    same!(ids(&world.take(1).await?), [""; 0]);
    // Without old workers, nothing waits after a day.
    world.pass(86_400_000);
    world.put_foreign("j3", &[]).await?;
    same!(ids(&world.take(1).await?), ["j3"]);
    Ok(())
}

/// The id is on both lists, or on neither while it is delayed. An old worker that has the id keeps the job.
async fn a_changed_job_is_moved_on_both(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["a", "b"]).await?;
    same!(change(world, "a", HIGH).await?, SetJob::Set);
    same!(world.list(&old(world)).await?, ["b", "a"]);
    same!(world.field("a", "mw_lock").await?, Some(old(world)));
    same!(high(world).await?, ["a"]);
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(world.list(&old(world)).await?, ["b"]);
    same!(world.field("a", "mw_lock").await?, None);
    same!(pop(world).await?.as_deref(), Some("b"));
    let before = world.all().await?;
    same!(change(world, "b", HIGH).await?, SetJob::Taken);
    world.unchanged(&before).await?;
    // The client of this one has pushed it to both lists.
    put_old(world, "c", &[]).await?;
    world.push("c").await?;
    same!(change(world, "c", in_ms(5_000)).await?, SetJob::Set);
    same!(world.list(&old(world)).await?, [""; 0]);
    same!(world.field("c", "mw_legacy").await?.as_deref(), Some("1"));
    Ok(())
}
