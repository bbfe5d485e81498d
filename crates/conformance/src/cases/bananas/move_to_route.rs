//! move: a job on a list without a route goes to the list of its route, if a worker takes from it.

use meshwork_broker::bananas::Moved;
use meshwork_model::route::Priority;

use super::{Outcome, Side, World, cases, same};
use crate::cases::harness::world::ALIVE_MS;

cases![
    goes_to_the_end_of_its_routes_list,
    stays_where_nobody_takes_it,
    refuses_another_token,
];

/// A Meshwork worker is registered at that list.
async fn goes_to_the_end_of_its_routes_list(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = "gpu".parse()?;
    let list = side.keys().routed(&gpu, Priority::Low);
    side.push(&list, "j0").await?;
    side.renew(&[], std::slice::from_ref(&gpu)).await?;
    world.pass(ALIVE_MS - 1);
    let claimed = side.started("j1").await?;
    let outcome = side.verbs.move_to(&claimed, &gpu, Priority::Low).await?;
    same!(outcome, Moved::Moved);
    same!(side.list(&list).await?, ["j0", "j1"]);
    side.idle().await
}

/// The worker keeps the job, and decides what to do with it.
async fn stays_where_nobody_takes_it(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = "gpu".parse()?;
    let claimed = side.started("j1").await?;
    let before = world.all().await?;
    let outcome = side.verbs.move_to(&claimed, &gpu, Priority::Low).await?;
    same!(outcome, Moved::Nobody);
    world.unchanged(&before).await?;
    side.renew(&[], std::slice::from_ref(&gpu)).await?;
    world.pass(ALIVE_MS);
    let outcome = side.verbs.move_to(&claimed, &gpu, Priority::Low).await?;
    same!(outcome, Moved::Nobody);
    Ok(())
}

/// A worker that was taken for dead changes nothing.
async fn refuses_another_token(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = "gpu".parse()?;
    side.renew(&[], std::slice::from_ref(&gpu)).await?;
    let mut claimed = side.started("j1").await?;
    claimed.token = "t9".to_owned();
    let before = world.all().await?;
    let outcome = side.verbs.move_to(&claimed, &gpu, Priority::Low).await?;
    same!(outcome, Moved::Stale);
    world.unchanged(&before).await
}
