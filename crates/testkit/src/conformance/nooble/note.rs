//! note: the trace of what is over, of which nobody waits for anything.

use meshwork_broker::nooble::Nooble;
use meshwork_broker::{Error, MAX_ITEMS};
use meshwork_model::nooble::{Ended, Traced};

use super::{Failure, Got, Outcome, SERVICE, Side, World, cases, check, same};

cases![
    tells_of_each_the_latest_first,
    stays_for_a_day_after_the_last,
    nothing_to_tell_is_told,
    keeps_the_latest,
    what_is_of_another_kind_is_left_alone,
    what_is_no_entry_is_passed_over,
    takes_no_more_than_a_call_may,
];

/// What the trace is told of an action.
fn traced(action: &str) -> Traced<'_> {
    Traced {
        task: "t1".into(),
        action: action.into(),
        action_type: "demo.run".into(),
        span: "".into(),
        parent: "".into(),
        from: "tester".into(),
        service: SERVICE.into(),
        correlation: "".into(),
        trace: "t1".into(),
        asked: "".into(),
        began: "".into(),
        took_ms: 1,
        how: Ended::Done,
        error: "".into(),
    }
}

fn entries(actions: &[&str]) -> Vec<String> {
    actions
        .iter()
        .map(|action| traced(action).write())
        .collect()
}

/// The actions that the trace tells of, the latest first.
async fn told(verbs: &Nooble) -> Got<Vec<String>> {
    let told = verbs.traced(None, MAX_ITEMS).await?;
    let told = told.into_iter().filter_map(|(_, one)| one);
    Ok(told.map(|one| one.action.into_owned()).collect())
}

async fn tells_of_each_the_latest_first(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.verbs.note(&entries(&["a1", "a2"])).await?;
    side.verbs.note(&entries(&["a3"])).await?;
    same!(told(&side.verbs).await?, ["a3", "a2", "a1"]);
    let all = side.verbs.traced(None, 2).await?;
    same!(all[0].1, Some(traced("a3")));
    let before = side.verbs.traced(Some(&all[1].0), 2).await?;
    same!(before.len(), 1);
    same!(before[0].1, Some(traced("a1")));
    Ok(())
}

async fn stays_for_a_day_after_the_last(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    for _ in 0..2 {
        side.verbs.note(&entries(&["a1"])).await?;
        same!(side.ttl(&side.trace()).await?, 86_400);
        world
            .raw::<()>(&["PEXPIRE", &side.trace(), "60000"])
            .await?;
    }
    Ok(())
}

async fn nothing_to_tell_is_told(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.verbs.note(&[]).await?;
    check!(!side.exists(&side.trace()).await?);
    Ok(())
}

async fn keeps_the_latest(world: &World) -> Outcome {
    const MANY: usize = 52;
    let [side, _] = Side::both(world)?;
    for _ in 0..MANY {
        side.verbs.note(&vec!["x".to_owned(); MAX_ITEMS]).await?;
    }
    side.verbs.note(&entries(&["last"])).await?;
    let left: usize = world.raw(&["XLEN", &side.trace()]).await?;
    // More or less: a stream forgets whole nodes.
    check!((50_000..51_000).contains(&left));
    let last = side.verbs.traced(None, 1).await?;
    same!(last[0].1, Some(traced("last")));
    Ok(())
}

async fn what_is_of_another_kind_is_left_alone(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    world.raw::<()>(&["SET", &side.trace(), "x"]).await?;
    let refused = side.verbs.note(&entries(&["a1"])).await;
    check!(matches!(&refused, Err(Error::Call { verb: "note", .. })));
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
    side.verbs.note(&entries(&["a1"])).await?;
    let all = side.verbs.traced(None, 10).await?;
    same!(all.len(), 3);
    same!(told(&side.verbs).await?, ["a1"]);
    Ok(())
}

async fn takes_no_more_than_a_call_may(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let many = vec![String::new(); MAX_ITEMS + 1];
    let refused = side.verbs.note(&many).await;
    let Err(error) = refused else {
        return Err(Failure::new("it was taken"));
    };
    check!(matches!(error, Error::TooMany { .. }));
    check!(!side.exists(&side.trace()).await?);
    Ok(())
}
