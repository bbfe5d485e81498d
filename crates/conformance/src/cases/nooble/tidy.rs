//! tidy: writes the trace of ended actions, and removes state that is no longer needed.

use meshwork_broker::nooble::{AckCleanup, Nooble};
use meshwork_broker::{Error, MAX_ITEMS};
use meshwork_model::nooble::{ActionOutcome, TraceEvent};

use super::{Failure, Got, Outcome, SERVICE, Side, World, cases, check, same};

cases![
    tells_of_each_the_latest_first,
    forgets_how_often_it_failed,
    stays_for_a_day_after_the_last,
    nothing_to_tell_is_told,
    keeps_the_latest,
    what_is_of_another_kind_is_left_alone,
    what_is_no_entry_is_passed_over,
    takes_no_more_than_a_call_may,
];

/// Returns the trace entry of an action.
fn traced(action: &str) -> TraceEvent<'_> {
    TraceEvent {
        task: "t1".into(),
        action: action.into(),
        action_type: "demo.run".into(),
        span: "".into(),
        parent: "".into(),
        from: "tester".into(),
        service: SERVICE.into(),
        correlation: "".into(),
        trace: "t1".into(),
        requested: "".into(),
        began: "".into(),
        took_ms: 1,
        how: ActionOutcome::Done,
        error: "".into(),
    }
}

/// Tidies up after a message, with these actions for the trace.
async fn tidy(side: &Side<'_>, actions: &[&str]) -> Got<()> {
    let received = side.started("m1").await?;
    let all = actions
        .iter()
        .map(|action| AckCleanup::new(&received, &traced(action)));
    Ok(side.verbs.clean_up(&all.collect::<Vec<_>>()).await?)
}

/// Returns the actions in the trace, the latest first.
async fn actions_traced(verbs: &Nooble) -> Got<Vec<String>> {
    let entries = verbs.traced(None, MAX_ITEMS).await?;
    let entries = entries.into_iter().filter_map(|(_, one)| one);
    Ok(entries.map(|one| one.action.into_owned()).collect())
}

async fn tells_of_each_the_latest_first(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    tidy(&side, &["a1", "a2"]).await?;
    tidy(&side, &["a3"]).await?;
    same!(actions_traced(&side.verbs).await?, ["a3", "a2", "a1"]);
    let all = side.verbs.traced(None, 2).await?;
    same!(all[0].1, Some(traced("a3")));
    let before = side.verbs.traced(Some(&all[1].0), 2).await?;
    same!(before.len(), 1);
    same!(before[0].1, Some(traced("a1")));
    Ok(())
}

async fn forgets_how_often_it_failed(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let [tries, others] = ["m1", "m2"].map(|message| side.tries(message));
        for key in [&tries, &others] {
            world.raw::<()>(&["HSET", key, "runs", "1"]).await?;
        }
        tidy(&side, &["a1"]).await?;
        check!(!side.exists(&tries).await?);
        check!(side.exists(&others).await?);
    }
    Ok(())
}

async fn stays_for_a_day_after_the_last(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    for _ in 0..2 {
        tidy(&side, &["a1"]).await?;
        same!(side.ttl(&side.trace()).await?, 86_400);
        world
            .raw::<()>(&["PEXPIRE", &side.trace(), "60000"])
            .await?;
    }
    Ok(())
}

async fn nothing_to_tell_is_told(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.verbs.clean_up(&[]).await?;
    check!(!side.exists(&side.trace()).await?);
    Ok(())
}

async fn keeps_the_latest(world: &World) -> Outcome {
    const MANY: usize = 52;
    let [side, _] = Side::both(world)?;
    let over = AckCleanup::new(&side.started("m1").await?, &traced("a1"));
    for _ in 0..MANY {
        side.verbs.clean_up(&vec![over.clone(); MAX_ITEMS]).await?;
    }
    tidy(&side, &["last"]).await?;
    let left: usize = world.raw(&["XLEN", &side.trace()]).await?;
    // The number is approximate: a stream deletes whole nodes.
    check!((50_000..51_000).contains(&left));
    let last = side.verbs.traced(None, 1).await?;
    same!(last[0].1, Some(traced("last")));
    Ok(())
}

async fn what_is_of_another_kind_is_left_alone(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    world.raw::<()>(&["SET", &side.trace(), "x"]).await?;
    let over = AckCleanup::new(&side.started("m1").await?, &traced("a1"));
    let refused = side.verbs.clean_up(&[over]).await;
    let named =
        matches!(&refused, Err(Error::WrongType { verb: "tidy", key }) if *key == side.trace());
    check!(named);
    check!(!refused.is_err_and(|error| error.is_temporary()));
    same!(world.raw::<String>(&["GET", &side.trace()]).await?, "x");
    Ok(())
}

async fn what_is_no_entry_is_passed_over(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    world
        .raw::<()>(&["XADD", &side.trace(), "*", "entry", "x"])
        .await?;
    world
        .raw::<()>(&["XADD", &side.trace(), "*", "x", "y"])
        .await?;
    tidy(&side, &["a1"]).await?;
    let all = side.verbs.traced(None, 10).await?;
    same!(all.len(), 3);
    same!(actions_traced(&side.verbs).await?, ["a1"]);
    Ok(())
}

async fn takes_no_more_than_a_call_may(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let over = AckCleanup::new(&side.started("m1").await?, &traced("a1"));
    let many = vec![over; MAX_ITEMS + 1];
    let refused = side.verbs.clean_up(&many).await;
    let Err(error) = refused else {
        return Err(Failure::new("it was taken"));
    };
    check!(matches!(error, Error::TooMany { .. }));
    check!(!side.exists(&side.trace()).await?);
    Ok(())
}
