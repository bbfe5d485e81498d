//! Rates: limits for the number of jobs of a queue, or of a key, that start in a time.

use meshwork_model::route::Priority;

use crate::cases::harness::options::{
    LOOK_MS, claim, exchange, held, members, promote, put_keyed, set, taken,
};
use crate::cases::harness::world::{START, WORKER, ids};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_window_lets_so_many_start,
    a_window_begins_with_its_first_start,
    a_bucket_fills_again_bit_by_bit,
    a_bucket_holds_no_more_than_it_holds,
    a_clock_set_back_costs_little,
    what_is_not_started_is_not_counted,
    results_are_taken_whatever_the_rate,
    all_priorities_share_it,
    both_limits_hold,
    each_key_has_its_own,
    what_is_over_a_keys_rate_lets_others_pass,
    a_keys_jobs_come_back_in_order,
];

/// Window that is long enough for nothing to expire during a test, because the server's own time counts there.
const WINDOW: u64 = 600_000;

async fn fill(world: &World, n: usize) -> Outcome {
    let jobs: Result<Vec<_>, _> = (0..n).map(|n| world.job(&format!("j{n}"))).collect();
    world.put_jobs(&jobs?).await
}

async fn start(world: &World, want: usize) -> Result<usize, crate::cases::Failure> {
    Ok(taken(world, want).await?.len())
}

/// No more jobs start until the window is over, exact to the millisecond.
async fn a_window_lets_so_many_start(world: &World) -> Outcome {
    set(world, &format!("rate=window:2:{WINDOW}")).await?;
    fill(world, 9).await?;
    same!(start(world, 1).await?, 1);
    same!(start(world, 5).await?, 1);
    same!(held(world, 5).await?, Some(WINDOW));
    world.pass(WINDOW - 1);
    same!(held(world, 5).await?, Some(1));
    same!(start(world, 5).await?, 0);
    world.pass(1);
    same!(start(world, 5).await?, 2);
    Ok(())
}

/// It begins neither with the clock's units nor with the last start.
async fn a_window_begins_with_its_first_start(world: &World) -> Outcome {
    set(world, &format!("rate=window:2:{WINDOW}")).await?;
    fill(world, 9).await?;
    world.pass(17);
    same!(start(world, 1).await?, 1);
    world.pass(100);
    same!(start(world, 1).await?, 1);
    world.pass(WINDOW - 101);
    same!(start(world, 1).await?, 0);
    world.pass(1);
    same!(start(world, 1).await?, 1);
    world.pass(WINDOW - 1);
    same!(start(world, 5).await?, 1);
    Ok(())
}

/// The burst starts at once, then one job in each part of the time.
async fn a_bucket_fills_again_bit_by_bit(world: &World) -> Outcome {
    set(world, &format!("rate=bucket:2:{WINDOW}:3")).await?;
    fill(world, 9).await?;
    same!(start(world, 5).await?, 3);
    same!(held(world, 1).await?, Some(WINDOW / 2));
    world.pass(WINDOW / 2 - 1);
    same!(start(world, 5).await?, 0);
    same!(held(world, 1).await?, Some(1));
    world.pass(1);
    same!(start(world, 5).await?, 1);
    world.pass(WINDOW / 4);
    same!(start(world, 5).await?, 0);
    world.pass(WINDOW / 4 + WINDOW / 2);
    same!(start(world, 5).await?, 2);
    Ok(())
}

/// Idle time does not add to the burst. By default the burst is the number of starts in the time.
async fn a_bucket_holds_no_more_than_it_holds(world: &World) -> Outcome {
    set(world, &format!("rate=bucket:2:{WINDOW}")).await?;
    fill(world, 9).await?;
    world.pass(100 * WINDOW);
    same!(start(world, 9).await?, 2);
    world.pass(100 * WINDOW);
    same!(start(world, 9).await?, 2);
    Ok(())
}

/// A window begins again, and a bucket keeps its permits.
async fn a_clock_set_back_costs_little(world: &World) -> Outcome {
    fill(world, 9).await?;
    set(world, &format!("rate=window:2:{WINDOW}")).await?;
    same!(start(world, 5).await?, 2);
    world.at(START - 2 * WINDOW);
    same!(start(world, 5).await?, 2);
    same!(start(world, 5).await?, 0);
    world.at(START);
    let forget = format!("{}{}", world.named("RATES")?, world.queue());
    world.raw::<()>(&["DEL", &forget]).await?;
    set(world, &format!("rate=bucket:2:{WINDOW}")).await?;
    same!(start(world, 5).await?, 2);
    world.at(START - 2 * WINDOW);
    same!(start(world, 5).await?, 0);
    world.pass(WINDOW / 2);
    same!(start(world, 5).await?, 0);
    world.at(START + WINDOW / 2);
    same!(start(world, 5).await?, 1);
    Ok(())
}

