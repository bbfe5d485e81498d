//! Schedules of flows, and deployed flows: each slot stores one flow, and a deployment is one step.

use meshwork_broker::flow::{Deployed, Deployment, Moves, StepDone};
use meshwork_broker::{Put, ScheduleRun};
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::FlowId;
use meshwork_model::name::{JobId, ScheduleName, ScriptType};
use meshwork_model::route::Route;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;

use crate::cases::harness::world::Got;
use crate::cases::of_contexts::flow_ground::{ACTOR, Ground};
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::schedules::put_schedule::SLOT;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_slot_stores_one_flow,
    slots_of_the_past_are_caught_up,
    a_number_in_use_is_skipped,
    a_slot_is_skipped_while_the_last_flow_runs,
    a_slot_stops_the_last_flow,
    a_slot_runs_beside_the_last_flow,
    a_flow_is_started_by_hand_once,
    a_schedule_without_a_plan_is_tried_again,
    a_changed_schedule_starts_nothing,
    a_deployment_replaces_flow_and_schedule,
    a_deployment_leaves_other_schedules,
    a_deployment_over_a_change_is_none,
    an_undeployed_flow_leaves_nothing,
];

const PLAN: &str = r#"{"name":"f","jobs":[]}"#;

fn name() -> Got<ScheduleName> {
    Ok("f".parse()?)
}

/// A schedule of a flow every 10 s.
fn every(overlap: Overlap) -> Got<Schedule> {
    let timing = Timing::new("@every 10s".parse()?);
    let route = Route::to(ScriptType::FLOW.parse()?);
    let mut template = NewJob::new("f".parse()?, route, "f");
    template.caller_id = ACTOR.to_string();
    let mut schedule = Schedule::new(name()?, timing, template);
    schedule.overlap = overlap;
    Ok(schedule)
}

/// A context with the schedule, whose first slot is due.
async fn due(world: &World, overlap: Overlap) -> Got<Ground<'_>> {
    let mut ground = Ground::new(world)?;
    ground.id = FlowId(1);
    let schedule = every(overlap)?;
    let put = ground.flows.put_schedule(&schedule, PLAN, false);
    same!(put.await?, Put::Added);
    world.at(SLOT);
    Ok(ground)
}

async fn fired(ground: &Ground<'_>) -> Got<(usize, usize)> {
    let fired = ground.world.broker.fire_schedules().await?;
    Ok((fired.stored, fired.skipped))
}

/// A field of the schedule.
async fn field(ground: &Ground<'_>, field: &str) -> Got<Option<String>> {
    let key = ground.world.keys().schedule(&name()?);
    ground.world.raw(&["HGET", &key, field]).await
}

/// Ends the flow of a slot.
async fn end(ground: &Ground<'_>) -> Outcome {
    let lease = ground.lease().await?;
    let mut moves = Moves::default();
    moves.note(&[("status", "finished".to_owned())]);
    let dirty = ground.flow_field("mw_dirty").await?.unwrap_or_default();
    moves.rest(&dirty, None);
    same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
    Ok(())
}

async fn a_slot_stores_one_flow(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        world.at(SLOT - 1);
        same!(fired(&ground).await?, (0, 0));
        world.at(SLOT);
        let fired_once = world.broker.fire_schedules().await?;
        same!((fired_once.due, fired_once.stored), (1, 1));
        same!(fired_once.next.map(|next| next.as_millis()), Some(10_000));
        same!(fired(&ground).await?, (0, 0));
        let record = ground.flows.record(ground.id).await?;
        let text = |field: &str| record.get(field).map_or("", String::as_str);
        same!(
            [text("id"), text("caller_id"), text("mw_name")],
            ["1", "12", "f"]
        );
        // It is seen before a worker has stored its jobs.
        same!([text("mw_schedule"), text("status")], ["f", "dispatched"]);
        same!(ground.flows.list(0, 10).await?, vec![ground.id]);
        same!(text("mw_mark"), format!("slot {SLOT}"));
        check!(text("env_vars").contains("MESHWORK_SLOT"));
        let plan = ground.flows.plan(ground.id).await?.unwrap_or_default();
        check!(plan.contains("MESHWORK_SLOT"));
        same!(ground.due().await?, Some(SLOT));
        same!(
            world.list(&ground.flows.keys().flow_queue()).await?.len(),
            1
        );
        same!(field(&ground, "runs").await?.as_deref(), Some("1"));
        same!(field(&ground, "last").await?.as_deref(), Some("1"));
        same!(field(&ground, "position").await?, Some(SLOT.to_string()));
        end(&ground).await?;
        world.pass(10_000);
        same!(fired(&ground).await?, (1, 0));
        check!(!ground.flows.record(FlowId(2)).await?.is_empty());
        Ok(())
    })
    .await
}

