//! Approvals of flows: who answers first, and what does not count as an answer. Failed runs of plain runners.

use meshwork_broker::flow::{Answered, Moves, StepDone};

use crate::cases::of_contexts::flow_ground::Ground;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    the_first_answer_counts,
    a_yes_finishes_the_approval,
    no_report_of_a_job_answers,
    a_record_that_ended_without_an_answer_is_opened_again,
    a_plain_failure_is_repeated_once,
    an_error_of_a_plain_runner_stays_in_the_record,
];

async fn the_first_answer_counts(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        same!(ground.answer(true).await?, Answered::Waiting);
        let key = ground.opened(&lease).await?;
        same!(world.status(&key).await?, "started");
        same!(ground.node("2").await?, "q 0");
        // A retry came between: it is another question.
        same!(ground.answer_of(1, true).await?, Answered::Waiting);
        same!(ground.answer(false).await?, Answered::Answered);
        same!(ground.node("2").await?, "e 0 1");
        let record = ground.flows.keys().flow(ground.id);
        same!(ground.audited().await?, ["reject", &record]);
        let first = Answered::Ended("no 7".to_owned());
        same!(ground.answer(true).await?, first);
        same!(
            world.field(&key, "error").await?.as_deref(),
            Some("rejected by actor 7")
        );
        let names = ground.flows.keys().flow_part(ground.id, "nodes");
        world.raw::<()>(&["HDEL", &names, "2"]).await?;
        same!(ground.answer(true).await?, Answered::Missing);
        Ok(())
    })
    .await
}

async fn a_yes_finishes_the_approval(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.opened(&lease).await?;
        same!(ground.rest(&lease).await?, StepDone::Done);
        check!(ground.due().await? > Some(world.now()));
        same!(ground.answer(true).await?, Answered::Answered);
        same!(ground.node("2").await?, "f 0 1");
        let record = ground.flows.keys().flow(ground.id);
        same!(ground.audited().await?, ["approve", &record]);
        same!(
            world.field(&key, "result").await?.as_deref(),
            Some("{\"answer\":\"yes\",\"by\":\"7\"}")
        );
        // Somebody is to look now.
        same!(ground.due().await?, Some(world.now()));
        Ok(())
    })
    .await
}

async fn no_report_of_a_job_answers(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        ground.opened(&lease).await?;
        let key = ground.release(&lease).await?;
        same!(ground.rest(&lease).await?, StepDone::Done);
        // Whoever may write jobs gives his job the place of the approval.
        world.raw::<()>(&["HSET", &key, "mw_node", "2"]).await?;
        let claimed = world.take_one().await?;
        world.finish(&claimed, "42").await?;
        same!(ground.node("2").await?, "q 0");
        // The step finds the end in the record.
        same!(ground.due().await?, Some(world.now()));
        Ok(())
    })
    .await
}

async fn a_record_that_ended_without_an_answer_is_opened_again(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.opened(&lease).await?;
        let reopen = async |seen: &str| {
            let mut moves = Moves::default();
            moves.reopen("2", seen, &key);
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
            Ok::<_, crate::cases::Failure>(())
        };
        reopen("q 0").await?;
        same!(ground.audited().await?[0], "submit");
        let forged = ["HSET", &key, "status", "finished", "mw_answer", "yes 2"];
        world.raw::<()>(&forged).await?;
        reopen("q 1").await?;
        same!(world.status(&key).await?, "finished");
        reopen("q 0").await?;
        same!(world.status(&key).await?, "started");
        same!(ground.audited().await?, ["refuse", &key]);
        world.raw::<()>(&forged).await?;
        same!(ground.answer(false).await?, Answered::Answered);
        same!(world.status(&key).await?, "error");
        reopen("q 0").await?;
        same!(world.status(&key).await?, "error");
        Ok(())
    })
    .await
}

async fn a_plain_failure_is_repeated_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let (key, queue) = (ground.release(&lease).await?, world.queue());
        let rerun = async |generation: u32| {
            let mut moves = Moves::default();
            moves.rerun(("0", generation), (&key, &queue), 2_000, "boom");
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
            Ok::<_, crate::cases::Failure>(())
        };
        let delayed = ground.flows.keys().delayed();
        let due = async || world.raw::<Option<u64>>(&["ZSCORE", &delayed, &key]).await;
        world.raw::<()>(&["RPOP", &queue]).await?;
        rerun(0).await?;
        same!(world.status(&key).await?, "dispatched");
        same!(due().await?, None);
        let failed = [
            "HSET", &key, "status", "error", "error", "old", "result", "x",
        ];
        world.raw::<()>(&failed).await?;
        rerun(1).await?;
        same!(world.status(&key).await?, "error");
        for _ in 0..2 {
            rerun(0).await?;
            let record = world.record(&key).await?;
            same!(record["status"], "dispatched");
            same!(record["result"], "{}");
            check!(!record.contains_key("error"));
            same!(record["mw_attempt"], "1");
            same!(due().await?, Some(world.now() + 2_000));
        }
        world.raw::<()>(&["DEL", &delayed]).await?;
        world.raw::<()>(&["SET", &delayed, "no set"]).await?;
        world.raw::<()>(&failed).await?;
        rerun(0).await?;
        same!(world.waiting().await?, vec![key.clone()]);
        Ok(())
    })
    .await
}

async fn an_error_of_a_plain_runner_stays_in_the_record(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.release(&lease).await?;
        world.raw::<()>(&["HSET", &key, "status", "error"]).await?;
        let mut moves = Moves::default();
        moves.finalize("0", "r 0", ("e", 0), (&key, "error", b"boom"));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(ground.node("0").await?, "e 0 1");
        same!(world.field(&key, "error").await?.as_deref(), Some("boom"));
        Ok(())
    })
    .await
}