/// Ids without jobs, and claims without jobs, do not count.
async fn what_is_not_started_is_not_counted(world: &World) -> Outcome {
    set(world, &format!("rate=window:2:{WINDOW}")).await?;
    same!(start(world, 5).await?, 0);
    for id in ["ghost", "nobody", "nothing"] {
        world.push(id).await?;
    }
    fill(world, 3).await?;
    let fetched = claim(world, 5).await?;
    same!((fetched.dropped, ids(&fetched.jobs)), (3, vec!["j0", "j1"]));
    Ok(())
}

/// The next jobs wait.
async fn results_are_taken_whatever_the_rate(world: &World) -> Outcome {
    set(world, &format!("rate=window:1:{WINDOW}")).await?;
    fill(world, 3).await?;
    let run = world.take_one().await?;
    let said = exchange(world, &[&run], 1).await?;
    same!(said.finished, [meshwork_broker::Completed::Finished]);
    check!(said.taken.jobs.is_empty());
    same!(said.taken.blocked.len(), 1);
    Ok(())
}

/// All priorities are one queue.
async fn all_priorities_share_it(world: &World) -> Outcome {
    set(world, &format!("rate=window:2:{WINDOW}")).await?;
    let lists = [format!("{}:prio:0", world.queue()), world.queue()];
    let mut high = world.job("h")?;
    high.route.priority = Priority::High;
    world.put_jobs(&[high]).await?;
    fill(world, 3).await?;
    let fetched = world.claim(WORKER, &lists, 5).await?;
    same!(ids(&fetched.jobs), ["h", "j0"]);
    same!(fetched.blocked.len(), 2);
    world.pass(WINDOW);
    same!(world.claim(WORKER, &lists, 5).await?.jobs.len(), 2);
    Ok(())
}

/// The narrower limit counts. A worker does not soon try again for a limit that is free.
async fn both_limits_hold(world: &World) -> Outcome {
    set(world, &format!("concurrency=1 rate=bucket:2:{WINDOW}")).await?;
    fill(world, 9).await?;
    let fetched = claim(world, 5).await?;
    same!(fetched.jobs.len(), 1);
    same!(fetched.blocked[0].1.as_millis(), 200);
    world.finish(&fetched.jobs[0], "42").await?;
    let second = world.take_one().await?;
    world.finish(&second, "42").await?;
    same!(held(world, 5).await?, Some(WINDOW / 2));
    Ok(())
}

/// Other keys do not matter.
async fn each_key_has_its_own(world: &World) -> Outcome {
    set(world, &format!("key_rate=window:1:{WINDOW}")).await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    put_keyed(world, "l", &["c", "d"]).await?;
    world.put(&["e", "f"]).await?;
    same!(taken(world, 9).await?, ["a", "c", "e", "f"]);
    same!(members(world, "BACKLOG", Some("k")).await?, ["b"]);
    same!(members(world, "BACKLOG", Some("l")).await?, ["d"]);
    Ok(())
}

/// Later jobs in the queue start.
async fn what_is_over_a_keys_rate_lets_others_pass(world: &World) -> Outcome {
    set(world, &format!("key_rate=window:1:{WINDOW}")).await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    world.put(&["d"]).await?;
    same!(taken(world, 1).await?, ["a"]);
    same!(taken(world, 1).await?, ["d"]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// They return when the rate allows it, before later submissions, and no worker polls each millisecond.
async fn a_keys_jobs_come_back_in_order(world: &World) -> Outcome {
    set(world, &format!("key_rate=bucket:2:{WINDOW}")).await?;
    put_keyed(world, "k", &["a", "b", "c", "d", "e"]).await?;
    same!(taken(world, 9).await?, ["a", "b"]);
    world.put(&["z"]).await?;
    same!(promote(world).await?, (0, Some(WINDOW / 2)));
    world.pass(WINDOW / 2 - 1);
    same!(promote(world).await?, (0, Some(1)));
    world.pass(1);
    let (looked, next) = promote(world).await?;
    same!((looked, next), (2, Some(LOOK_MS)));
    same!(world.waiting().await?, ["c", "z"]);
    same!(taken(world, 1).await?, ["c"]);
    world.pass(WINDOW / 2);
    promote(world).await?;
    same!(taken(world, 1).await?, ["d"]);
    Ok(())
}