async fn slots_of_the_past_are_caught_up(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let mut schedule = every(Overlap::Allow)?;
        schedule.catch_up = CatchUp::All(10);
        ground.flows.put_schedule(&schedule, PLAN, false).await?;
        world.at(SLOT + 35_000);
        same!(fired(&ground).await?, (4, 0));
        same!(fired(&ground).await?, (0, 0));
        let marks = async |id| {
            let record = ground.flows.record(FlowId(id)).await?;
            Ok::<_, Failure>(record.get("mw_mark").cloned())
        };
        for number in 0..4 {
            let mark = format!("slot {}", SLOT + u64::from(number) * 10_000);
            same!(marks(number + 1).await?, Some(mark));
        }
        Ok(())
    })
    .await
}

async fn a_number_in_use_is_skipped(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        let other = ground.flows.keys().flow(FlowId(1));
        world
            .raw::<()>(&["HSET", &other, "status", "started"])
            .await?;
        same!(fired(&ground).await?, (1, 0));
        same!(ground.flows.record(FlowId(1)).await?.len(), 1);
        same!(field(&ground, "last").await?.as_deref(), Some("2"));
        Ok(())
    })
    .await
}

async fn a_slot_is_skipped_while_the_last_flow_runs(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        same!(fired(&ground).await?, (1, 0));
        // Its jobs are not stored yet.
        world.pass(10_000);
        same!(fired(&ground).await?, (0, 1));
        let flow = ground.flows.keys().flow(FlowId(1));
        world
            .raw::<()>(&["HSET", &flow, "status", "started"])
            .await?;
        world.pass(10_000);
        same!(fired(&ground).await?, (0, 1));
        same!(field(&ground, "skipped").await?.as_deref(), Some("2"));
        check!(ground.flow_field("mw_stop").await?.is_none());
        end(&ground).await?;
        world.pass(10_000);
        same!(fired(&ground).await?, (1, 0));
        Ok(())
    })
    .await
}

async fn a_slot_stops_the_last_flow(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Replace).await?;
        same!(fired(&ground).await?, (1, 0));
        let flow = ground.flows.keys().flow(FlowId(1));
        world
            .raw::<()>(&["HSET", &flow, "status", "started"])
            .await?;
        let due = ground.flows.keys().flows_due();
        world
            .raw::<()>(&["ZADD", &due, &(SLOT * 2).to_string(), "1"])
            .await?;
        world.pass(10_000);
        same!(fired(&ground).await?, (1, 0));
        same!(
            ground.flow_field("mw_stop").await?.as_deref(),
            Some("cancelled")
        );
        same!(ground.due().await?, Some(SLOT + 10_000));
        same!(ground.audited().await?, ["cancel".to_owned(), flow]);
        let second = ground.flows.record(FlowId(2)).await?;
        same!(second.get("mw_after").map(String::as_str), Some("1"));
        // The flow of a slot that has ended is not stopped.
        let second = ground.flows.keys().flow(FlowId(2));
        world
            .raw::<()>(&["HSET", &second, "status", "error"])
            .await?;
        world.pass(10_000);
        same!(fired(&ground).await?, (1, 0));
        check!(
            !ground
                .flows
                .record(FlowId(2))
                .await?
                .contains_key("mw_stop")
        );
        check!(
            !ground
                .flows
                .record(FlowId(3))
                .await?
                .contains_key("mw_after")
        );
        Ok(())
    })
    .await
}

