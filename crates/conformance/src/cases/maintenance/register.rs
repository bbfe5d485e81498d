//! present: registers a worker's presence under its name, and refuses a second worker with that name.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_broker::Registration;

use crate::cases::harness::world::START;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_worker_is_there_for_15_seconds,
    said_again_it_is_there_longer,
    a_second_one_of_that_name_is_refused,
    the_value_of_one_that_is_gone_is_written_over,
    only_if_it_still_stands_there,
    a_name_that_is_free_again_is_taken,
    who_departs_is_gone,
    only_the_owner_departs,
    two_at_once_are_not_both_there,
    a_key_of_another_kind_is_left,
    values_of_others_are_told_apart_by_the_mark,
    those_that_ended_are_cleared_away,
    entries_of_a_clock_that_was_ahead_are_cleared_away,
    a_runner_gives_signs_of_life,
];

const ONE: &str = r#"{"pid":1,"mark":"aaa"}"#;
const TWO: &str = r#"{"pid":2,"mark":"bbb"}"#;

fn key(world: &World) -> String {
    format!("{}osis:default:w1", world.keys().presence_prefix())
}

/// Returns the presence of `value`, whose mark is its first letter three times.
fn presence<'a>(key: &'a str, value: &'a str) -> Registration<'a> {
    Registration {
        key,
        value,
        mark: if value.contains("aaa") {
            "\"aaa\""
        } else {
            "\"bbb\""
        },
        over: None,
    }
}

async fn say(world: &World, value: &str) -> Result<Option<String>, Failure> {
    Ok(world.broker.register(presence(&key(world), value)).await?)
}

async fn stands(world: &World) -> Result<Option<String>, Failure> {
    world.raw(&["GET", &key(world)]).await
}

async fn known(world: &World) -> Result<Vec<String>, Failure> {
    world
        .raw(&[
            "ZRANGE",
            &world.keys().registrations(),
            "0",
            "-1",
            "WITHSCORES",
        ])
        .await
}

/// The presence has its own key, and an entry in the set of all.
async fn a_worker_is_there_for_15_seconds(world: &World) -> Outcome {
    same!(say(world, ONE).await?, None);
    same!(stands(world).await?.as_deref(), Some(ONE));
    let left: u64 = world.raw(&["PTTL", &key(world)]).await?;
    check!((14_000..=15_000).contains(&left));
    let actors = world.keys().registrations();
    let until: u64 = world.raw(&["ZSCORE", &actors, &key(world)]).await?;
    same!(until, START + 15_000);
    Ok(())
}

/// The value may change with each call.
async fn said_again_it_is_there_longer(world: &World) -> Outcome {
    say(world, ONE).await?;
    world.raw::<()>(&["PEXPIRE", &key(world), "1000"]).await?;
    world.pass(5_000);
    let later = r#"{"pid":1,"mark":"aaa","busy":3}"#;
    same!(say(world, later).await?, None);
    same!(stands(world).await?.as_deref(), Some(later));
    check!(world.raw::<u64>(&["PTTL", &key(world)]).await? > 14_000);
    let actors = world.keys().registrations();
    let until: u64 = world.raw(&["ZSCORE", &actors, &key(world)]).await?;
    same!(until, START + 20_000);
    Ok(())
}

/// The second worker receives the value of the first, and changes nothing.
async fn a_second_one_of_that_name_is_refused(world: &World) -> Outcome {
    say(world, ONE).await?;
    let before = world.all().await?;
    world.pass(1_000);
    same!(say(world, TWO).await?.as_deref(), Some(ONE));
    same!(say(world, TWO).await?.as_deref(), Some(ONE));
    world.unchanged(&before).await?;
    same!(say(world, ONE).await?, None);
    Ok(())
}

/// A worker that knows that the first process has ended says so; from then on the first one is refused.
async fn the_value_of_one_that_is_gone_is_written_over(world: &World) -> Outcome {
    say(world, ONE).await?;
    let key = key(world);
    let over = Registration {
        over: Some(ONE),
        ..presence(&key, TWO)
    };
    same!(world.broker.register(over).await?, None);
    same!(stands(world).await?.as_deref(), Some(TWO));
    same!(say(world, ONE).await?.as_deref(), Some(TWO));
    Ok(())
}

