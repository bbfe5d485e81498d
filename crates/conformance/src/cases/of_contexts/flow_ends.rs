//! Ends in flows from which nothing follows: of answers that come too late, and of items while others run.

use meshwork_broker::flow::{Answered, Moves, StepDone};
use meshwork_model::outcome::FailureKind;

use crate::cases::of_contexts::flow_ground::{ACTOR, Ground};
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    an_answer_counts_until_its_time_is_over,
    an_item_wakes_its_flow_if_something_follows_from_its_end,
];

/// Also while no worker has ended the approval.
async fn an_answer_counts_until_its_time_is_over(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.key("ask").await?;
        let until = world.now() + 1000;
        let mut moves = Moves::default();
        let fields = vec![("mw_until", until.to_string().into_bytes())];
        moves.release("2", 0, &key, "", fields);
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        for late in [until, until + 1] {
            world.at(late);
            same!(ground.answer(true).await?, Answered::Late);
            same!(world.field(&key, "mw_answer").await?, None);
            same!(world.status(&key).await?, "started");
        }
        world.at(until - 1);
        same!(ground.answer(true).await?, Answered::Answered);
        world.at(until);
        let first = Answered::Ended("yes 7".to_owned());
        same!(ground.answer(false).await?, first);
        Ok(())
    })
    .await
}

/// Of a `foreach` whose items have all been released only the last end wakes the flow, or one of another kind.
async fn an_item_wakes_its_flow_if_something_follows_from_its_end(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.key("b").await?;
        let mut moves = Moves::default();
        moves.expand("1", 0, 5, &key);
        for item in 0..5 {
            let mut job = ground.job(&format!("1.{item}"), &format!("b[{item}]"), "osis")?;
            job.waits = false;
            moves.add(&ground.flows, ACTOR, &job);
        }
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        let open = async || ground.flow_field("mw_open:1").await;
        same!(open().await?.as_deref(), Some("5"));
        let dirty = async || ground.flow_field("mw_dirty").await;
        let started = dirty().await?;
        world.finish(&world.take_one().await?, "1").await?;
        let first = dirty().await?;
        check!(first != started);
        let mut moves = Moves::default();
        moves.calm("1", "g 0 5", "f");
        // A place that is not as it was seen stays as it is.
        moves.calm("1", "g 0 4", "f");
        for _ in 0..2 {
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        }
        same!(ground.node("1").await?, "g 0 5 f");
        world.finish(&world.take_one().await?, "1").await?;
        same!(
            (open().await?.as_deref(), dirty().await?),
            (Some("3"), first.clone())
        );
        same!(ground.node("1.1").await?, "f 0 2");
        // A step ends one itself.
        let gone = ground.key("b[2]").await?;
        let mut moves = Moves::default();
        moves.finalize("1.2", "r 0", ("f", 0), (&gone, "finished", b"{}"));
        for _ in 0..2 {
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        }
        same!(
            (open().await?.as_deref(), dirty().await?),
            (Some("2"), first.clone())
        );
        let claimed = world.take_one().await?;
        world.fail(&claimed, FailureKind::Permanent).await?;
        let failed = dirty().await?;
        check!(failed != first);
        world.finish(&world.take_one().await?, "1").await?;
        check!(dirty().await? != failed);
        same!(open().await?, None);
        // A retry of two items.
        let mut moves = Moves::default();
        moves.renew("1", ("g 0 5 f", "g 1 5"), 1, ("", ""), Some(2));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(
            (open().await?.as_deref(), ground.node("1").await?),
            (Some("2"), "g 1 5".to_owned())
        );
        Ok(())
    })
    .await
}