async fn a_slot_runs_beside_the_last_flow(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Allow).await?;
        same!(fired(&ground).await?, (1, 0));
        world.pass(10_000);
        same!(fired(&ground).await?, (1, 0));
        check!(ground.flow_field("mw_stop").await?.is_none());
        check!(
            !ground
                .flows
                .record(FlowId(2))
                .await?
                .contains_key("mw_after")
        );
        Ok(())
    })
    .await
}

async fn a_flow_is_started_by_hand_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        world.at(SLOT - 5_000);
        let there = world.broker.read_schedule(&name()?).await?;
        let there = there.ok_or_else(|| Failure::new("no schedule"))?;
        let schedule = every(Overlap::Skip)?;
        let run = async |mark| world.broker.run_schedule(&there, &schedule, mark).await;
        let first = Some(ScheduleRun::Stored(JobId::foreign("1".to_owned())));
        for _ in 0..2 {
            same!(run("by hand").await?, first);
        }
        same!(field(&ground, "runs").await?.as_deref(), Some("1"));
        same!(run("again").await?, Some(ScheduleRun::Skipped));
        let after = world.broker.read_schedule(&name()?).await?;
        same!(after.and_then(|it| it.next), Some(SLOT));
        // The position that was read is another one.
        end(&ground).await?;
        world.at(SLOT);
        same!(fired(&ground).await?, (1, 0));
        same!(run("late").await?, None);
        Ok(())
    })
    .await
}

async fn a_schedule_without_a_plan_is_tried_again(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        let key = world.keys().schedule(&name()?);
        world.raw::<()>(&["HSET", &key, "plan", "x"]).await?;
        let fired_once = world.broker.fire_schedules().await?;
        same!((fired_once.stored, fired_once.troubles.len()), (0, 1));
        check!(fired_once.troubles[0].1.contains("its plan cannot be read"));
        same!(world.broker.fire_schedules().await?.due, 0);
        world.raw::<()>(&["HSET", &key, "plan", PLAN]).await?;
        world.pass(5_000);
        same!(fired(&ground).await?, (1, 0));
        same!(field(&ground, "trouble").await?, None);
        let mark = ground.flow_field("mw_mark").await?;
        same!(mark, Some(format!("slot {SLOT}")));
        Ok(())
    })
    .await
}

async fn a_changed_schedule_starts_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = due(world, Overlap::Skip).await?;
        world.at(SLOT - 5_000);
        let there = world.broker.read_schedule(&name()?).await?;
        let there = there.ok_or_else(|| Failure::new("no schedule"))?;
        let schedule = every(Overlap::Skip)?;
        // In the same millisecond, so that the position is the same.
        world.at(there.position.unwrap_or_default());
        let put = ground.flows.put_schedule(&schedule, PLAN, true).await?;
        same!(put, Put::Replaced);
        same!(
            world.broker.run_schedule(&there, &schedule, "m").await?,
            None
        );
        same!(ground.flows.record(ground.id).await?.len(), 0);
        Ok(())
    })
    .await
}

