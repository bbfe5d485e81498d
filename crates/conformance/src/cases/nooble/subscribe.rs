//! notify and subscribe: a subscriber receives what is published, and nothing is kept for others.

use meshwork_broker::conn::{Heard, Subscriber};

use super::{Failure, Outcome, Side, World, cases, same};
use crate::cases::harness::world::{Got, PATIENCE};

cases![
    what_is_published_is_heard,
    what_was_said_before_is_not_heard,
    listening_again_changes_nothing,
];

/// Returns the next message.
async fn next(side: &Side<'_>, subscriber: &mut Subscriber) -> Got<Heard> {
    let heard = async {
        loop {
            if let Some(heard) = side.verbs.heard(subscriber).await? {
                return Ok(heard);
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, heard).await;
    heard.unwrap_or_else(|_| Err(Failure::new("nothing was heard")))
}

/// Returns channels of this case and this side only: the server counts an ended subscriber for a moment longer.
fn channels(side: &Side<'_>, case: &str) -> [String; 2] {
    let (names, context) = (side.verbs.names(), Some(side.dialect.as_str()));
    ["created", "updated"].map(|event| names.notifications(case, event, context))
}

fn said(channel: &str, message: &str) -> Heard {
    Heard {
        channel: channel.to_owned(),
        message: message.as_bytes().to_vec(),
    }
}

async fn what_is_published_is_heard(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let [first, second] = channels(&side, "published");
        let both = [first.clone(), second.clone()];
        let mut subscriber = side.verbs.subscribe(&both).await?;
        let mut other = side.verbs.subscribe(&both[..1]).await?;
        same!(side.verbs.notify(&first, "m1").await?, 2);
        same!(side.verbs.notify(&second, "m2").await?, 1);
        same!(side.verbs.notify(&first, "m3").await?, 2);
        same!(next(&side, &mut subscriber).await?, said(&first, "m1"));
        same!(next(&side, &mut subscriber).await?, said(&second, "m2"));
        same!(next(&side, &mut subscriber).await?, said(&first, "m3"));
        same!(next(&side, &mut other).await?, said(&first, "m1"));
        same!(next(&side, &mut other).await?, said(&first, "m3"));
    }
    Ok(())
}

async fn what_was_said_before_is_not_heard(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let [first, _] = channels(&side, "before");
        same!(side.verbs.notify(&first, "m1").await?, 0);
        let mut subscriber = side.verbs.subscribe(std::slice::from_ref(&first)).await?;
        same!(side.verbs.notify(&first, "m2").await?, 1);
        same!(next(&side, &mut subscriber).await?, said(&first, "m2"));
    }
    Ok(())
}

async fn listening_again_changes_nothing(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let both = channels(&side, "again");
        let mut subscriber = side.verbs.subscribe(&both).await?;
        side.verbs.subscribe_again(&mut subscriber, &both).await?;
        same!(side.verbs.notify(&both[0], "m1").await?, 1);
        side.verbs.subscribe_again(&mut subscriber, &both).await?;
        same!(side.verbs.notify(&both[1], "m2").await?, 1);
        same!(next(&side, &mut subscriber).await?, said(&both[0], "m1"));
        same!(next(&side, &mut subscriber).await?, said(&both[1], "m2"));
    }
    Ok(())
}
