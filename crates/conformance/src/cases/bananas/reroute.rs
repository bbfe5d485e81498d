//! forward: waiting jobs on a list without a route go to the lists of their routes, if a worker takes from these.

use meshwork_broker::bananas::Reroute;
use meshwork_model::route::Priority;

use super::{Got, Outcome, Side, World, cases, check, same};
use crate::cases::harness::world::ALIVE_MS;

cases![
    go_to_the_end_of_their_routes_lists_in_order,
    stay_where_nobody_takes_them,
    what_is_gone_goes_nowhere,
    one_looks_only_so_deep,
    a_list_of_another_kind_holds_up_no_other,
];

/// Pushes these jobs, the first one first.
async fn waiting(side: &Side<'_>, jobs: &[(&str, &str)]) -> Got<Vec<Reroute>> {
    let mut going = Vec::new();
    for (id, route) in jobs {
        side.push(&side.plain(), id).await?;
        let (id, route) = (id.as_bytes().to_vec(), route.parse()?);
        going.push(Reroute { id, route });
    }
    Ok(going)
}

/// Jobs that are not named stay unchanged.
async fn go_to_the_end_of_their_routes_lists_in_order(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = side.keys().routed(&"gpu".parse()?, Priority::Normal);
    side.push(&gpu, "j0").await?;
    let jobs = [
        ("j1", "gpu"),
        ("s1", "eu"),
        ("j2", "default"),
        ("j3", "gpu"),
        ("s2", "eu"),
    ];
    let mut going = waiting(&side, &jobs).await?;
    going.retain(|job| job.route.as_str() != "eu");
    side.renew(&[], &["gpu".parse()?, "default".parse()?])
        .await?;
    world.pass(ALIVE_MS - 1);
    same!(side.verbs.reroute(&side.plain(), 9, &going).await?, 3);
    same!(side.list(&gpu).await?, ["j0", "j1", "j3"]);
    let default = side.keys().routed(&Default::default(), Priority::Normal);
    same!(side.list(&default).await?, ["j2"]);
    same!(side.list(&side.plain()).await?, ["s1", "s2"]);
    Ok(())
}

/// No Meshwork worker takes from the list of the route, and Bananas' workers may not read it.
async fn stay_where_nobody_takes_them(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let going = waiting(&side, &[("j1", "gpu")]).await?;
    side.renew(&[], &["eu".parse()?]).await?;
    let before = world.all().await?;
    same!(side.verbs.reroute(&side.plain(), 9, &going).await?, 0);
    world.unchanged(&before).await?;
    side.renew(&[], &["gpu".parse()?]).await?;
    world.pass(ALIVE_MS);
    same!(side.verbs.reroute(&side.plain(), 9, &going).await?, 0);
    same!(side.list(&side.plain()).await?, ["j1"]);
    Ok(())
}

/// A worker has claimed the job meanwhile.
async fn what_is_gone_goes_nowhere(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let going = waiting(&side, &[("j1", "gpu")]).await?;
    side.renew(&[], &["gpu".parse()?]).await?;
    side.take_one().await?;
    let before = world.all().await?;
    same!(side.verbs.reroute(&side.plain(), 9, &going).await?, 0);
    world.unchanged(&before).await
}

/// The search starts at the next job, and has a bound.
async fn one_looks_only_so_deep(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let jobs = ["j1", "j2", "j1", "j3"].map(|id| (id, "gpu"));
    let going = waiting(&side, &jobs).await?;
    side.renew(&[], &["gpu".parse()?]).await?;
    for (job, moved) in [(3, 0), (1, 0), (0, 1)] {
        let one = std::slice::from_ref(&going[job]);
        same!(
            (job, side.verbs.reroute(&side.plain(), 1, one).await?),
            (job, moved)
        );
    }
    same!(side.list(&side.plain()).await?, ["j2", "j1", "j3"]);
    Ok(())
}

/// The jobs of that list stay.
async fn a_list_of_another_kind_holds_up_no_other(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let going = waiting(&side, &[("j1", "gpu"), ("j2", "eu")]).await?;
    side.renew(&[], &["gpu".parse()?, "eu".parse()?]).await?;
    let gpu = side.keys().routed(&"gpu".parse()?, Priority::Normal);
    side.set(&gpu, "x").await?;
    same!(side.verbs.reroute(&side.plain(), 9, &going).await?, 1);
    same!(side.list(&side.plain()).await?, ["j1"]);
    check!(
        side.verbs
            .reroute(&side.plain(), 9, &vec![going[0].clone(); 1001])
            .await
            .is_err()
    );
    Ok(())
}
