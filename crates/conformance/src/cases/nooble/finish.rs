//! finish: sends the answer and acknowledges the message in one step, once for each message. On a list, the worker
//! that holds the message answers; on a stream, the first run that ends counts.

use meshwork_broker::nooble::{Completed, Completion};

use super::{Outcome, Side, W1, W2, World, cases, check, same, to};

cases![
    answers_and_acknowledges,
    without_an_answer_nothing_is_written,
    an_answer_waits_as_long_as_it_is_said,
    an_answer_may_wait_without_an_end,
    answers_stand_in_their_order,
    an_answer_that_no_list_takes_goes_nowhere,
    forgets_what_was_asked,
    refuses_another_worker,
    a_reclaimed_message_is_answered_once,
    the_first_run_that_ends_counts,
    said_twice_it_answers_once,
    of_two_that_are_alike_one_is_left,
    a_stream_that_is_gone_answers_nothing,
];

async fn answers_and_acknowledges(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        same!(side.hand(W1).await?, ["m1"]);
        let outcome = side
            .verbs
            .complete(W1, &got, to(&side.replies(), "r1"))
            .await?;
        same!(outcome, Completed::Finished);
        same!(world.list(&side.replies()).await?, ["r1"]);
        side.is_over().await?;
    }
    Ok(())
}

async fn without_an_answer_nothing_is_written(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        same!(
            side.verbs.complete(W1, &got, Completion::default()).await?,
            Completed::Finished
        );
        check!(!side.exists(&side.replies()).await?);
        side.is_over().await?;
    }
    Ok(())
}

async fn an_answer_waits_as_long_as_it_is_said(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.verbs
            .complete(W1, &got, to(&side.replies(), "r1"))
            .await?;
        same!(side.ttl(&side.replies()).await?, 600);
    }
    Ok(())
}

/// An answer without a time to live does not expire.
async fn an_answer_may_wait_without_an_end(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let (got, list) = (side.started("m1").await?, side.replies());
        let mut end = to(&list, "r1");
        if let Some(answer) = &mut end.answer {
            answer.waits = None;
        }
        side.verbs.complete(W1, &got, end).await?;
        same!(world.list(&list).await?, ["r1"]);
        same!(world.raw::<i64>(&["PTTL", &list]).await?, -1);
    }
    Ok(())
}

async fn answers_stand_in_their_order(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for answer in ["r1", "r2"] {
            let got = side.started("m1").await?;
            side.verbs
                .complete(W1, &got, to(&side.replies(), answer))
                .await?;
        }
        same!(world.list(&side.replies()).await?, ["r1", "r2"]);
    }
    Ok(())
}

async fn an_answer_that_no_list_takes_goes_nowhere(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let replies = side.replies();
        world.raw::<()>(&["SET", &replies, "x"]).await?;
        let got = side.started("m1").await?;
        let outcome = side.verbs.complete(W1, &got, to(&replies, "r1")).await?;
        same!(outcome, Completed::Unanswered);
        same!(world.raw::<String>(&["GET", &replies]).await?, "x");
        same!(side.ttl(&replies).await?, -1);
        side.is_over().await?;
    }
    Ok(())
}

async fn forgets_what_was_asked(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        let pending = side.pending_callback();
        world.raw::<()>(&["SET", &pending, "x"]).await?;
        let end = Completion {
            pending_callback: Some(&pending),
            ..Completion::default()
        };
        side.verbs.complete(W1, &got, end).await?;
        check!(!side.exists(&pending).await?);
    }
    Ok(())
}

async fn refuses_another_worker(world: &World) -> Outcome {
    let [_, side] = Side::both(world)?;
    let got = side.started("m1").await?;
    let before = world.all().await?;
    let outcome = side
        .verbs
        .complete(W2, &got, to(&side.replies(), "r1"))
        .await?;
    same!(outcome, Completed::Stale);
    world.unchanged(&before).await
}

/// Both workers end their run, in either order.
async fn a_reclaimed_message_is_answered_once(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for taker_first in [true, false] {
            let got = side.started("m1").await?;
            side.lose(std::slice::from_ref(&got)).await?;
            let taken = side.reclaim(1).await?;
            same!(taken.len(), 1);
            let mut runs = [(W1, &got, "r1"), (W2, &taken[0], "r2")];
            if taker_first {
                runs.reverse();
            }
            let mut outcome = Vec::new();
            for (worker, run, answer) in runs {
                let replies = side.replies();
                outcome.push(
                    side.verbs
                        .complete(worker, run, to(&replies, answer))
                        .await?,
                );
            }
            outcome.sort_by_key(|one| *one == Completed::Stale);
            same!(outcome, [Completed::Finished, Completed::Stale]);
            // On a list, one of the two workers holds the message.
            let first = if taker_first || !side.is_stream() {
                "r2"
            } else {
                "r1"
            };
            same!(world.list(&side.replies()).await?, [first]);
            world.raw::<()>(&["DEL", &side.replies()]).await?;
            side.is_over().await?;
        }
    }
    Ok(())
}

/// A worker that was suspended gets its own message once more: one of both runs sends an answer.
async fn the_first_run_that_ends_counts(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let got = side.started("m1").await?;
    let words = ["XCLAIM", side.queue(), super::GROUP, W1, "0", &got.id];
    world.raw::<()>(&words).await?;
    for (answer, expected) in [("r1", Completed::Finished), ("r2", Completed::Stale)] {
        let outcome = side
            .verbs
            .complete(W1, &got, to(&side.replies(), answer))
            .await?;
        same!(outcome, expected);
    }
    same!(world.list(&side.replies()).await?, ["r1"]);
    side.is_over().await
}

async fn said_twice_it_answers_once(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.verbs
            .complete(W1, &got, to(&side.replies(), "r1"))
            .await?;
        let before = world.all().await?;
        let outcome = side
            .verbs
            .complete(W1, &got, to(&side.replies(), "r1"))
            .await?;
        same!(outcome, Completed::Stale);
        world.unchanged(&before).await?;
    }
    Ok(())
}

async fn of_two_that_are_alike_one_is_left(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1", "m1"]).await?;
        let got = side.receive_as(W1, 2).await?;
        same!(got.len(), 2);
        side.verbs
            .complete(W1, &got[0], Completion::default())
            .await?;
        same!(side.hand(W1).await?, ["m1"]);
        same!(
            side.verbs
                .complete(W1, &got[1], Completion::default())
                .await?,
            Completed::Finished
        );
        side.is_over().await?;
    }
    Ok(())
}

/// This includes a stream whose key now has another type.
async fn a_stream_that_is_gone_answers_nothing(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    for in_its_place in [None, Some("x")] {
        let got = side.started("m1").await?;
        world.raw::<()>(&["DEL", side.queue()]).await?;
        if let Some(text) = in_its_place {
            world.raw::<()>(&["SET", side.queue(), text]).await?;
        }
        let outcome = side
            .verbs
            .complete(W1, &got, to(&side.replies(), "r1"))
            .await?;
        same!(outcome, Completed::Stale);
        check!(!side.exists(&side.replies()).await?);
    }
    Ok(())
}
