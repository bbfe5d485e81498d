//! Retries of flows: an ended flow starts anew, and its jobs run in another generation.

use meshwork_broker::flow::{Moves, Retried, StepDone, Stopped};
use meshwork_model::keys::context::{ActorId, FlowId};

use crate::cases::of_contexts::flow_ground::Ground;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    an_ended_flow_is_retried_once,
    a_place_runs_again_in_another_generation,
    a_forgotten_item_leaves_nothing,
];

async fn an_ended_flow_is_retried_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let retry = async |id| ground.flows.retry(id, ActorId(7), "[]").await;
        same!(retry(ground.id).await?, Retried::Unfinished);
        same!(retry(FlowId(9)).await?, Retried::Missing);
        let lease = ground.lease().await?;
        same!(ground.flows.stop(ground.id, true).await?, Stopped::Stopping);
        let mut moves = Moves::default();
        let fields = [
            "status",
            "error",
            "result",
            "mw_fault",
            "mw_expires",
            "mw_looked",
            "mw_halted",
            "mw_ends",
        ];
        let value = |name| if name == "status" { "error" } else { "1" };
        moves.note(&fields.map(|name| (name, value(name).to_owned())));
        let dirty = ground.flow_field("mw_dirty").await?.unwrap_or_default();
        moves.rest(&dirty, None);
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(ground.due().await?, None);
        world.pass(5);
        same!(retry(ground.id).await?, Retried::Retrying);
        let record = ground.flows.record(ground.id).await?;
        for gone in [
            "error",
            "mw_fault",
            "mw_expires",
            "mw_looked",
            "mw_halted",
            "mw_stop",
            "mw_keep",
        ] {
            check!(!record.contains_key(gone));
        }
        for (name, value) in [
            ("status", "started"),
            ("result", "{}"),
            ("mw_retry", "[]"),
            ("mw_retries", "1"),
            ("mw_retried", "1"),
            ("mw_retried_by", "7"),
        ] {
            same!(record[name], value);
        }
        same!(ground.due().await?, Some(world.now()));
        let prefix = ground.flows.keys().flow(ground.id);
        same!(world.raw::<i64>(&["PTTL", &prefix]).await?, -1);
        same!(retry(ground.id).await?, Retried::Unfinished);
        same!(ground.audited().await?, ["retry", &prefix]);
        for (actor, all) in [(7, "7"), (17, "7 17"), (1, "7 17 1"), (7, "7 17 1")] {
            let end = ["HSET", &prefix, "status", "error"];
            world.raw::<()>(&end).await?;
            let retried = ground.flows.retry(ground.id, ActorId(actor), "[]").await?;
            same!(retried, Retried::Retrying);
            same!(
                ground.flow_field("mw_retried_by").await?.as_deref(),
                Some(all)
            );
        }
        Ok(())
    })
    .await
}

async fn a_place_runs_again_in_another_generation(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.release(&lease).await?;
        let claimed = world.take_one().await?;
        world
            .fail(&claimed, meshwork_model::outcome::FailureKind::Permanent)
            .await?;
        same!(ground.node("0").await?, "e 0 1");
        let mut moves = Moves::default();
        moves.keep(std::slice::from_ref(&key));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        check!(ground.kept(&key).await?.is_some());
        let mut moves = Moves::default();
        moves.hold(std::slice::from_ref(&key));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(ground.kept(&key).await?, None);
        let renew = async |seen: &str| {
            let mut moves = Moves::default();
            moves.renew("0", (seen, "w 1"), 1, (&key, "dispatched"), None);
            Ok::<_, crate::cases::Failure>(ground.flows.commit(&lease, &moves).await?)
        };
        let dead = ground.flows.keys().dead();
        world.raw::<()>(&["ZADD", &dead, "1", &key]).await?;
        // A place that is not as it was seen stays as it is.
        same!(renew("f 0 1").await?, StepDone::Done);
        same!(world.status(&key).await?, "error");
        for _ in 0..2 {
            same!(renew("e 0 1").await?, StepDone::Done);
            let job = world.record(&key).await?;
            same!(job["status"], "dispatched");
            same!(job["mw_generation"], "1");
            same!(job["mw_waiting"], "\"flow 33\"");
            for gone in ["error", "mw_attempt", "mw_token", "mw_dead", "mw_started"] {
                check!(!job.contains_key(gone));
            }
        }
        same!(
            world
                .raw::<Option<String>>(&["ZSCORE", &dead, &key])
                .await?,
            None
        );
        same!(ground.node("0").await?, "w 1");
        // It runs as if it had never run, and a report of the first run is stale.
        let mut moves = Moves::default();
        moves.release("0", 1, &key, &world.queue(), Vec::new());
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        let again = world.take_one().await?;
        same!(again.job.attempt, 1);
        same!(
            world.finish(&claimed, "1").await?,
            meshwork_broker::Completed::Stale
        );
        world.finish(&again, "2").await?;
        same!(ground.node("0").await?, "f 1 2");
        Ok(())
    })
    .await
}

async fn a_forgotten_item_leaves_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let mut moves = Moves::default();
        moves.note(&[("mw_retry", "[]".to_owned())]);
        moves.renew("0", ("w 0", ""), 2, ("", ""), None);
        moves.forget("1", "b");
        moves.renewed("[1]", Some(1_000));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        let nodes = ground.flows.nodes(ground.id).await?;
        check!(!nodes.contains_key("0") && !nodes.contains_key("1"));
        check!(!ground.flows.names(ground.id).await?.contains_key("b"));
        same!(ground.flow_field("jobs").await?.as_deref(), Some("[1]"));
        same!(
            ground.flow_field("mw_expires").await?,
            Some((world.now() + 1_000).to_string())
        );
        same!(ground.flow_field("mw_retry").await?, None);
        Ok(())
    })
    .await
}
