//! cron: schedules are stored, and each slot runs once.

use meshwork_broker::bananas::{Crons, PutCron, StoredCron};
use meshwork_model::bananas::{ClientVariant, Cron, MAX_CRONS, NewJob};
use meshwork_model::schedule::timing::Timing;

use super::{Failure, Outcome, Side, World, cases, check, same};
use crate::cases::harness::world::Got;
use crate::cases::harness::world::START;

cases![
    is_kept_with_its_next_slot,
    is_replaced_only_if_asked,
    is_forgotten_and_its_state_stays,
    there_are_only_so_many,
    is_due_at_its_slot,
    a_slot_runs_once,
    what_has_changed_meanwhile_is_left,
    a_scheduler_of_bananas_that_is_at_it_is_left_alone,
    a_scheduler_of_bananas_finds_it_locked,
    is_due_at_once_where_nothing_is_known,
    a_state_of_another_kind_holds_up_nothing,
    a_list_of_another_kind_changes_nothing,
    what_cannot_be_read_is_told,
];

/// 2023-11-15T00:00:00Z.
const MIDNIGHT: u64 = 1_700_006_400_000;

fn nightly(side: &Side<'_>) -> Got<Cron> {
    let mut job: NewJob = side.job("any")?;
    job.route = Some("email".parse()?);
    let rhythm = "0 0 * * *".parse();
    Ok(Cron {
        name: "nightly".parse()?,
        timing: Timing::new(rhythm.map_err(|_| Failure::new("it is a rhythm"))?),
        job,
    })
}

/// Stores a schedule, and returns it as stored.
async fn kept(side: &Side<'_>) -> Got<StoredCron> {
    same!(
        side.verbs.put_cron(&nightly(side)?, false).await?,
        PutCron::Added
    );
    only(side.verbs.crons().await?)
}

fn only(crons: Crons) -> Got<StoredCron> {
    let mut all = crons.all;
    same!(all.len(), 1);
    all.pop()
        .ok_or_else(|| Failure::new("there is no schedule"))
}

async fn fire(side: &Side<'_>, kept: &StoredCron, id: &str) -> Got<bool> {
    let now = side.verbs.crons().await?.now;
    Ok(side
        .verbs
        .fire_schedule(kept, now, id.parse()?, ClientVariant::Go)
        .await?)
}

async fn state(side: &Side<'_>, field: &str) -> Got<Option<String>> {
    let key = side.keys().schedule(&"nightly".parse()?);
    side.world.raw(&["HGET", &key, field]).await
}

/// Bananas' own scheduler has a state beside it, and runs a schedule without a state at once.
async fn is_kept_with_its_next_slot(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    same!(
        kept.cron,
        Ok(Cron {
            job: NewJob {
                id: meshwork_model::name::JobId::foreign(String::new()),
                ..nightly(&side)?.job
            },
            ..nightly(&side)?
        })
    );
    same!((kept.next, kept.runs), (Some(MIDNIGHT), 0));
    let next = state(&side, "next_run").await?;
    same!(next.as_deref(), Some("2023-11-15T00:00:00Z"));
    Ok(())
}

async fn is_replaced_only_if_asked(world: &World) -> Outcome {
    let side = Side::of(world)?;
    kept(&side).await?;
    let mut other = nightly(&side)?;
    other.timing.zone = "Europe/Brussels"
        .parse()
        .map_err(|_| Failure::new("it is a zone"))?;
    let before = world.all().await?;
    same!(side.verbs.put_cron(&other, false).await?, PutCron::Exists);
    world.unchanged(&before).await?;
    same!(side.verbs.put_cron(&other, true).await?, PutCron::Replaced);
    let next = state(&side, "next_run").await?;
    same!(next.as_deref(), Some("2023-11-14T23:00:00Z"));
    let zone = only(side.verbs.crons().await?)?
        .cron
        .map(|cron| cron.timing.zone);
    same!(zone, Ok(other.timing.zone));
    Ok(())
}

/// A program of Bananas may have a schedule with that name.
async fn is_forgotten_and_its_state_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    check!(side.verbs.delete_cron(&kept.name).await?);
    same!(side.verbs.crons().await?.all.len(), 0);
    check!(state(&side, "next_run").await?.is_some());
    check!(!side.verbs.delete_cron(&kept.name).await?);
    Ok(())
}

/// Each worker reads all schedules, so their number is limited.
async fn there_are_only_so_many(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let fields: Vec<String> = (0..=MAX_CRONS).map(|n| format!("s{n}")).collect();
    let crons = side.keys().crons();
    let mut words = vec!["HSET", &crons];
    words.extend(fields.iter().take(MAX_CRONS).flat_map(|name| [name, "x"]));
    world.raw::<()>(&words).await?;
    let mut cron = nightly(&side)?;
    same!(side.verbs.put_cron(&cron, false).await?, PutCron::Full);
    cron.name = "s7".parse()?;
    same!(side.verbs.put_cron(&cron, true).await?, PutCron::Replaced);
    world.raw::<()>(&["HSET", &crons, "more", "x"]).await?;
    same!(side.verbs.crons().await?.all.len(), MAX_CRONS);
    Ok(())
}

async fn is_due_at_its_slot(world: &World) -> Outcome {
    let side = Side::of(world)?;
    kept(&side).await?;
    for (at, due) in [(START, 0), (MIDNIGHT - 1, 0), (MIDNIGHT, 1)] {
        world.at(at);
        let crons = side.verbs.crons().await?;
        same!((crons.now, crons.due().count()), (at, due));
    }
    Ok(())
}

