//! copy_counters: the counters of queues at each hour, and the jobs between.

use meshwork_broker::{Broker, KnownQueues};
use meshwork_model::outcome::FailureKind;
use meshwork_model::queue::history::{Counters, HOUR_MS, MAX_HISTORY};
use meshwork_model::route::Priority;

use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    three_hours_are_exact_with_another_leader,
    an_hour_is_copied_once,
    lists_of_all_priorities_are_added,
    an_old_store_begins_with_what_it_has,
    counters_that_begin_again_are_a_gap,
    three_days_are_kept,
    a_list_without_counters_is_forgotten,
    the_number_of_histories_is_bounded,
    a_call_copies_a_bounded_number,
    foreign_jobs_are_counted,
    other_keys_have_no_history,
    keys_of_another_type_end_no_call,
];

/// Begin of an hour after [`START`].
const HOUR: u64 = (START / HOUR_MS + 1) * HOUR_MS;

/// Lets histories be complete before there is a queue.
async fn complete(world: &World) -> Outcome {
    world.at(HOUR);
    world.broker.copy_counters(&[], true).await?;
    Ok(())
}

async fn copy(broker: &Broker, lists: &[String]) -> Got<usize> {
    Ok(broker.copy_counters(lists, false).await?.lists)
}

/// Returns the hours of the queue of [`World::job`], from [`HOUR`] on, with what was counted.
async fn hours(world: &World) -> Got<Vec<(u64, Option<Counters>)>> {
    let spans = world.broker.queue_history(&world.queue()).await?;
    let hour = |ms: u64| (ms - HOUR) / HOUR_MS;
    Ok(spans
        .iter()
        .map(|span| (hour(span.from_ms), span.counters))
        .collect())
}

async fn finished(world: &World, prefix: &str, count: usize) -> Outcome {
    for at in 0..count {
        let claimed = world.started(&format!("{prefix}{at}")).await?;
        world.pass(10);
        world.finish(&claimed, "42").await?;
    }
    Ok(())
}

fn counted(finished: u64, failed: u64) -> Option<Counters> {
    Some(Counters {
        stored: finished + failed,
        finished,
        failed,
        retried: 0,
        run_ms: 10 * finished,
    })
}

async fn three_hours_are_exact_with_another_leader(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 3).await?;
    copy(&world.broker, &queue).await?;
    let failing = world.started("bad").await?;
    world.fail(&failing, FailureKind::Permanent).await?;
    for hour in 1..=3_u64 {
        world.at(HOUR + hour * HOUR_MS);
        // A leader that knows nothing goes on after the other one.
        let next = world.broker_over(world.conn().clone());
        for broker in [&world.broker, &next] {
            copy(broker, &[]).await?;
            broker.record_history(&mut KnownQueues::default()).await?;
        }
        finished(world, &format!("h{hour}-"), hour as usize).await?;
    }
    let should: Vec<_> = [(3, 1), (1, 0), (2, 0), (3, 0)]
        .into_iter()
        .map(|(a, b)| counted(a, b))
        .collect();
    same!(hours(world).await?, (0..).zip(should).collect::<Vec<_>>());
    Ok(())
}

async fn an_hour_is_copied_once(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 1).await?;
    same!(copy(&world.broker, &queue).await?, 0);
    let last = HOUR + HOUR_MS - 1;
    world.at(last);
    let copied = world.broker.copy_counters(&queue, false).await?;
    same!(
        (copied.lists, copied.more, copied.next_hour.as_millis()),
        (0, false, 1)
    );
    world.at(last + 1);
    let copied = world.broker.copy_counters(&queue, false).await?;
    same!(
        (
            copied.lists,
            copied.next_hour.as_millis() as u64,
            copied.all_known
        ),
        (1, HOUR_MS, true)
    );
    finished(world, "b", 1).await?;
    same!(copy(&world.broker, &queue).await?, 0);
    same!(
        hours(world).await?,
        [(0, counted(1, 0)), (1, counted(1, 0))]
    );
    Ok(())
}

async fn lists_of_all_priorities_are_added(world: &World) -> Outcome {
    complete(world).await?;
    let high = format!("{}:prio:0", world.queue());
    let mut job = world.job("high")?;
    job.route.priority = Priority::High;
    world.put_jobs(&[job, world.job("a")?]).await?;
    same!(copy(&world.broker, &[world.queue(), high]).await?, 0);
    let hours = hours(world).await?;
    same!(hours.len(), 1);
    same!(hours[0].1.map(|it| it.stored), Some(2));
    Ok(())
}

/// Jobs from before the histories are of no hour.
async fn an_old_store_begins_with_what_it_has(world: &World) -> Outcome {
    world.at(HOUR);
    finished(world, "a", 3).await?;
    let copied = world
        .broker
        .record_history(&mut KnownQueues::default())
        .await?;
    check!(copied.all_known);
    finished(world, "b", 2).await?;
    same!(hours(world).await?, [(0, counted(2, 0))]);
    Ok(())
}

