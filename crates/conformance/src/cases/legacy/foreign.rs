//! Records and ids that other clients wrote, by hand or in their own format: they run where possible, stay unchanged
//! otherwise, and never block other jobs.

use meshwork_broker::{Claim, Completed, LegacyList, PrefetchLists, Retried};

use crate::cases::harness::world::{LEASE, WORKER, ids};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_job_written_by_hand_runs,
    a_job_as_seed_2_writes_it_runs,
    a_job_of_later_heros_runs,
    an_empty_status_means_it_waits,
    a_hash_without_a_status_is_no_job,
    a_started_job_that_is_pushed_again_runs_in_time,
    what_cannot_be_read_is_a_dead_letter,
    an_unreadable_job_of_an_old_list_is_answered_there,
    an_unreadable_job_in_other_hands_is_left,
    an_unreadable_job_that_is_mended_runs,
    a_hash_that_is_a_list_is_left,
    an_id_without_a_record_is_dropped,
    the_same_id_again_and_again_is_one_job,
    an_id_in_two_queues_is_one_job,
    an_id_pushed_again_after_its_end_does_nothing,
    odd_fields_do_not_matter,
    fields_we_do_not_know_stay,
    a_field_name_that_is_no_text_costs_nobody_a_run,
    an_id_that_is_no_text_costs_nobody_a_run,
    an_id_of_any_characters_runs,
    a_worker_of_theirs_may_take_our_job,
];

/// The job is written with two commands, as from a command line: `HSET` and `LPUSH`.
async fn a_job_written_by_hand_runs(world: &World) -> Outcome {
    world.put_foreign("j1", &[("script", "40 + 2")]).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.script, b"40 + 2");
    same!((claimed.job.attempt, claimed.job.retries), (1, 0));
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    same!(world.list(&world.reply("j1")).await?, ["42"]);
    same!(world.status("j1").await?, "finished");
    Ok(())
}

/// The record has all fields of Hero.
async fn a_job_as_seed_2_writes_it_runs(world: &World) -> Outcome {
    let fields = [
        ("id", "j1"),
        ("caller_id", "alice"),
        ("worker_id", "osis_runner_1"),
        ("context_id", "home"),
        ("script", "40 + 2"),
        ("timeout", "30"),
        ("retries", "1"),
        ("concurrent", "false"),
        ("log_path", "/var/log/j1"),
        ("created_at", "2025-07-29T10:00:00Z"),
        ("updated_at", "2025-07-29T10:00:00Z"),
        ("status", "dispatched"),
        ("env_vars", r#"{"A":"1"}"#),
        ("prerequisites", "[]"),
        ("dependents", "[]"),
        ("dependencies", "[]"),
    ];
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    let job = &claimed.job;
    same!(
        (job.caller_id.as_str(), job.context_id.as_str()),
        ("alice", "home")
    );
    same!((job.timeout, job.retries, job.concurrent), (30, 1, false));
    same!(job.env_vars.get("A").map(String::as_str), Some("1"));
    world.finish(&claimed, "42").await?;
    let record = world.record("j1").await?;
    for (name, value) in fields {
        if !matches!(name, "status" | "updated_at") {
            same!(
                (name, record.get(name).map(String::as_str)),
                (name, Some(value))
            );
        }
    }
    Ok(())
}

/// The record has their field for the target, and the script's type.
async fn a_job_of_later_heros_runs(world: &World) -> Outcome {
    let fields = [
        ("script", "1"),
        ("actor_id", "osis_runner_1"),
        ("script_type", "OSIS"),
        ("status", "dispatched"),
    ];
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.worker_id, "osis_runner_1");
    same!(claimed.job.script_type.as_deref(), Some("osis"));
    Ok(())
}

/// The id was pushed, so the job must run.
async fn an_empty_status_means_it_waits(world: &World) -> Outcome {
    world.put_foreign("j1", &[("status", "")]).await?;
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(world.status("j1").await?, "started");
    Ok(())
}

