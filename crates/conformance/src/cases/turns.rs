//! control: the choice of the worker that runs the maintenance, and other information for workers.

use std::time::Duration;

use meshwork_model::migration::Migration;

use super::control::{TURN, ask};
use super::old_side::{migrate, old, set};
use super::world::START;
use super::{Failure, Outcome, World, cases, check, same};

cases![
    each_period_has_one_turn,
    a_turn_survives_jumps_of_the_clock,
    a_turn_that_is_no_number_is_given_anew,
    the_next_delayed_job_is_told,
    migrations_are_told_by_type,
];

/// The first of ten workers that asks runs it.
async fn each_period_has_one_turn(world: &World) -> Outcome {
    let workers: Vec<_> = (0..10).map(|n| format!("w{n}")).collect();
    for _ in 0..5 {
        for quarter in 0..4 {
            let asks = workers.iter().map(|worker| ask(world, worker, &[]));
            let told = futures_util::future::try_join_all(asks).await?;
            let turns = told.iter().filter(|control| control.turn).count();
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
            .raw::<()>(&["SET", &world.named("TURN")?, odd])
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
    let told = async || {
        let migrations = ask(world, "w1", &[]).await?.migrations.into_iter();
        let list = |m: Option<Migration>| m.map(|m| m.list.as_str().to_owned());
        Ok::<_, Failure>(migrations.map(list).collect::<Vec<_>>())
    };
    same!(told().await?, [None, None]);
    set(world, "sal", "canonical x 5").await?;
    same!(told().await?, [None, Some("x".to_owned())]);
    migrate(world, "dual").await?;
    same!(told().await?, [Some(old(world)), Some("x".to_owned())]);
    set(world, "osis", "soon").await?;
    same!(told().await?, [None, Some("x".to_owned())]);
    Ok(())
}