async fn counters_that_begin_again_are_a_gap(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 3).await?;
    copy(&world.broker, &queue).await?;
    world.at(HOUR + HOUR_MS);
    copy(&world.broker, &queue).await?;
    world
        .raw::<()>(&["DEL", &world.keys().queue_stats_key(&world.queue())])
        .await?;
    finished(world, "b", 1).await?;
    same!(hours(world).await?, [(0, counted(3, 0)), (1, None)]);
    world.at(HOUR + 2 * HOUR_MS);
    copy(&world.broker, &queue).await?;
    finished(world, "c", 2).await?;
    same!(
        hours(world).await?,
        [(0, counted(3, 0)), (1, None), (2, counted(2, 0))]
    );
    Ok(())
}

async fn three_days_are_kept(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 1).await?;
    for hour in 0..MAX_HISTORY + 3 {
        world.at(HOUR + hour * HOUR_MS);
        copy(&world.broker, &queue).await?;
    }
    let hours = hours(world).await?;
    same!((hours.len() as u64, hours[0].0), (MAX_HISTORY, 3));
    Ok(())
}

async fn a_list_without_counters_is_forgotten(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 1).await?;
    copy(&world.broker, &queue).await?;
    world
        .raw::<()>(&["DEL", &world.keys().queue_stats_key(&world.queue())])
        .await?;
    let history = world.keys().history_key(&world.queue());
    for (hour, is_there) in [(1, true), (MAX_HISTORY - 1, true), (MAX_HISTORY, false)] {
        world.at(HOUR + hour * HOUR_MS);
        same!(copy(&world.broker, &[]).await?, 1);
        same!(world.raw::<bool>(&["EXISTS", &history]).await?, is_there);
    }
    world.pass(HOUR_MS);
    same!(copy(&world.broker, &[]).await?, 0);
    Ok(())
}

/// Gives lists counters.
async fn with_counters(world: &World, count: usize) -> Got<Vec<String>> {
    let lists: Vec<_> = (0..count)
        .map(|at| world.queue_of(&format!("t{at:04}")))
        .collect();
    for list in &lists {
        world
            .raw::<()>(&["HSET", &world.keys().queue_stats_key(list), "created", "1"])
            .await?;
    }
    Ok(lists)
}

async fn the_number_of_histories_is_bounded(world: &World) -> Outcome {
    complete(world).await?;
    let lists = with_counters(world, 1001).await?;
    copy(&world.broker, &lists[..1000]).await?;
    copy(&world.broker, &lists[1000..]).await?;
    let last = |at: usize| world.keys().history_key(&lists[at]);
    same!(world.raw::<u64>(&["EXISTS", &last(999)]).await?, 1);
    same!(world.raw::<u64>(&["EXISTS", &last(1000)]).await?, 0);
    Ok(())
}

async fn a_call_copies_a_bounded_number(world: &World) -> Outcome {
    complete(world).await?;
    let lists = with_counters(world, 250).await?;
    copy(&world.broker, &lists).await?;
    world.at(HOUR + HOUR_MS);
    let first = world.broker.copy_counters(&[], false).await?;
    same!((first.lists, first.more), (200, true));
    let second = world.broker.copy_counters(&[], false).await?;
    same!((second.lists, second.more), (50, false));
    Ok(())
}

async fn foreign_jobs_are_counted(world: &World) -> Outcome {
    complete(world).await?;
    let queue = world.queue();
    let stats = world.keys().queue_stats_key(&queue);
    world
        .raw::<()>(&["HSET", &stats, "created:foreign", "2"])
        .await?;
    copy(&world.broker, &[queue]).await?;
    world.at(HOUR + HOUR_MS);
    copy(&world.broker, &[]).await?;
    let hours = hours(world).await?;
    same!(hours[0].1.map(|it| it.stored), Some(2));
    Ok(())
}

async fn other_keys_have_no_history(world: &World) -> Outcome {
    complete(world).await?;
    let prefix = world.keys().work_prefix();
    let listed = with_counters(world, 1).await?.remove(0);
    let before = world.all().await?;
    // It ends as the name of a list that has counters does.
    let other = format!("x{}", &listed[1..]);
    let lists = [
        prefix.clone(),
        world.queue(),
        other,
        "elsewhere".to_owned(),
        String::new(),
    ];
    same!(copy(&world.broker, &lists).await?, 0);
    world.unchanged(&before).await
}

async fn keys_of_another_type_end_no_call(world: &World) -> Outcome {
    complete(world).await?;
    let queue = [world.queue()];
    finished(world, "a", 1).await?;
    copy(&world.broker, &queue).await?;
    let stats = world.keys().queue_stats_key(&queue[0]);
    for (hour, key) in [(1, world.keys().history_key(&queue[0])), (2, stats)] {
        world.raw::<()>(&["SET", &key, "x"]).await?;
        world.at(HOUR + hour * HOUR_MS);
        same!(copy(&world.broker, &queue).await?, 1);
    }
    same!(hours(world).await?, []);
    Ok(())
}