/// The hash may be anything: its id is noted, and the hash stays unchanged.
async fn a_hash_without_a_status_is_no_job(world: &World) -> Outcome {
    world.put_hash("j1", &[("script", "1")]).await?;
    world
        .put_hash("j2", &[("mw_lock", "x"), ("n", "1")])
        .await?;
    let before = (world.record("j1").await?, world.record("j2").await?);
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 2));
    same!(
        (world.record("j1").await?, world.record("j2").await?),
        before
    );
    let note = ["drop", WORKER, "no job: its hash has no status"];
    let event = |id: &str| [id, note[0], note[1], note[2]].map(str::to_owned);
    same!(world.events().await?, [event("j1"), event("j2")]);
    same!(world.lease("j1").await?, None);
    Ok(())
}

/// The worker without leases died, and a client queued the job again, as Hero's protocol allows.
async fn a_started_job_that_is_pushed_again_runs_in_time(world: &World) -> Outcome {
    let fields = [("script", "1"), ("status", "started"), ("timeout", "7")];
    world.put_foreign("j1", &fields).await?;
    check!(world.take(5).await?.is_empty());
    for ms in [30_000, 6_999, 1] {
        same!(world.broker.check_orphans().await?.pushed.len(), 0);
        world.pass(ms);
    }
    same!(world.broker.check_orphans().await?.pushed, ["j1"]);
    let claimed = world.take_one().await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    Ok(())
}

/// Checks that a job is a dead letter with this reason, and that its client received a reply.
async fn unreadable(world: &World, id: &str, why: &str) -> Outcome {
    let why = format!("unreadable: {why}");
    let job = world.read(id).await?;
    same!((id, job.error.as_deref()), (id, Some(why.as_str())));
    same!(
        (job.status.as_str(), job.dead.as_deref()),
        ("error", Some("unreadable"))
    );
    same!(job.queue, Some(world.queue()));
    check!(
        world
            .raw::<Option<u64>>(&["ZSCORE", &world.keys().dead(), id])
            .await?
            .is_some()
    );
    same!(world.lease(id).await?, None);
    Ok(())
}

/// The job ends at once: otherwise it would be claimed again and again, or count as done.
async fn what_cannot_be_read_is_a_dead_letter(world: &World) -> Outcome {
    let long = "x".repeat(100);
    let cut = format!("its status is `{}`", &long[..60]);
    for (status, why) in [
        ("paused", "its status is `paused`"),
        ("Dispatched", "its status is `Dispatched`"),
        (" ", "its status is ` `"),
        (&long, &cut),
    ] {
        world.put_foreign(status, &[("status", status)]).await?;
        let taken = world.claim(WORKER, &[world.queue()], 1).await?;
        same!((taken.jobs.len(), taken.dropped), (0, 1));
        unreadable(world, status, why).await?;
        let said = format!("unreadable: {why}");
        same!(world.list(&world.reply(status)).await?, [said]);
    }
    for status in ["", "dispatched", "waiting_for_prerequisites"] {
        let id = format!("j{status}");
        world.put_hash(&id, &[("status", status)]).await?;
        check!(world.take(1).await?.is_empty());
        unreadable(world, &id, "it has no script").await?;
    }
    world.put_foreign("blank", &[("script", " \n")]).await?;
    check!(world.take(1).await?.is_empty());
    unreadable(world, "blank", "it has no script").await?;
    let figures = world.keys().queue_stats_key(&world.queue());
    let counted: Option<String> = world.raw(&["HGET", &figures, "error:unreadable"]).await?;
    same!(counted.as_deref(), Some("8"));
    Ok(())
}

/// The reply goes to the list on which its client waits.
async fn an_unreadable_job_of_an_old_list_is_answered_there(world: &World) -> Outcome {
    let (list, home) = (world.key("actor_queue:osis"), world.queue());
    world.put_foreign("j1", &[("status", "paused")]).await?;
    world.raw::<()>(&["RENAME", &home, &list]).await?;
    let old = [LegacyList {
        list,
        requeue_to: home,
    }];
    let claim = Claim {
        queues: &[world.queue()],
        old: &old,
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: "t",
    };
    same!(world.broker.claim(claim).await?.dropped, 1);
    unreadable(world, "j1", "its status is `paused`").await?;
    same!(world.field("j1", "mw_legacy").await?.as_deref(), Some("1"));
    let reply = world.key("").replace("job:", "reply:") + "j1";
    same!(world.list(&reply).await?.len(), 1);
    Ok(())
}

