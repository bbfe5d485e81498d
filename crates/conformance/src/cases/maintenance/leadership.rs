//! control: the choice of the worker that runs the maintenance, and other information for workers.

use std::time::Duration;

use meshwork_broker::LeaderTask;
use meshwork_model::migration::Migration;

use crate::cases::harness::legacy_worker::{migrate, old, set};
use crate::cases::harness::world::START;
use crate::cases::maintenance::control::{TURN, ask};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    each_period_has_one_turn,
    a_turn_survives_jumps_of_the_clock,
    a_turn_that_is_no_number_is_given_anew,
    the_next_delayed_job_is_told,
    migrations_are_told_by_type,
    the_leader_learns_what_there_is_to_do,
    a_task_is_named_when_it_is_due,
    a_key_of_another_kind_is_left_to_its_task,
];

/// The first of ten workers that asks runs it.
async fn each_period_has_one_turn(world: &World) -> Outcome {
    let workers: Vec<_> = (0..10).map(|n| format!("w{n}")).collect();
    for _ in 0..5 {
        for quarter in 0..4 {
            let asks = workers.iter().map(|worker| ask(world, worker, &[]));
            let responses = futures_util::future::try_join_all(asks).await?;
            let turns = responses.iter().filter(|control| control.turn).count();
            same!(turns, usize::from(quarter == 0));
            world.pass(TURN / 4);
        }
    }
    Ok(())
}

/// A jump ahead ends the period; a jump back by years does not extend it by years.
async fn a_turn_survives_jumps_of_the_clock(world: &World) -> Outcome {
    check!(ask(world, "w1", &[]).await?.turn);
    world.at(START + 1_000_000_000);
    check!(ask(world, "w1", &[]).await?.turn);
    check!(!ask(world, "w2", &[]).await?.turn);
    world.at(START);
    check!(!ask(world, "w2", &[]).await?.turn);
    // The store has forgotten the latest time.
    let clock = world.keys().clock();
    world.raw::<()>(&["DEL", &clock]).await?;
    check!(ask(world, "w2", &[]).await?.turn);
    check!(!ask(world, "w1", &[]).await?.turn);
    world.at(START - TURN);
    check!(!ask(world, "w1", &[]).await?.turn);
    world.at(START + TURN);
    check!(ask(world, "w1", &[]).await?.turn);
    Ok(())
}

/// The writer of the value does not matter.
async fn a_turn_that_is_no_number_is_given_anew(world: &World) -> Outcome {
    for odd in ["", "soon", "nan", "-1"] {
        world
            .raw::<()>(&["SET", &world.named("LEADER")?, odd])
            .await?;
        check!(ask(world, "w1", &[]).await?.turn);
        check!(!ask(world, "w2", &[]).await?.turn);
    }
    Ok(())
}

/// The time is given if there is a delayed job.
async fn the_next_delayed_job_is_told(world: &World) -> Outcome {
    same!(ask(world, "w1", &[]).await?.due, None);
    let delayed = world.keys().delayed();
    let due = (START + 3_000).to_string();
    let later = (START + 9_000).to_string();
    world
        .raw::<()>(&["ZADD", &delayed, &later, "j2", &due, "j1"])
        .await?;
    same!(
        ask(world, "w1", &[]).await?.due,
        Some(Duration::from_secs(3))
    );
    world.pass(4_000);
    same!(ask(world, "w1", &[]).await?.due, Some(Duration::ZERO));
    Ok(())
}

/// They are in the order of the types.
async fn migrations_are_told_by_type(world: &World) -> Outcome {
    let responses = async || {
        let migrations = ask(world, "w1", &[]).await?.migrations.into_iter();
        let list = |m: Option<Migration>| m.map(|m| m.list.as_str().to_owned());
        Ok::<_, Failure>(migrations.map(list).collect::<Vec<_>>())
    };
    same!(responses().await?, [None, None]);
    set(world, "sal", "canonical x 5").await?;
    same!(responses().await?, [None, Some("x".to_owned())]);
    migrate(world, "dual").await?;
    same!(responses().await?, [Some(old(world)), Some("x".to_owned())]);
    set(world, "osis", "soon").await?;
    same!(responses().await?, [None, Some("x".to_owned())]);
    Ok(())
}

/// Each cause names its task, and only to the leader. A worker of two types is registered twice.
async fn the_leader_learns_what_there_is_to_do(world: &World) -> Outcome {
    let now = START.to_string();
    let (actors, settle) = (world.named("ACTORS")?, world.named("UNRESOLVED")?);
    let (watch, batches) = (world.named("WATCHED")?, world.named("BATCHES_OPEN")?);
    world
        .raw::<()>(&["ZADD", &actors, &now, "a1", &now, "a2"])
        .await?;
    let causes: [(&[&str], LeaderTask); 4] = [
        (&["ZADD", &actors, &now, "a3"], LeaderTask::ReclaimDead),
        (&["RPUSH", &settle, "j1"], LeaderTask::ResolveDependents),
        (&["ZADD", &watch, &now, "j1"], LeaderTask::CheckOrphans),
        (&["ZADD", &batches, &now, "b1"], LeaderTask::SweepBatches),
    ];
    same!(ask(world, "w1", &[]).await?.tasks, Vec::<LeaderTask>::new());
    for (at, (cause, _)) in causes.iter().enumerate() {
        world.raw::<()>(cause).await?;
        world.pass(TURN);
        let tasks = ask(world, "w1", &[]).await?.tasks;
        let names: Vec<_> = causes[..=at].iter().map(|(_, name)| *name).collect();
        same!(tasks, names);
        check!(ask(world, "w2", &[]).await?.tasks.is_empty());
    }
    Ok(())
}

async fn a_task_is_named_when_it_is_due(world: &World) -> Outcome {
    let due = (START + TURN).to_string();
    for set in ["WATCHED", "BATCHES_OPEN"] {
        let set = world.named(set)?;
        world.raw::<()>(&["ZADD", &set, &due, "x"]).await?;
    }
    check!(ask(world, "w1", &[]).await?.tasks.is_empty());
    world.pass(TURN);
    same!(
        ask(world, "w1", &[]).await?.tasks,
        [LeaderTask::CheckOrphans, LeaderTask::SweepBatches]
    );
    Ok(())
}

/// The poll goes on; the task reports the key.
async fn a_key_of_another_kind_is_left_to_its_task(world: &World) -> Outcome {
    for name in ["ACTORS", "WATCHED", "BATCHES_OPEN"] {
        let key = world.named(name)?;
        world.raw::<()>(&["SET", &key, "text"]).await?;
    }
    same!(
        ask(world, "w1", &[]).await?.tasks,
        [
            LeaderTask::ReclaimDead,
            LeaderTask::CheckOrphans,
            LeaderTask::SweepBatches
        ]
    );
    Ok(())
}
