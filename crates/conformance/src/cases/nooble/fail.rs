//! fail: a failed action runs again after a pause, or gets an error as its answer and becomes a dead letter.

use meshwork_broker::nooble::{Completion, Failed};

use super::{GROUP, Outcome, Side, W1, W2, World, cases, check, same, to};
use crate::cases::harness::world::START;

cases![
    waits_for_its_next_run,
    pauses_double_up_to_the_longest,
    the_last_run_is_answered_and_a_dead_letter,
    one_run_may_be_all,
    an_answer_that_no_list_takes_goes_nowhere,
    runs_are_remembered_for_a_day,
    two_that_are_alike_wait_both,
    forgets_what_was_asked_when_it_is_over,
    who_is_told_needs_no_dead_letter,
    refuses_another_worker,
    refuses_what_came_again,
    a_stream_that_is_gone_tells_nothing,
    a_dead_letter_keeps_every_byte,
];

async fn waits_for_its_next_run(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m 1").await?;
        let (pending, replies) = (side.pending_callback(), side.replies());
        let end = Completion {
            pending_callback: Some(&pending),
            ..to(&replies, "r1")
        };
        world.raw::<()>(&["SET", &pending, "x"]).await?;
        same!(side.fail(&got, 3, end).await?, Failed::Again(1));
        side.is_over().await?;
        check!(!side.exists(&side.replies()).await?);
        check!(side.exists(&pending).await?);
        same!(side.dead().await?, []);
        let delayed = &side.source.keys().delayed;
        let waits: Vec<(String, u64)> = world
            .raw(&["ZRANGE", delayed, "0", "-1", "WITHSCORES"])
            .await?;
        same!(waits.len(), 1);
        check!(waits[0].0.ends_with(" m 1"));
        same!(waits[0].1, START + 1_000);
    }
    Ok(())
}

async fn pauses_double_up_to_the_longest(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1"]).await?;
        for (run, pause) in [(1, 1_000), (2, 2_000), (3, 3_000), (4, 3_000)] {
            let got = side.receive().await?;
            same!(
                side.fail(&got, 9, Completion::default()).await?,
                Failed::Again(run)
            );
            world.pass(pause - 1);
            same!(side.verbs.promote(&side.source).await?.0, 0);
            world.pass(1);
            same!(side.verbs.promote(&side.source).await?.0, 1);
        }
    }
    Ok(())
}

async fn the_last_run_is_answered_and_a_dead_letter(world: &World) -> Outcome {
    for side in Side::both(world)? {
        world.at(START);
        side.send(&["m1"]).await?;
        let got = side.receive().await?;
        same!(
            side.fail(&got, 2, Completion::default()).await?,
            Failed::Again(1)
        );
        world.pass(1_000);
        side.verbs.promote(&side.source).await?;
        let got = side.receive().await?;
        let outcome = side.fail(&got, 2, to(&side.replies(), "r1")).await?;
        same!(outcome, Failed::Failed(2));
        same!(world.list(&side.replies()).await?, ["r1"]);
        same!(side.ttl(&side.replies()).await?, 600);
        let word = |text: &str| text.to_owned();
        same!(
            side.dead().await?,
            [(word("m1"), word("boom"), 2, START + 1_000)]
        );
        check!(!side.exists(&side.tries("m1")).await?);
        check!(!side.exists(&side.source.keys().delayed).await?);
        side.is_over().await?;
        world.raw::<()>(&["DEL", &side.source.keys().dead]).await?;
    }
    Ok(())
}

async fn one_run_may_be_all(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for most in [0, 1] {
            let got = side.started("m1").await?;
            same!(
                side.fail(&got, most, Completion::default()).await?,
                Failed::Failed(1)
            );
            check!(!side.exists(&side.replies()).await?);
        }
    }
    Ok(())
}