/// Such a job is not ended: one runs under a lease, an old worker has popped another, and one may run there.
async fn an_unreadable_job_in_other_hands_is_left(world: &World) -> Outcome {
    world.started("runs").await?;
    world
        .raw::<()>(&["HDEL", &world.key("runs"), "script"])
        .await?;
    world.push("runs").await?;
    let lock = world.key("actor_queue:osis");
    let taken = [("status", "paused"), ("mw_lock", &lock)];
    world.put_foreign("taken", &taken).await?;
    let before = (world.record("runs").await?, world.record("taken").await?);
    let away = [("status", "started"), ("script", "")];
    world.put_foreign("away", &away).await?;
    let claimed = world.claim("w2-b", &[world.queue()], 5).await?;
    same!((claimed.jobs.len(), claimed.dropped), (0, 3));
    same!(
        world.field("away", "status").await?.as_deref(),
        Some("started")
    );
    same!(
        (world.record("runs").await?, world.record("taken").await?),
        before
    );
    Ok(())
}

/// A client has added the missing field.
async fn an_unreadable_job_that_is_mended_runs(world: &World) -> Outcome {
    world.put_hash("j1", &[("status", "dispatched")]).await?;
    check!(world.take(1).await?.is_empty());
    let dead = world.read("j1").await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "script", "1"])
        .await?;
    same!(world.broker.retry(&dead).await?, Retried::Queued);
    let claimed = world.take_one().await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    Ok(())
}

/// Old queues are lists with names like jobs.
async fn a_hash_that_is_a_list_is_left(world: &World) -> Outcome {
    let list = world.key("osis_runner_1");
    world.raw::<()>(&["LPUSH", &list, "a", "b"]).await?;
    world.push("osis_runner_1").await?;
    world.put(&["j1"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], 1));
    same!(world.list(&list).await?, ["a", "b"]);
    same!(world.lease("osis_runner_1").await?, None);
    Ok(())
}

/// No record is created for it.
async fn an_id_without_a_record_is_dropped(world: &World) -> Outcome {
    world.push("ghost").await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 1));
    world.unchanged("").await
}

/// The id is pushed several times before and while the job runs.
async fn the_same_id_again_and_again_is_one_job(world: &World) -> Outcome {
    world.put_foreign("j1", &[("script", "1")]).await?;
    for _ in 0..3 {
        world.push("j1").await?;
    }
    let claimed = world.take_one().await?;
    check!(world.take(10).await?.is_empty());
    world.push("j1").await?;
    check!(
        world
            .claim("w2-b", &[world.queue()], 10)
            .await?
            .jobs
            .is_empty()
    );
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    Ok(())
}

/// The id is claimed in one call and in two.
async fn an_id_in_two_queues_is_one_job(world: &World) -> Outcome {
    let queues = [world.queue_of("osis:group:default"), world.queue()];
    for id in ["j1", "j2"] {
        world.put_foreign(id, &[("script", "1")]).await?;
        world.raw::<()>(&["LPUSH", &queues[0], id]).await?;
    }
    let first = world.claim(WORKER, &queues[..1], 1).await?;
    same!(ids(&first.jobs), ["j1"]);
    let rest = world.claim("w2-b", &queues, 5).await?;
    same!((ids(&rest.jobs), rest.dropped), (vec!["j2"], 2));
    Ok(())
}

/// A late repetition by a client runs no job twice.
async fn an_id_pushed_again_after_its_end_does_nothing(world: &World) -> Outcome {
    world.put_foreign("j1", &[("script", "1")]).await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    let before = world.all().await?;
    world.push("j1").await?;
    check!(world.take(5).await?.is_empty());
    world.unchanged(&before).await
}

/// An unreadable field has its default.
async fn odd_fields_do_not_matter(world: &World) -> Outcome {
    let fields = [
        ("script", "1"),
        ("timeout", "soon"),
        ("retries", "many"),
        ("concurrent", "perhaps"),
        ("env_vars", "[1,2"),
        ("script_type", ""),
    ];
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    same!((claimed.job.retries, claimed.job.concurrent), (0, true));
    check!(claimed.job.env_vars.is_empty());
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    Ok(())
}