/// The first worker that sees the slot runs it.
async fn a_slot_runs_once(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    let state_key = side.keys().schedule(&kept.name);
    world
        .raw::<()>(&["HSET", &state_key, "last_error", "boom"])
        .await?;
    world.at(MIDNIGHT + 5);
    check!(fire(&side, &kept, "j1").await?);
    check!(!fire(&side, &kept, "j2").await?);
    let list = side.keys().routed(&"email".parse()?, Default::default());
    same!(side.list(&list).await?, ["j1"]);
    let counted = format!("{list} created");
    let counted: u64 = world.raw(&["HGET", &side.keys().stats(), &counted]).await?;
    same!(counted, 1);
    check!(side.says("j1", "\"name\":\"count\"").await?);
    check!(
        side.says("j1", "\"created_at\":\"2023-11-15T00:00:00.005000Z\"")
            .await?
    );
    for (field, value) in [
        ("last_run", Some("2023-11-15T00:00:00Z")),
        ("last_success", Some("2023-11-15T00:00:00Z")),
        ("next_run", Some("2023-11-16T00:00:00Z")),
        ("run_count", Some("1")),
        ("last_error", None),
    ] {
        same!(
            (field, state(&side, field).await?.as_deref()),
            (field, value)
        );
    }
    let schedule = only(side.verbs.crons().await?)?;
    same!(schedule.next, Some(MIDNIGHT + 86_400_000));
    same!(
        (schedule.last_run.as_str(), schedule.runs),
        ("2023-11-15T00:00:00Z", 1)
    );
    // Days later one slot is made up for, whatever the counter says.
    world.at(MIDNIGHT + 10 * 86_400_000 + 7);
    world
        .raw::<()>(&["HSET", &state_key, "run_count", "x"])
        .await?;
    world
        .raw::<()>(&["DEL", &side.keys().schedule_lock(&kept.name)])
        .await?;
    check!(fire(&side, &schedule, "j3").await?);
    same!(side.list(&list).await?, ["j1", "j3"]);
    let next = state(&side, "next_run").await?;
    same!(next.as_deref(), Some("2023-11-26T00:00:00Z"));
    Ok(())
}

async fn what_has_changed_meanwhile_is_left(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    world.at(MIDNIGHT);
    let state_key = side.keys().schedule(&kept.name);
    for (key, field, value) in [
        (&state_key, "next_run", "2023-11-16T00:00:00Z"),
        (&side.keys().crons(), "nightly", "x"),
    ] {
        let was: String = world.raw(&["HGET", key, field]).await?;
        world.raw::<()>(&["HSET", key, field, value]).await?;
        let before = world.all().await?;
        check!(!fire(&side, &kept, "j1").await?);
        world.unchanged(&before).await?;
        world.raw::<()>(&["HSET", key, field, &was]).await?;
    }
    check!(fire(&side, &kept, "j1").await?);
    Ok(())
}

/// Bananas takes the lock before it submits the job, and updates the state after that.
async fn a_scheduler_of_bananas_that_is_at_it_is_left_alone(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    world.at(MIDNIGHT);
    side.set(&side.keys().schedule_lock(&kept.name), "theirs")
        .await?;
    let before = world.all().await?;
    check!(!fire(&side, &kept, "j1").await?);
    world.unchanged(&before).await
}

/// The scheduler of Bananas may have read the state before.
async fn a_scheduler_of_bananas_finds_it_locked(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    world.at(MIDNIGHT);
    check!(fire(&side, &kept, "j1").await?);
    let lock = side.keys().schedule_lock(&kept.name);
    let taken: Option<String> = world
        .raw(&["SET", &lock, "theirs", "EX", "60", "NX"])
        .await?;
    same!(taken, None);
    same!(side.ttl(&lock).await?, 2);
    Ok(())
}

/// Bananas follows the same rule.
async fn is_due_at_once_where_nothing_is_known(world: &World) -> Outcome {
    let side = Side::of(world)?;
    kept(&side).await?;
    world
        .raw::<()>(&["DEL", &side.keys().schedule(&"nightly".parse()?)])
        .await?;
    let crons = side.verbs.crons().await?;
    same!(crons.due().count(), 1);
    check!(fire(&side, &only(crons)?, "j1").await?);
    same!(side.verbs.crons().await?.due().count(), 0);
    Ok(())
}

async fn a_state_of_another_kind_holds_up_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    kept(&side).await?;
    let key = side.keys().schedule(&"nightly".parse()?);
    side.set(&key, "x").await?;
    let before = world.all().await?;
    let stored = only(side.verbs.crons().await?)?;
    same!((stored.next, stored.runs), (None, 0));
    check!(!fire(&side, &stored, "j1").await?);
    check!(side.verbs.put_cron(&nightly(&side)?, true).await.is_err());
    world.unchanged(&before).await
}

/// The slot runs when the list is usable.
async fn a_list_of_another_kind_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let kept = kept(&side).await?;
    world.at(MIDNIGHT);
    let list = side.keys().routed(&"email".parse()?, Default::default());
    side.set(&list, "x").await?;
    let before = world.all().await?;
    check!(fire(&side, &kept, "j1").await.is_err());
    world.unchanged(&before).await
}

async fn what_cannot_be_read_is_told(world: &World) -> Outcome {
    let side = Side::of(world)?;
    world
        .raw::<()>(&["HSET", &side.keys().crons(), "nightly", "{"])
        .await?;
    let schedule = only(side.verbs.crons().await?)?;
    check!(schedule.cron.is_err());
    let before = world.all().await?;
    check!(!fire(&side, &schedule, "j1").await?);
    world.unchanged(&before).await
}
