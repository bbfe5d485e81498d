//! orphans: jobs that dead workers of Bananas left in the list of running jobs.

use meshwork_model::bananas::ClientVariant;

use super::{AGE, Outcome, Side, World, cases, check, same};

cases![
    puts_back_what_has_stood_there_for_too_long,
    leaves_what_ours_run,
    leaves_what_has_no_id,
    leaves_dead_letters,
    who_comes_back_begins_anew,
    two_put_it_back_once,
    what_came_back_meanwhile_is_young,
    what_is_no_job_goes_where_it_is_found,
    no_list_to_put_it_in_changes_nothing,
];

/// The age counts from the first time that Meshwork saw the entry. The job goes to the list of its record, as the
/// next one.
async fn puts_back_what_has_stood_there_for_too_long(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    let record = "{\"routing_key\":\"gpu\"}";
    side.set(&side.keys().job("j1"), record).await?;
    side.push(&processing, "j1").await?;
    let gpu = side.keys().routed(&"gpu".parse()?, Default::default());
    side.push(&gpu, "j0").await?;
    for _ in 0..2 {
        check!(side.verbs.orphans(AGE).await?.is_empty());
        world.pass(299_999);
    }
    check!(side.verbs.orphans(AGE).await?.is_empty());
    world.pass(2);
    same!(side.adopt().await?, ["j1"]);
    same!(side.list(&gpu).await?, ["j1", "j0"]);
    check!(side.list(&processing).await?.is_empty());
    same!(world.raw::<u8>(&["ZCARD", &side.keys().seen()]).await?, 0);
    Ok(())
}

/// These jobs have leases.
async fn leaves_what_ours_run(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.started("j1").await?;
    for _ in 0..3 {
        check!(side.verbs.orphans(AGE).await?.is_empty());
        world.pass(600_000);
    }
    same!(side.list(&side.keys().processing()).await?, ["j1"]);
    Ok(())
}

/// An empty id does not tell which job of Bananas' cron it is, and whether a Meshwork worker runs it.
async fn leaves_what_has_no_id(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    side.push(&processing, "").await?;
    side.adopt().await?;
    world.pass(600_000);
    check!(side.adopt().await?.is_empty());
    same!(side.list(&processing).await?, [""]);
    Ok(())
}

/// The worker was killed between two of its steps: the job has no runs left.
async fn leaves_dead_letters(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    side.set(&side.keys().job("j1"), "{\"status\":\"failed\"}")
        .await?;
    side.push(&side.keys().dead(), "j1").await?;
    side.push(&processing, "j1").await?;
    side.adopt().await?;
    world.pass(600_000);
    check!(side.adopt().await?.is_empty());
    same!(side.list(&processing).await?, ["j1"]);
    Ok(())
}

/// The age of a job that ended and runs again begins anew.
async fn who_comes_back_begins_anew(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    side.push(&processing, "j1").await?;
    side.adopt().await?;
    world.raw::<()>(&["DEL", &processing]).await?;
    world.pass(600_000);
    side.adopt().await?;
    side.push(&processing, "j1").await?;
    check!(side.adopt().await?.is_empty());
    // Nor does a clock that was ahead make an entry older.
    world.pass(400_000);
    side.adopt().await?;
    Ok(())
}

/// Two Meshwork workers requeue it at the same time; and its state changes between the two steps.
async fn two_put_it_back_once(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    for id in ["j1", "ended", "ours"] {
        side.push(&processing, id).await?;
    }
    side.adopt().await?;
    world.pass(600_000);
    let orphans = side.verbs.orphans(AGE).await?;
    same!(orphans.len(), 3);
    world
        .raw::<()>(&["LREM", &processing, "0", "ended"])
        .await?;
    side.started("ours").await?;
    for times in [1, 0] {
        let mut adopted = 0;
        for orphan in &orphans {
            adopted += usize::from(side.verbs.rescue(orphan, ClientVariant::Go).await?);
        }
        same!(adopted, times);
    }
    same!(side.list(&side.plain()).await?, ["j1"]);
    Ok(())
}

/// The job returned between the two steps, and its age begins then.
async fn what_came_back_meanwhile_is_young(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    side.push(&processing, "j1").await?;
    side.adopt().await?;
    world.pass(600_000);
    let orphans = side.verbs.orphans(AGE).await?;
    world.raw::<()>(&["DEL", &processing]).await?;
    side.adopt().await?;
    side.push(&processing, "j1").await?;
    side.adopt().await?;
    check!(!side.verbs.rescue(&orphans[0], ClientVariant::Go).await?);
    same!(side.list(&processing).await?, ["j1"]);
    Ok(())
}

/// The worker that claims it makes it a dead letter.
async fn what_is_no_job_goes_where_it_is_found(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().processing(), "ghost").await?;
    side.adopt().await?;
    world.pass(600_000);
    same!(side.adopt().await?, ["ghost"]);
    same!(side.list(&side.plain()).await?, ["ghost"]);
    Ok(())
}

/// The entry stays.
async fn no_list_to_put_it_in_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().processing(), "j1").await?;
    side.set(&side.plain(), "x").await?;
    side.adopt().await?;
    world.pass(600_000);
    let before = world.all().await?;
    check!(side.adopt().await.is_err());
    world.unchanged(&before).await
}
