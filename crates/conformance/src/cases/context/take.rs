//! take: one coordinator at a time holds the messages to be sent.

use std::time::Duration;

use meshwork_broker::context::{Database, Outbox};

use super::{Got, Outcome, World, cases, key, same};

cases![
    the_first_goes_first,
    what_is_taken_is_left_to_whoever_has_it,
    an_uncommitted_message_is_claimed_again,
    no_more_are_taken_than_wanted,
];

const LEASE: Duration = Duration::from_secs(10);

async fn take(world: &World, most: usize) -> Got<Vec<String>> {
    let [waiting, taken, leases] = keys(world)?;
    let outbox = Outbox {
        waiting: &waiting,
        taken: &taken,
        leases: &leases,
    };
    let found = world
        .contexts()
        .take(Database::Node, outbox, LEASE, most)
        .await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(found.into_iter().map(text).collect())
}

fn keys(world: &World) -> Got<[String; 3]> {
    Ok([
        key(world, "out")?,
        key(world, "taken")?,
        key(world, "leases")?,
    ])
}

async fn put(world: &World, messages: &[&str]) -> Outcome {
    let [waiting, ..] = keys(world)?;
    for message in messages {
        world.raw::<()>(&["LPUSH", &waiting, message]).await?;
    }
    Ok(())
}

async fn list(world: &World, key: &str) -> Got<Vec<String>> {
    world.raw(&["LRANGE", key, "0", "-1"]).await
}

async fn the_first_goes_first(world: &World) -> Outcome {
    put(world, &["a", "b", "c"]).await?;
    same!(take(world, 2).await?, ["a", "b"]);
    let [waiting, taken, _] = keys(world)?;
    same!(list(world, &waiting).await?, ["c"]);
    same!(list(world, &taken).await?, ["b", "a"]);
    Ok(())
}

async fn what_is_taken_is_left_to_whoever_has_it(world: &World) -> Outcome {
    put(world, &["a"]).await?;
    take(world, 5).await?;
    world.pass(9_999);
    same!(take(world, 5).await?, [""; 0]);
    Ok(())
}

async fn an_uncommitted_message_is_claimed_again(world: &World) -> Outcome {
    put(world, &["a"]).await?;
    take(world, 5).await?;
    world.pass(10_000);
    put(world, &["b"]).await?;
    same!(take(world, 5).await?, ["a", "b"]);
    let [_, taken, _] = keys(world)?;
    same!(list(world, &taken).await?, ["b", "a"]);
    world.pass(9_999);
    same!(take(world, 5).await?, [""; 0]);
    Ok(())
}

async fn no_more_are_taken_than_wanted(world: &World) -> Outcome {
    put(world, &["a", "b"]).await?;
    take(world, 5).await?;
    world.pass(10_000);
    put(world, &["c"]).await?;
    same!(take(world, 1).await?, ["a"]);
    same!(take(world, 2).await?, ["b", "c"]);
    Ok(())
}