/// The fields stay from the claim to the end.
async fn fields_we_do_not_know_stay(world: &World) -> Outcome {
    let fields = [
        ("script", "1"),
        ("novelty", "[]"),
        ("big", "9007199254740993"),
    ];
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    same!(
        claimed.job.other.get("novelty").map(Vec::as_slice),
        Some(&b"[]"[..])
    );
    world.finish(&claimed, "42").await?;
    let record = world.record("j1").await?;
    same!(record.get("novelty").map(String::as_str), Some("[]"));
    same!(
        record.get("big").map(String::as_str),
        Some("9007199254740993")
    );
    Ok(())
}

/// The other jobs of the claim do not stay claimed without a worker.
async fn a_field_name_that_is_no_text_costs_nobody_a_run(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let mut set = redis::cmd("HSET");
    set.arg(world.key("j2")).arg(b"\xff").arg(b"\xfe");
    set.arg("script").arg("1").arg("status").arg("dispatched");
    set.query_async::<()>(&mut world.conn().clone()).await?;
    world.push("j2").await?;
    let jobs = world.take(5).await?;
    same!(ids(&jobs), ["j1", "j2"]);
    for claimed in &jobs {
        same!(world.finish(claimed, "42").await?, Completed::Finished);
    }
    Ok(())
}

/// Nor do such ids, which no client can name: each ends at once, and affects no other job.
async fn an_id_that_is_no_text_costs_nobody_a_run(world: &World) -> Outcome {
    let conn = &mut world.conn().clone();
    let odd: [&[u8]; 9] = [
        b"\xff\xfe",
        b"a\x80",
        b"\xc3",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\xc3\xa9\x82\xac",
    ];
    let key = |id: &[u8]| [world.key("").as_bytes(), id].concat();
    for id in odd {
        let mut set = redis::cmd("HSET");
        set.arg(key(id))
            .arg("script")
            .arg("1")
            .arg("status")
            .arg("dispatched");
        set.query_async::<()>(conn).await?;
        let mut push = redis::cmd("LPUSH");
        push.arg(world.queue()).arg(id);
        push.query_async::<()>(conn).await?;
    }
    world.put(&["j1"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 9).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], odd.len()));
    same!(
        world.finish(&taken.jobs[0], "42").await?,
        Completed::Finished
    );
    for id in odd {
        let mut get = redis::cmd("HMGET");
        get.arg(key(id)).arg("status").arg("error").arg("mw_dead");
        let record: Vec<String> = get.query_async(conn).await?;
        same!(
            record,
            [
                "error",
                "unreadable: its id is no valid utf-8",
                "unreadable"
            ]
        );
    }
    let page = world.broker.dead_letters(None, 0, 50).await?;
    same!(page.letters.len(), odd.len());
    Ok(())
}

/// A client may choose any id.
async fn an_id_of_any_characters_runs(world: &World) -> Outcome {
    let odd = "jöb:{1} [x]*?\\ \n%s \u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}";
    world
        .put_foreign(odd, &[("script", "1"), ("retries", "1")])
        .await?;
    world.take_one().await?;
    same!(world.lose_all().await?.requeued, [odd]);
    let claimed = world.take_one().await?;
    same!(claimed.job.id, odd);
    check!(
        world
            .renew(WORKER, std::slice::from_ref(&claimed))
            .await?
            .is_empty()
    );
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    same!(world.list(&world.reply(odd)).await?, ["42"]);
    Ok(())
}

/// A foreign worker pops and writes plainly: its result counts, and Meshwork does not run the job again.
async fn a_worker_of_theirs_may_take_our_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let (queue, key) = (world.queue(), world.key("j1"));
    let popped: (String, String) = world.raw(&["BRPOP", &queue, "1"]).await?;
    same!(popped.1, "j1");
    world
        .raw::<()>(&["HSET", &key, "status", "started"])
        .await?;
    check!(world.take(5).await?.is_empty());
    let end = ["HSET", &key, "status", "finished", "output", "42"];
    world.raw::<()>(&end).await?;
    world.push("j1").await?;
    check!(world.take(5).await?.is_empty());
    let job = world.read("j1").await?;
    same!(
        (job.status.as_str(), job.output.as_deref()),
        ("finished", Some(&b"42"[..]))
    );
    Ok(())
}
