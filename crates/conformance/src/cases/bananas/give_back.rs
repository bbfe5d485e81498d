//! give_back: what was taken over waits in Bananas again; and what Bananas is told of a job that has ended here.

use meshwork_broker::bananas::GivenBack;
use meshwork_model::bananas::Place;
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Route;

use super::over::{Both, RECORD, gpu};
use super::{Outcome, World, cases, check, same};

cases![
    what_waits_comes_back_as_it_was,
    what_waits_for_its_time_comes_back_as_it_was,
    a_dead_letter_comes_back_as_it_was,
    the_next_one_stays_the_next_one,
    nothing_is_left_here,
    what_has_failed_here_says_so_there,
    what_a_worker_runs_stays,
    what_has_changed_stays,
    what_others_wait_for_stays,
    a_key_of_another_kind_takes_none,
    said_twice_it_changes_nothing,
    an_end_is_told_there,
    a_result_that_is_none_is_not_written,
    a_failure_is_told_there_when_it_is_the_last,
    a_job_that_never_ran_and_is_stopped_is_told_there,
    a_deleted_job_is_told_there,
    an_ended_job_that_is_deleted_is_told_once,
    keys_of_another_kind_are_left_alone,
    a_forgotten_job_is_known_no_more,
];

async fn goes_and_comes_back(world: &World, both: &Both<'_>, place: &Place) -> Outcome {
    let before = both.theirs().await?;
    both.take(place).await?;
    check!(both.theirs().await? != before);
    same!(both.give_back().await?, [GivenBack::Given]);
    same!(both.theirs().await?, before);
    same!(both.taken_over().await?, Vec::<String>::new());
    let there: u8 = world.raw(&["EXISTS", &world.key("j1")]).await?;
    same!(there, 0);
    Ok(())
}

/// The same bytes in the same place.
async fn what_waits_comes_back_as_it_was(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    goes_and_comes_back(world, &both, &list).await?;
    same!(world.list(&both.queue()).await?, Vec::<String>::new());
    let what: Vec<_> = world
        .events()
        .await?
        .into_iter()
        .map(|[_, what, ..]| what)
        .collect();
    same!(what, ["enqueue", "take_over", "give_back"]);
    Ok(())
}

/// Its time too, to the last digit.
async fn what_waits_for_its_time_comes_back_as_it_was(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.later("j1", "1700000020.123456").await?;
    goes_and_comes_back(world, &both, &Place::Later).await?;
    let left: u8 = world.raw(&["EXISTS", &world.keys().delayed()]).await?;
    same!(left, 0);
    Ok(())
}

/// Its record has an end.
async fn a_dead_letter_comes_back_as_it_was(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.dead("j1", &RECORD.replace("pending", "failed"))
        .await?;
    let key = both.side.keys().job("j1");
    world.raw::<()>(&["PEXPIRE", &key, "604800000"]).await?;
    goes_and_comes_back(world, &both, &Place::Dead).await?;
    same!(both.side.ttl(&key).await?, 604_800);
    let left: u8 = world.raw(&["EXISTS", &world.keys().dead()]).await?;
    same!(left, 0);
    Ok(())
}

/// As they were taken over.
async fn the_next_one_stays_the_next_one(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j2", "j1", "j3"]).await?;
    both.take_some(&list, 2).await?;
    both.take(&list).await?;
    same!(both.give_back().await?, [GivenBack::Given; 3]);
    same!(both.there(&list).await?, ["j2", "j1", "j3"]);
    Ok(())
}

/// But what is told of all jobs.
async fn nothing_is_left_here(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    both.give_back().await?;
    let left = world.all().await?;
    let keys: Vec<_> = left.lines().filter(|line| !line.starts_with(' ')).collect();
    let told = |key: &&str| key.contains(":q:events") || key.contains(":meta:queue:stats:");
    check!(keys.iter().all(told));
    Ok(())
}

