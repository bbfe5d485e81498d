//! Flows: stored in calls that may be repeated, taken on under a lease, and notified of the ends of their jobs.

use std::time::Duration;

use meshwork_broker::flow::{FlowClaim, FlowLease, Moves, NewFlow, StepDone, Stopped, Stored};
use meshwork_model::keys::context::FlowId;

use crate::cases::harness::world::{LEASE, LEASE_MS};
use crate::cases::of_contexts::flow_ground::{ACTOR, Ground};
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_flow_is_stored_once_however_often_it_is_said,
    a_number_that_another_flow_has_is_refused,
    numbers_of_other_jobs_are_stepped_over,
    a_flow_that_was_never_sealed_comes_up_later,
    a_flow_is_one_workers_until_its_lease_is_over,
    a_commit_with_another_token_changes_nothing,
    a_job_is_released_once_and_its_end_is_counted_once,
    an_end_of_an_older_generation_counts_nothing,
    items_are_stored_once_under_new_numbers,
    a_place_ends_without_a_run,
    a_foreach_ends_with_the_results_of_its_items,
    jobs_are_kept_until_their_flow_has_ended,
    a_step_rests_only_if_it_has_seen_all,
    a_request_to_stop_is_noted_once,
];

async fn a_flow_is_stored_once_however_often_it_is_said(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let new = ground.new_flow();
        let names = ground.flows.names(ground.id).await?;
        same!(names.len(), 3);
        let submitted = ["submit".to_owned(), ground.flows.keys().flow(ground.id)];
        same!(ground.audited().await?, submitted);
        let record = ground.flows.record(ground.id).await?;
        same!(
            (record["status"].as_str(), record["jobs"].as_str()),
            ("dispatched", "[1,2,3]")
        );
        same!(
            (record["id"].as_str(), record["caller_id"].as_str()),
            ("33", "12")
        );
        check!(!record.contains_key("mw_expires"));
        let key = ground.key("b").await?;
        let job = world.record(&key).await?;
        same!(job["status"], "waiting_for_prerequisites");
        same!(
            (job["mw_flow"].as_str(), job["mw_node"].as_str()),
            ("33", "1")
        );
        same!(
            (job["mw_name"].as_str(), job["mw_waiting"].as_str()),
            ("b", "\"flow 33\"")
        );
        same!(
            (job["id"].as_str(), world.waiting().await?.len()),
            (names["b"].as_str(), 0)
        );
        same!(world.status(&ground.key("a").await?).await?, "dispatched");
        // Said again, nothing changes.
        world.pass(1);
        let due = ground.due().await?;
        same!(ground.flows.open(new, "{}", &[]).await?, Stored::Stored);
        same!(
            ground
                .flows
                .add(new, &[ground.job("0", "a", "osis")?])
                .await?,
            Stored::Stored
        );
        same!(ground.flows.seal(new, None, &[]).await?, Stored::Stored);
        same!(
            (ground.flows.names(ground.id).await?, ground.due().await?),
            (names, due)
        );
        same!(ground.flows.list(0, 10).await?, vec![ground.id]);
        let queue = ground.flows.keys().flow_queue();
        same!(world.list(&queue).await?.len(), 1);
        Ok(())
    })
    .await
}

async fn a_number_that_another_flow_has_is_refused(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let other = NewFlow {
            mark: "other",
            ..ground.new_flow()
        };
        same!(ground.flows.open(other, "{}", &[]).await?, Stored::Taken);
        let job = ground.job("9", "z", "osis")?;
        same!(ground.flows.add(other, &[job]).await?, Stored::Taken);
        same!(ground.flows.seal(other, None, &[]).await?, Stored::Taken);
        same!(ground.flows.names(ground.id).await?.len(), 3);
        Ok(())
    })
    .await
}

async fn numbers_of_other_jobs_are_stepped_over(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let taken = format!("{}job:12:1", ground.flows.keys().prefix());
        world
            .raw::<()>(&["HSET", &taken, "status", "finished"])
            .await?;
        let new = ground.new_flow();
        same!(ground.flows.open(new, "{}", &[]).await?, Stored::Stored);
        let jobs = [ground.job("0", "a", "osis")?];
        // A call that is repeated stores nothing twice.
        for _ in 0..2 {
            same!(ground.flows.add(new, &jobs).await?, Stored::Stored);
        }
        same!(ground.flows.names(ground.id).await?["a"], "2");
        same!(world.record(&taken).await?.len(), 1);
        Ok(())
    })
    .await
}