async fn a_deployment_replaces_flow_and_schedule(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let (flows, name) = (&ground.flows, name()?);
        let schedule = every(Overlap::Skip)?;
        let with = Some((&schedule, PLAN));
        same!(
            flows.deploy(&name, "1", ACTOR, with).await?,
            Deployed::Stored(1)
        );
        let deployed = ["deploy".to_owned(), flows.keys().deployed_flow(&name)];
        same!(ground.audited().await?, deployed);
        same!(flows.deployed_plan(&name).await?.as_deref(), Some("1"));
        same!(field(&ground, "plan").await?.as_deref(), Some(PLAN));
        world.at(SLOT);
        same!(fired(&ground).await?, (1, 0));
        world.pass(1);
        let again = flows.deploy(&name, "2", ACTOR, with).await?;
        same!(again, Deployed::Stored(2));
        same!(flows.deployed_plan(&name).await?.as_deref(), Some("2"));
        let expected = Deployment {
            name: name.clone(),
            by: Some(ACTOR),
            at: SLOT + 1,
            deployments: 2,
        };
        same!(flows.deployments().await?, vec![expected]);
        // Without a schedule, that of the deployment before is gone.
        let without = flows.deploy(&name, "3", ACTOR, None).await?;
        same!(without, Deployed::Stored(3));
        check!(world.broker.read_schedule(&name).await?.is_none());
        world.pass(20_000);
        same!(world.broker.fire_schedules().await?.due, 0);
        Ok(())
    })
    .await
}

async fn a_deployment_leaves_other_schedules(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let (flows, name) = (&ground.flows, name()?);
        let schedule = every(Overlap::Skip)?;
        flows.put_schedule(&schedule, PLAN, false).await?;
        let taken = flows
            .deploy(&name, "1", ACTOR, Some((&schedule, "2")))
            .await?;
        same!(taken, Deployed::NameTaken);
        same!(flows.deployed_plan(&name).await?, None);
        same!(
            flows.deploy(&name, "1", ACTOR, None).await?,
            Deployed::Stored(1)
        );
        same!(field(&ground, "plan").await?.as_deref(), Some(PLAN));
        // A schedule that somebody has replaced belongs to no deployment.
        same!(flows.undeploy(&name, ACTOR).await?, Deployed::Stored(1));
        check!(world.broker.remove_schedule(&name).await?);
        flows
            .deploy(&name, "1", ACTOR, Some((&schedule, "2")))
            .await?;
        flows.put_schedule(&schedule, PLAN, true).await?;
        flows.undeploy(&name, ACTOR).await?;
        same!(field(&ground, "plan").await?.as_deref(), Some(PLAN));
        Ok(())
    })
    .await
}

async fn a_deployment_over_a_change_is_none(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let (flows, name) = (&ground.flows, name()?);
        let schedule = every(Overlap::Skip)?;
        let with = Some((&schedule, PLAN));
        flows.deploy(&name, "1", ACTOR, with).await?;
        let there = world.broker.read_schedule(&name).await?;
        let now = world.now();
        let late = async |plan| {
            let flow = (&name, plan, ACTOR);
            flows.try_deploy(flow, with, there.as_ref(), now).await
        };
        // A slot has moved the position.
        world.at(SLOT);
        same!(fired(&ground).await?, (1, 0));
        same!(late("2").await?, None);
        // Another deployment has the same position.
        let there = world.broker.read_schedule(&name).await?;
        flows.deploy(&name, "3", ACTOR, with).await?;
        let flow = (&name, "2", ACTOR);
        let late = flows.try_deploy(flow, with, there.as_ref(), SLOT);
        same!(late.await?, None);
        same!(flows.deployed_plan(&name).await?.as_deref(), Some("3"));
        Ok(())
    })
    .await
}

async fn an_undeployed_flow_leaves_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = Ground::new(world)?;
        let (flows, name) = (&ground.flows, name()?);
        same!(flows.undeploy(&name, ACTOR).await?, Deployed::Missing);
        let schedule = every(Overlap::Skip)?;
        flows
            .deploy(&name, "1", ACTOR, Some((&schedule, PLAN)))
            .await?;
        same!(flows.undeploy(&name, ACTOR).await?, Deployed::Stored(1));
        let deployed = ["undeploy".to_owned(), flows.keys().deployed_flow(&name)];
        same!(ground.audited().await?, deployed);
        same!(flows.deployed_plan(&name).await?, None);
        same!(flows.deployments().await?, vec![]);
        let listed = flows.keys().deployed_flows();
        same!(world.raw::<u32>(&["ZCARD", &listed]).await?, 0);
        check!(world.broker.read_schedule(&name).await?.is_none());
        Ok(())
    })
    .await
}