/// It waits for its next run, as after a failure there.
async fn what_has_failed_here_says_so_there(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(both.give_back().await?, [GivenBack::Given]);
    let list = Place::List(gpu(both.side.keys()));
    same!(both.there(&list).await?, ["j1"]);
    let expected = RECORD
        .replace(
            "22:13:00Z\",\"attempts\":0",
            "22:13:20.123000Z\",\"attempts\":1",
        )
        .replace("s\":3", "s\":3,\"error\":\"boom\"");
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, -1);
    Ok(())
}

/// It is given back when it has failed, if it has.
async fn what_a_worker_runs_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.returns().await?;
    both.claim(&both.queue()).await?;
    let before = both.all().await?;
    same!(both.go_back(&returns).await?, [GivenBack::Runs]);
    same!(both.all().await?, before);
    same!(both.returns().await?.len(), 0);
    check!(world.broker.taken_over(0).await?[0].runs);
    Ok(())
}

/// Its runs, its time, or what became of it.
async fn what_has_changed_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.returns().await?;
    let changes: [&[&str]; 3] = [
        &["HSET", &world.key("j1"), "mw_attempt", "1"],
        &[
            "HSET",
            &world.key("j1"),
            "mw_attempt",
            "0",
            "status",
            "error",
        ],
        &["ZADD", &world.keys().delayed(), "1800000000000", "j1"],
    ];
    for change in changes {
        world.raw::<i64>(change).await?;
        let before = both.all().await?;
        same!(both.go_back(&returns).await?, [GivenBack::Changed]);
        same!(both.all().await?, before);
        world
            .raw::<()>(&["HSET", &world.key("j1"), "status", "dispatched"])
            .await?;
    }
    Ok(())
}

/// They would wait in vain.
async fn what_others_wait_for_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let depends_on = vec!["j1".parse()?];
    let waits = NewJob {
        depends_on,
        ..NewJob::new("j2".parse()?, Route::to("osis".parse()?), "1")
    };
    world.put_jobs(&[waits]).await?;
    let before = both.all().await?;
    same!(both.give_back().await?, [GivenBack::Awaited]);
    same!(both.all().await?, before);
    Ok(())
}

/// The place, or the record.
async fn a_key_of_another_kind_takes_none(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let key = both.side.keys().job("j1");
    for odd in [gpu(both.side.keys()), key] {
        world.raw::<()>(&["DEL", &odd]).await?;
        world.raw::<()>(&["SADD", &odd, "x"]).await?;
        let before = both.all().await?;
        same!(both.give_back().await?, [GivenBack::Odd]);
        same!(both.all().await?, before);
        world.raw::<()>(&["DEL", &odd]).await?;
    }
    same!(both.give_back().await?, [GivenBack::Given]);
    Ok(())
}

/// A call whose answer was lost.
async fn said_twice_it_changes_nothing(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.returns().await?;
    both.go_back(&returns).await?;
    let before = both.all().await?;
    same!(both.go_back(&returns).await?, [GivenBack::Gone]);
    world.put(&["j1"]).await?;
    same!(both.go_back(&returns).await?, [GivenBack::Gone]);
    same!(both.theirs().await?, both.theirs().await?);
    check!(before != both.all().await?);
    same!(world.status("j1").await?, "dispatched");
    Ok(())
}

/// As Bananas' own worker tells it, in the step that ends the job.
async fn an_end_is_told_there(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.pass(1_500);
    world.finish(&claimed, "[1,2]").await?;
    for (field, value) in [
        ("status", "completed"),
        ("completed_at", "2023-11-14T22:13:21Z"),
        ("duration_ms", "1500"),
        ("result", "[1,2]"),
    ] {
        same!(both.side.result("j1", field).await?.as_deref(), Some(value));
    }
    same!(both.side.ttl(&both.side.keys().result("j1")).await?, 3_600);
    let expected = RECORD
        .replace("pending", "completed")
        .replace("22:13:00Z\",\"attempts", "22:13:21.623000Z\",\"attempts");
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 86_400);
    same!(both.give_back().await?, []);
    Ok(())
}

/// As with a worker there that gives none.
async fn a_result_that_is_none_is_not_written(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "").await?;
    same!(both.side.result("j1", "result").await?, None);
    same!(
        both.side.result("j1", "status").await?.as_deref(),
        Some("completed")
    );
    Ok(())
}