async fn a_flow_that_was_never_sealed_comes_up_later(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let new = ground.new_flow();
        same!(ground.flows.open(new, "{}", &[]).await?, Stored::Stored);
        let idle = ground.flows.claim("t", LEASE).await?;
        same!(idle, FlowClaim::Idle(Some(Duration::from_secs(3600))));
        world.pass(3_600_000);
        same!(ground.lease().await?.id, ground.id);
        // A record that is gone is forgotten.
        ground.flows.forget(ground.id).await?;
        let due = ground.flows.keys().flows_due();
        world.raw::<()>(&["ZADD", &due, "0", "33"]).await?;
        same!(ground.flows.claim("t", LEASE).await?, FlowClaim::Idle(None));
        Ok(())
    })
    .await
}

async fn a_flow_is_one_workers_until_its_lease_is_over(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let first = ground.lease().await?;
        let idle = ground.flows.claim("t", LEASE).await?;
        same!(idle, FlowClaim::Idle(Some(LEASE)));
        world.pass(LEASE_MS - 1);
        // A commit renews the lease.
        same!(
            ground.flows.commit(&first, &Moves::default()).await?,
            StepDone::Done
        );
        world.pass(LEASE_MS - 1);
        same!(
            ground.flows.claim("t", LEASE).await?,
            FlowClaim::Idle(Some(Duration::from_millis(1)))
        );
        world.pass(1);
        let second = ground.lease().await?;
        same!(ground.rest(&first).await?, StepDone::Stale);
        same!(ground.rest(&second).await?, StepDone::Done);
        same!(ground.due().await?, Some(world.now() + 5_000));
        Ok(())
    })
    .await
}

async fn a_commit_with_another_token_changes_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let other = FlowLease {
            token: "another".to_owned(),
            ..lease
        };
        let key = ground.key("a").await?;
        let mut moves = Moves::default();
        moves.release("0", 0, &key, &world.queue(), Vec::new());
        moves.note(&[("status", "finished".to_owned())]);
        let before = ground.all(&key).await?;
        world.pass(1);
        same!(ground.flows.commit(&other, &moves).await?, StepDone::Stale);
        same!(ground.all(&key).await?, before);
        Ok(())
    })
    .await
}

async fn a_job_is_released_once_and_its_end_is_counted_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.release(&lease).await?;
        ground.release(&lease).await?;
        same!(
            (world.waiting().await?, ground.node("0").await?),
            (vec![key.clone()], "r 0".to_owned())
        );
        same!(world.field(&key, "mw_input").await?.as_deref(), Some("7"));
        check!(world.field(&key, "mw_waiting").await?.is_none());
        same!(ground.rest(&lease).await?, StepDone::Done);
        let claimed = world.take_one().await?;
        same!(
            ground.flow_field("status").await?.as_deref(),
            Some("started")
        );
        world.finish(&claimed, "42").await?;
        world.finish(&claimed, "42").await?;
        same!(ground.node("0").await?, "f 0 1");
        same!(ground.flow_field("mw_ends").await?.as_deref(), Some("1"));
        // Somebody is to look now.
        same!(ground.due().await?, Some(world.now()));
        // It is not released again.
        let lease = ground.lease().await?;
        ground.release(&lease).await?;
        same!(
            (world.waiting().await?.len(), world.status(&key).await?),
            (0, "finished".to_owned())
        );
        Ok(())
    })
    .await
}

async fn an_end_of_an_older_generation_counts_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        ground.release(&lease).await?;
        let claimed = world.take_one().await?;
        let nodes = ground.flows.keys().flow_part(ground.id, "nodes");
        world.raw::<()>(&["HSET", &nodes, "0", "r 1"]).await?;
        world.finish(&claimed, "42").await?;
        same!(
            (ground.node("0").await?, ground.flow_field("mw_ends").await?),
            ("r 1".to_owned(), None)
        );
        Ok(())
    })
    .await
}

async fn items_are_stored_once_under_new_numbers(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        // A plain client has chosen the next number.
        let taken = format!("{}job:12:4", ground.flows.keys().prefix());
        world
            .raw::<()>(&["HSET", &taken, "status", "finished"])
            .await?;
        let key = ground.key("b").await?;
        let mut moves = Moves::default();
        moves.expand("1", 0, 2, &key);
        for item in 0..2 {
            let mut job = ground.job(&format!("1.{item}"), &format!("b[{item}]"), "osis")?;
            job.waits = false;
            moves.add(&ground.flows, ACTOR, &job);
        }
        for _ in 0..2 {
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        }
        same!(ground.node("1").await?, "g 0 2");
        same!(
            (ground.node("1.0").await?, ground.node("1.1").await?),
            ("r 0".to_owned(), "r 0".to_owned())
        );
        same!(
            world.waiting().await?,
            vec![ground.key("b[0]").await?, ground.key("b[1]").await?]
        );
        same!(
            ground.flow_field("jobs").await?.as_deref(),
            Some("[1,2,3,5,6]")
        );
        same!(world.status(&key).await?, "started");
        Ok(())
    })
    .await
}