async fn an_answer_that_no_list_takes_goes_nowhere(world: &World) -> Outcome {
    for side in Side::both(world)? {
        world.raw::<()>(&["SET", &side.replies(), "x"]).await?;
        let got = side.started("m1").await?;
        let outcome = side.fail(&got, 1, to(&side.replies(), "r1")).await?;
        same!(outcome, Failed::Unanswered(1));
        same!(side.dead().await?.len(), 1);
        side.is_over().await?;
        world.raw::<()>(&["DEL", &side.source.keys().dead]).await?;
    }
    Ok(())
}

async fn runs_are_remembered_for_a_day(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.fail(&got, 2, Completion::default()).await?;
        same!(side.ttl(&side.tries("m1")).await?, 86_400);
    }
    Ok(())
}

async fn two_that_are_alike_wait_both(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m1"]).await?;
        for got in side.receive_as(W1, 2).await? {
            side.fail(&got, 9, Completion::default()).await?;
        }
        let delayed = &side.source.keys().delayed;
        same!(world.raw::<usize>(&["ZCARD", delayed]).await?, 2);
    }
    Ok(())
}

async fn forgets_what_was_asked_when_it_is_over(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        let pending = side.pending_callback();
        world.raw::<()>(&["SET", &pending, "x"]).await?;
        let end = Completion {
            pending_callback: Some(&pending),
            ..Completion::default()
        };
        side.fail(&got, 1, end).await?;
        check!(!side.exists(&pending).await?);
        check!(!side.exists(&side.tries("m1")).await?);
    }
    Ok(())
}

async fn who_is_told_needs_no_dead_letter(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        same!(
            side.refuse(&got, to(&side.replies(), "r1")).await?,
            Failed::Failed(1)
        );
        same!(world.list(&side.replies()).await?, ["r1"]);
        check!(!side.exists(&side.source.keys().dead).await?);
        side.is_over().await?;
    }
    Ok(())
}

async fn refuses_another_worker(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1"]).await?;
        let got = side.receive_as(W2, 1).await?;
        let before = world.all().await?;
        let outcome = side.fail(&got[0], 3, to(&side.replies(), "r1")).await?;
        same!(outcome, Failed::Stale);
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// A worker that was suspended gets its own message once more: the earlier run no longer counts.
async fn refuses_what_came_again(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = side.started("m1").await?;
    let words = ["XCLAIM", side.queue(), GROUP, W1, "0", &got.id];
    world.raw::<()>(&words).await?;
    let before = world.all().await?;
    let replies = side.replies();
    same!(side.fail(&got, 1, to(&replies, "r1")).await?, Failed::Stale);
    world.unchanged(&before).await
}

async fn a_stream_that_is_gone_tells_nothing(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = side.started("m1").await?;
    world.raw::<()>(&["DEL", side.queue()]).await?;
    let before = world.all().await?;
    let replies = side.replies();
    same!(side.fail(&got, 1, to(&replies, "r1")).await?, Failed::Stale);
    world.unchanged(&before).await
}

async fn a_dead_letter_keeps_every_byte(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.verbs.prepare(&side.source).await?;
        let mut cmd = match side.is_stream() {
            true => redis::cmd("XADD"),
            false => redis::cmd("LPUSH"),
        };
        cmd.arg(side.queue());
        if side.is_stream() {
            cmd.arg("*").arg("data");
        }
        let bytes = b"{\"a\":\"\xff\0\r\n\"}".to_vec();
        let sent: Result<redis::Value, _> =
            cmd.arg(&bytes).query_async(&mut world.conn().clone()).await;
        sent?;
        let got = side.receive().await?;
        side.fail(&got, 2, Completion::default()).await?;
        world.pass(1_000);
        side.verbs.promote(&side.source).await?;
        let got = side.receive().await?;
        side.fail(&got, 2, Completion::default()).await?;
        let dead = side.verbs.dead(&side.source, None, 10).await?;
        same!(dead.letters[0].message, bytes);
        same!(dead.letters[0].runs, 2);
        world.raw::<()>(&["DEL", &side.source.keys().dead]).await?;
    }
    Ok(())
}