/// A client that waits goes on while another run follows. Any text may be the error.
async fn a_failure_is_told_there_when_it_is_the_last(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let record = RECORD.replace("s\":3", "s\":2,\"scheduled_for\":\"x\"");
    let list = both.put_text("j1", &record).await?;
    both.take(&list).await?;
    let before = both.theirs().await?;
    world
        .fail(&both.claim(&both.queue()).await?, FailureKind::Script)
        .await?;
    same!(both.theirs().await?, before);
    let claimed = both.claim(&both.queue()).await?;
    let failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "a \"b\"\\\n\u{1}ü");
    let none = std::time::Duration::ZERO;
    world
        .broker
        .fail(&claimed, &failure, b"", b"", none)
        .await?;
    let error = both.side.result("j1", "error").await?;
    same!(error.as_deref(), Some("a \"b\"\\\n\u{1}ü"));
    same!(
        both.side.result("j1", "status").await?.as_deref(),
        Some("failed")
    );
    same!(both.side.ttl(&both.side.keys().result("j1")).await?, 86_400);
    let expected = RECORD
        .replace("pending", "failed")
        .replace(
            "22:13:00Z\",\"attempts\":0",
            "22:13:20.123000Z\",\"attempts\":2",
        )
        .replace(
            "s\":3",
            "s\":2,\"error\":\"a \\u0022b\\u0022\\u005c\\u000a\\u0001ü\"",
        );
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 604_800);
    same!(both.there(&Place::Dead).await?, Vec::<String>::new());
    same!(both.give_back().await?, [GivenBack::Given]);
    same!(both.there(&Place::Dead).await?, ["j1"]);
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 604_800);
    Ok(())
}

/// It took no time.
async fn a_job_that_never_ran_and_is_stopped_is_told_there(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "not wanted", false).await?;
    same!(
        both.side.result("j1", "error").await?.as_deref(),
        Some("not wanted")
    );
    same!(
        both.side.result("j1", "duration_ms").await?.as_deref(),
        Some("0")
    );
    check!(both.side.says("j1", "\"attempts\":0").await?);
    same!(both.give_back().await?, []);
    Ok(())
}

/// Nobody would hear of it otherwise.
async fn a_deleted_job_is_told_there(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(
        both.side.result("j1", "error").await?.as_deref(),
        Some("deleted")
    );
    same!(both.taken_over().await?, Vec::<String>::new());
    Ok(())
}

/// Its result stays what it was.
async fn an_ended_job_that_is_deleted_is_told_once(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "1").await?;
    let before = both.theirs().await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(both.theirs().await?, before);
    Ok(())
}

/// They hold up no end.
async fn keys_of_another_kind_are_left_alone(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    let (record, result) = (both.side.keys().job("j1"), both.side.keys().result("j1"));
    world.raw::<()>(&["DEL", &record]).await?;
    world.raw::<()>(&["SADD", &record, "x"]).await?;
    both.side.set(&result, "x").await?;
    let before = both.theirs().await?;
    world.finish(&claimed, "1").await?;
    same!(both.theirs().await?, before);
    same!(world.status("j1").await?, "finished");
    // Of a record that somebody took away, its end is told all the same.
    let claimed = both.started("j2").await?;
    let record = both.side.keys().job("j2");
    world.raw::<()>(&["DEL", &record]).await?;
    world.finish(&claimed, "1").await?;
    check!(both.side.says("j2", "\"completed\"").await?);
    Ok(())
}

/// It stands in no list of ours for ever.
async fn a_forgotten_job_is_known_no_more(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "1").await?;
    same!(both.taken_over().await?, ["j1"]);
    world.pass(1_000);
    let id: JobId = "j1".parse()?;
    let kept = meshwork_broker::Retention {
        age: std::time::Duration::ZERO,
        ..Default::default()
    };
    world.broker.prune(kept).await?;
    check!(world.broker.inspect(&id).await?.is_none());
    same!(both.taken_over().await?, Vec::<String>::new());
    same!(both.there(&both.plain()).await?, Vec::<String>::new());
    Ok(())
}