async fn a_foreach_ends_with_the_results_of_its_items(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.key("a").await?;
        let items = || ("[1,null]".to_owned(), r#"{"1":"boom"}"#.to_owned());
        let mut moves = Moves::default();
        moves.finalize_items(
            "0",
            "w 0",
            ("e", 0),
            (&key, b"1 of 2 items failed"),
            items(),
        );
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        let record = world.record(&key).await?;
        same!(record["status"], "error");
        same!(record["error"], "1 of 2 items failed");
        same!(
            (
                record["mw_item_results"].clone(),
                record["mw_item_errors"].clone()
            ),
            items()
        );
        // A job that needs it gets both.
        let mut job = world.read(&ground.key("b").await?).await?;
        job.depends_on = vec![key];
        let inputs = world.broker.inputs(&job).await?;
        same!(inputs[0].output.as_deref(), Some(&b"[1,null]"[..]));
        same!(inputs[0].errors.get(&1).map(String::as_str), Some("boom"));
        Ok(())
    })
    .await
}

async fn a_place_ends_without_a_run(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let (a, b) = (ground.key("a").await?, ground.key("b").await?);
        let mut moves = Moves::default();
        moves.finalize("0", "w 0", ("e", 0), (&a, "error", b"no such name"));
        moves.finalize("1", "w 0", ("s", 0), (&b, "finished", b"{}"));
        moves.finalize("2", "r 0", ("s", 0), ("", "finished", b"{}"));
        for _ in 0..2 {
            same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        }
        same!(
            (ground.node("0").await?, ground.node("1").await?),
            ("e 0 1".to_owned(), "s 0 2".to_owned())
        );
        same!(ground.node("2").await?, "w 0");
        let record = world.record(&a).await?;
        same!(
            (record["status"].as_str(), record["error"].as_str()),
            ("error", "no such name")
        );
        let record = world.record(&b).await?;
        same!(
            (record["status"].as_str(), record["mw_outcome"].as_str()),
            ("finished", "skipped")
        );
        Ok(())
    })
    .await
}

async fn jobs_are_kept_until_their_flow_has_ended(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        let key = ground.release(&lease).await?;
        let claimed = world.take_one().await?;
        world.finish(&claimed, "42").await?;
        same!(ground.kept(&key).await?, None);
        let mut moves = Moves::default();
        moves.note(&[("status", "finished".to_owned())]);
        moves.keep(std::slice::from_ref(&key));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(ground.kept(&key).await?, Some(world.now()));
        // A record that has ended stays as it is.
        let mut moves = Moves::default();
        moves.note(&[("status", "error".to_owned())]);
        let dirty = ground.flow_field("mw_dirty").await?.unwrap_or_default();
        moves.rest(&dirty, None);
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(
            (
                ground.flow_field("status").await?.as_deref(),
                ground.due().await?
            ),
            (Some("finished"), None)
        );
        let record = ground.flows.keys().flow(ground.id);
        check!(world.raw::<i64>(&["PTTL", &record]).await? > 0);
        Ok(())
    })
    .await
}

async fn a_step_rests_only_if_it_has_seen_all(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        ground.release(&lease).await?;
        let claimed = world.take_one().await?;
        let mut moves = Moves::default();
        let dirty = ground.flow_field("mw_dirty").await?.unwrap_or_default();
        moves.rest(&dirty, None);
        world.finish(&claimed, "42").await?;
        // The lease is its own all the while.
        same!(ground.due().await?, Some(world.now() + LEASE_MS));
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Again);
        same!(ground.due().await?, Some(world.now() + LEASE_MS));
        Ok(())
    })
    .await
}

async fn a_request_to_stop_is_noted_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let lease = ground.lease().await?;
        same!(ground.rest(&lease).await?, StepDone::Done);
        same!(ground.flows.stop(ground.id, true).await?, Stopped::Stopping);
        same!(
            ground.flow_field("mw_stop").await?.as_deref(),
            Some("cancelled")
        );
        same!(ground.flow_field("mw_keep").await?.as_deref(), Some("1"));
        let record = ground.flows.keys().flow(ground.id);
        same!(ground.audited().await?, ["cancel", &record]);
        same!(ground.due().await?, Some(world.now()));
        let dirty = ground.flow_field("mw_dirty").await?;
        same!(
            ground.flows.stop(ground.id, false).await?,
            Stopped::Stopping
        );
        same!(ground.flow_field("mw_dirty").await?, dirty);
        same!(ground.flows.stop(FlowId(9), false).await?, Stopped::Missing);
        world
            .raw::<()>(&["HSET", &record, "status", "finished"])
            .await?;
        same!(ground.flows.stop(ground.id, false).await?, Stopped::Ended);
        Ok(())
    })
    .await
}