/// The value has changed meanwhile, so the first worker lives.
async fn only_if_it_still_stands_there(world: &World) -> Outcome {
    say(world, ONE).await?;
    let key = key(world);
    let over = Registration {
        over: Some(r#"{"pid":1,"mark":"aaa","at":0}"#),
        ..presence(&key, TWO)
    };
    same!(world.broker.register(over).await?.as_deref(), Some(ONE));
    same!(stands(world).await?.as_deref(), Some(ONE));
    Ok(())
}

/// The key has expired.
async fn a_name_that_is_free_again_is_taken(world: &World) -> Outcome {
    say(world, ONE).await?;
    world.raw::<()>(&["DEL", &key(world)]).await?;
    same!(say(world, TWO).await?, None);
    same!(stands(world).await?.as_deref(), Some(TWO));
    same!(known(world).await?.len(), 2);
    Ok(())
}

/// The presence ends at once, and a second call changes nothing.
async fn who_departs_is_gone(world: &World) -> Outcome {
    say(world, ONE).await?;
    let key = key(world);
    world.broker.deregister(presence(&key, ONE)).await?;
    world.unchanged("").await?;
    world.broker.deregister(presence(&key, ONE)).await?;
    world.unchanged("").await
}

/// The refused worker neither leaves nor removes a key.
async fn only_the_owner_departs(world: &World) -> Outcome {
    say(world, ONE).await?;
    let before = world.all().await?;
    world.broker.deregister(presence(&key(world), TWO)).await?;
    world.unchanged(&before).await
}

/// One of both succeeds; the other receives its value.
async fn two_at_once_are_not_both_there(world: &World) -> Outcome {
    let (one, two) = tokio::try_join!(say(world, ONE), say(world, TWO))?;
    same!(usize::from(one.is_none()) + usize::from(two.is_none()), 1);
    same!(stands(world).await?, one.or(two));
    Ok(())
}

/// The call fails, and nothing is written.
async fn a_key_of_another_kind_is_left(world: &World) -> Outcome {
    world.raw::<()>(&["LPUSH", &key(world), "x"]).await?;
    let before = world.all().await?;
    check!(
        world
            .broker
            .register(presence(&key(world), ONE))
            .await
            .is_err()
    );
    check!(
        world
            .broker
            .deregister(presence(&key(world), ONE))
            .await
            .is_err()
    );
    world.unchanged(&before).await
}

/// The mark is no pattern: every character counts.
async fn values_of_others_are_told_apart_by_the_mark(world: &World) -> Outcome {
    say(world, ONE).await?;
    let key = key(world);
    for mark in ["a.a", "%w", "[a]", "aaaa"] {
        let second = Registration {
            mark,
            ..presence(&key, TWO)
        };
        same!(world.broker.register(second).await?.as_deref(), Some(ONE));
    }
    world.raw::<()>(&["SET", &key, ""]).await?;
    same!(say(world, TWO).await?, None);
    same!(stands(world).await?.as_deref(), Some(TWO));
    Ok(())
}

/// Any worker removes them; entries of live workers stay.
async fn those_that_ended_are_cleared_away(world: &World) -> Outcome {
    let actors = world.keys().registrations();
    let (now, next) = ((START + 5_000).to_string(), (START + 5_001).to_string());
    world
        .raw::<()>(&["ZADD", &actors, "1", "a", &now, "b", &next, "c"])
        .await?;
    world.pass(5_000);
    say(world, ONE).await?;
    let names: Vec<String> = world.raw(&["ZRANGE", &actors, "0", "-1"]).await?;
    same!(names, ["c".to_owned(), key(world)]);
    Ok(())
}

/// A live worker registers again.
async fn entries_of_a_clock_that_was_ahead_are_cleared_away(world: &World) -> Outcome {
    world.at(START + 1_000_000_000);
    say(world, ONE).await?;
    world.raw::<()>(&["DEL", &key(world)]).await?;
    world.at(START);
    let key = format!("{}osis:default:w2", world.keys().presence_prefix());
    same!(world.broker.register(presence(&key, TWO)).await?, None);
    let actors = world.keys().registrations();
    let names: Vec<String> = world.raw(&["ZRANGE", &actors, "0", "-1"]).await?;
    same!(names, [key]);
    Ok(())
}

/// Workers of contexts are runners, and their names are numbers.
async fn a_runner_gives_signs_of_life(world: &World) -> Outcome {
    in_both(world, async |world| {
        let context = world.keys().context();
        let context = context.ok_or_else(|| Failure::new("no context"))?;
        let seen = context.runners_seen();
        for name in ["20", "12-abc", "007"] {
            let key = format!("{}osis:default:{name}", world.keys().presence_prefix());
            same!(world.broker.register(presence(&key, ONE)).await?, None);
        }
        let words = ["HGETALL", &seen];
        let only = |ms: u64| BTreeMap::from([("20".to_owned(), ms.to_string())]);
        same!(
            world.raw::<BTreeMap<String, String>>(&words).await?,
            only(START)
        );
        // Whoever removes the name of a worker that is gone gives none.
        world.pass(5_000);
        let key = format!("{}osis:default:20", world.keys().presence_prefix());
        world.broker.deregister(presence(&key, ONE)).await?;
        same!(
            world.raw::<BTreeMap<String, String>>(&words).await?,
            only(START)
        );
        world.broker.register(presence(&key, ONE)).await?;
        let later = only(START + 5_000);
        same!(world.raw::<BTreeMap<String, String>>(&words).await?, later);
        // A pool renews a registration that has not changed.
        world.pass(5_000);
        let live = Duration::from_secs(15);
        same!(
            world.broker.renew_registration(&[&key], ONE, live).await?,
            true
        );
        let later = only(START + 10_000);
        same!(world.raw::<BTreeMap<String, String>>(&words).await?, later);
        world.raw::<()>(&["DEL", &seen]).await?;
        world.raw::<()>(&["SET", &seen, "damaged"]).await?;
        same!(
            world.broker.renew_registration(&[&key], ONE, live).await?,
            true
        );
        Ok(())
    })
    .await
}
