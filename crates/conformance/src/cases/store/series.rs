//! State of `run --each`: the same request again resumes the earlier work.

use crate::cases::{Outcome, World, cases, same};

cases![
    the_first_seed_stays,
    other_requests_are_other_work,
    nothing_is_there_before,
    what_has_ended_begins_anew,
    ending_twice_is_no_error,
    is_not_kept_for_ever,
];

/// A second call with the same request, as after a crash, gets the first seed.
async fn the_first_seed_stays(world: &World) -> Outcome {
    same!(world.broker.begin_series("d1", "s1").await?, "s1");
    same!(world.broker.begin_series("d1", "s2").await?, "s1");
    same!(world.broker.series("d1").await?.as_deref(), Some("s1"));
    Ok(())
}

/// A different request gets a different seed.
async fn other_requests_are_other_work(world: &World) -> Outcome {
    same!(world.broker.begin_series("d1", "s1").await?, "s1");
    same!(world.broker.begin_series("d2", "s2").await?, "s2");
    Ok(())
}

/// A read does not create an entry.
async fn nothing_is_there_before(world: &World) -> Outcome {
    same!(world.broker.series("d1").await?, None);
    world.unchanged("").await
}

/// After the end, the same request is a new one.
async fn what_has_ended_begins_anew(world: &World) -> Outcome {
    world.broker.begin_series("d1", "s1").await?;
    world.broker.end_series("d1").await?;
    same!(world.broker.series("d1").await?, None);
    same!(world.broker.begin_series("d1", "s2").await?, "s2");
    Ok(())
}

/// The call is repeated, as after a broken connection.
async fn ending_twice_is_no_error(world: &World) -> Outcome {
    world.broker.begin_series("d1", "s1").await?;
    world.broker.end_series("d1").await?;
    world.broker.end_series("d1").await?;
    world.unchanged("").await
}

/// Abandoned work is deleted after seven days.
async fn is_not_kept_for_ever(world: &World) -> Outcome {
    world.broker.begin_series("d1", "s1").await?;
    let expected = "~:q:each:d1 string for 10080 min\n  s1\n";
    world.unchanged(expected).await
}
