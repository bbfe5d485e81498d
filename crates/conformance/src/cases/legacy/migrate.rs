//! migrate: the phases come in order, and the migration does not end while state of the old system is left.

use std::time::Duration;

use meshwork_broker::{Ended, Failed, MigrateError, TypeSurvey};
use meshwork_model::keys::hero::LegacyList;
use meshwork_model::migration::Phase;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::harness::world::{Got, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    jobs_go_to_both_from_the_start,
    closing_pushes_to_the_old_list_no_more,
    no_phase_is_left_out,
    the_same_start_again_changes_nothing,
    two_types_have_no_list_in_common,
    an_entry_that_stands_alone_keeps_it_from_ending,
    an_entry_of_another_old_list_of_the_type_does_too,
    a_job_in_the_hands_of_an_old_worker_does_too,
    a_job_on_no_list_does_too,
    an_id_on_its_way_to_one_of_ours_does_too,
    copies_end_by_themselves,
    what_waits_on_the_canonical_queue_does_not_matter,
    what_waits_for_its_retry_does_not_matter,
    a_client_that_waits_is_seen_and_can_be_ignored,
    given_up_marked_jobs_stay_locked,
    it_begins_again_after_its_end,
    types_that_do_not_migrate_are_seen_too,
    each_step_is_told,
];

const AGE: Duration = Duration::from_secs(30);
/// Number of polls until a client must have begun to wait.
const LOOKS: usize = 1000;

fn osis() -> ScriptType {
    ScriptType::foreign("osis".to_owned())
}

fn old_list(world: &World) -> String {
    world.keys().legacy_type_queue(&osis())
}

async fn start(world: &World) -> Outcome {
    let list = LegacyList::foreign(old_list(world));
    world.broker.start_migration(&osis(), list, AGE).await?;
    Ok(())
}

async fn canonical(world: &World) -> Outcome {
    start(world).await?;
    world.broker.canonical_first(&osis()).await?;
    Ok(())
}

async fn phase(world: &World) -> Got<Option<Phase>> {
    let migrations = world.broker.migrations().await?;
    Ok(migrations.get("osis").map(|set| set.phase))
}

/// Ends the migration in spite of waiting clients: on a cluster, other cases may have some.
async fn finish(world: &World) -> Result<Ended, MigrateError> {
    world.broker.finish_migration(&osis(), true).await
}

/// Returns the reason why the migration cannot end. The call changes nothing.
async fn left(world: &World) -> Got<String> {
    let before = world.all().await?;
    let Err(error @ MigrateError::Left { .. }) = finish(world).await else {
        return Err(Failure::new("it should not end"));
    };
    world.unchanged(&before).await?;
    Ok(error.to_string())
}

async fn survey(world: &World) -> Got<TypeSurvey> {
    let survey = world.broker.survey().await?;
    Ok(survey.of("osis").cloned().unwrap_or_default())
}

async fn jobs_go_to_both_from_the_start(world: &World) -> Outcome {
    world.put(&["before"]).await?;
    start(world).await?;
    world.put(&["j1", "j2"]).await?;
    same!(world.list(&old_list(world)).await?, ["j1", "j2"]);
    same!(world.waiting().await?, ["before", "j1", "j2"]);
    let of = survey(world).await?;
    same!((of.canonical, of.marked.count, of.adrift.count), (3, 2, 0));
    same!(
        (of.old[0].waiting, of.old[0].copies, of.old[0].alone()),
        (2, 2, 0)
    );
    Ok(())
}

async fn closing_pushes_to_the_old_list_no_more(world: &World) -> Outcome {
    canonical(world).await?;
    world.put(&["j1"]).await?;
    check!(matches!(finish(world).await?, Ended::Closing(_)));
    same!(phase(world).await?, Some(Phase::Closing));
    world.put(&["j2"]).await?;
    same!(world.list(&old_list(world)).await?, ["j1"]);
    world.broker.canonical_first(&osis()).await?;
    world.put(&["j3"]).await?;
    same!(world.list(&old_list(world)).await?, ["j1", "j3"]);
    Ok(())
}

async fn no_phase_is_left_out(world: &World) -> Outcome {
    let not_begun = |result| matches!(result, Err(MigrateError::NotBegun { .. }));
    check!(not_begun(finish(world).await.map(drop)));
    check!(not_begun(
        world.broker.canonical_first(&osis()).await.map(drop)
    ));
    check!(not_begun(
        world.broker.abort_migration(&osis()).await.map(drop)
    ));
    start(world).await?;
    check!(matches!(
        finish(world).await,
        Err(MigrateError::TooEarly { .. })
    ));
    same!(phase(world).await?, Some(Phase::Dual));
    world.broker.canonical_first(&osis()).await?;
    world.broker.canonical_first(&osis()).await?;
    same!(phase(world).await?, Some(Phase::Canonical));
    same!(finish(world).await?, Ended::Done);
    same!(phase(world).await?, None);
    Ok(())
}

async fn the_same_start_again_changes_nothing(world: &World) -> Outcome {
    start(world).await?;
    let before = world.all().await?;
    start(world).await?;
    world.unchanged(&before).await?;
    let list = LegacyList::foreign(old_list(world));
    let other = world.broker.start_migration(&osis(), list, AGE * 2).await;
    check!(matches!(other, Err(MigrateError::Begun { .. })));
    world.unchanged(&before).await
}

async fn two_types_have_no_list_in_common(world: &World) -> Outcome {
    start(world).await?;
    let sal: ScriptType = "sal".parse()?;
    let list = LegacyList::foreign(old_list(world));
    let shared = world.broker.start_migration(&sal, list, AGE).await;
    check!(matches!(shared, Err(MigrateError::Shared { .. })));
    let per_worker = world.keys().legacy_work_prefix() + "{worker_id}";
    let per_worker = LegacyList::foreign(per_worker);
    world.broker.start_migration(&sal, per_worker, AGE).await?;
    Ok(())
}

async fn an_entry_that_stands_alone_keeps_it_from_ending(world: &World) -> Outcome {
    canonical(world).await?;
    world.put(&["j1"]).await?;
    let list = old_list(world);
    world.raw::<()>(&["LPUSH", &list, "theirs"]).await?;
    let said = left(world).await?;
    check!(said.contains(&list) && said.contains("1 no copies"));
    Ok(())
}

async fn an_entry_of_another_old_list_of_the_type_does_too(world: &World) -> Outcome {
    canonical(world).await?;
    let list = world.keys().legacy_work_prefix() + "osis_runner_1";
    world.raw::<()>(&["LPUSH", &list, "theirs"]).await?;
    check!(left(world).await?.contains(&list));
    Ok(())
}

async fn a_job_in_the_hands_of_an_old_worker_does_too(world: &World) -> Outcome {
    canonical(world).await?;
    world
        .put_foreign(
            "j1",
            &[("status", "started"), ("worker_id", "osis_runner_1")],
        )
        .await?;
    check!(left(world).await?.contains("j1"));
    world
        .raw::<()>(&["HSET", &world.key("j1"), "status", "finished"])
        .await?;
    same!(finish(world).await?, Ended::Done);
    Ok(())
}

async fn a_job_on_no_list_does_too(world: &World) -> Outcome {
    canonical(world).await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "status", "dispatched"])
        .await?;
    check!(left(world).await?.contains("j1"));
    Ok(())
}

async fn an_id_on_its_way_to_one_of_ours_does_too(world: &World) -> Outcome {
    canonical(world).await?;
    let list = old_list(world);
    let member = format!("w1 {list}");
    world
        .raw::<()>(&[
            "ZADD",
            &world.keys().prefetch_registry(),
            "9999999999999",
            &member,
        ])
        .await?;
    world
        .raw::<()>(&["LPUSH", &world.keys().feed("w1", &list), "theirs"])
        .await?;
    check!(left(world).await?.contains(&list));
    Ok(())
}

async fn copies_end_by_themselves(world: &World) -> Outcome {
    canonical(world).await?;
    world.put(&["j1", "j2"]).await?;
    let Ended::Closing(said) = finish(world).await? else {
        return Err(Failure::new("two copies are left"));
    };
    check!(said.iter().any(|line| line.contains(&old_list(world))));
    check!(left(world).await?.contains("all copies"));
    same!(ids(&world.take(5).await?), ["j1", "j2"]);
    same!(world.list(&old_list(world)).await?, [""; 0]);
    same!(finish(world).await?, Ended::Done);
    Ok(())
}

async fn what_waits_on_the_canonical_queue_does_not_matter(world: &World) -> Outcome {
    canonical(world).await?;
    world
        .put_foreign("j1", &[("status", "dispatched"), ("script", "1")])
        .await?;
    same!(survey(world).await?.canonical, 1);
    same!(finish(world).await?, Ended::Done);
    Ok(())
}

async fn what_waits_for_its_retry_does_not_matter(world: &World) -> Outcome {
    canonical(world).await?;
    let fields = [("status", "dispatched"), ("script", "1"), ("retries", "1")];
    world.put_foreign("j1", &fields).await?;
    check!(world.take(1).await?.is_empty()); // its second push is waited for
    world.pass(AGE.as_millis() as u64);
    world.broker.promote().await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let delayed = world.broker.fail(&claimed, &failure, b"", b"", AGE).await?;
    same!(delayed, Failed::Requeued);
    same!(finish(world).await?, Ended::Done);
    Ok(())
}

async fn a_client_that_waits_is_seen_and_can_be_ignored(world: &World) -> Outcome {
    canonical(world).await?;
    let mut conn = world.conn().dedicated().await?;
    let name = world
        .keys()
        .namespace()
        .as_str()
        .replace(['{', '}'], "old-");
    let set = redis::cmd("CLIENT").arg("SETNAME").arg(&name).to_owned();
    set.query_async::<()>(&mut conn).await?;
    let list = old_list(world);
    let wait = tokio::spawn(async move {
        let blpop = redis::cmd("BLPOP").arg(list).arg(60).to_owned();
        blpop.query_async::<redis::Value>(&mut conn).await
    });
    let mut seen = None;
    for _ in 0..LOOKS {
        // The embedded engine answers without a pause in which the other task could start.
        tokio::task::yield_now().await;
        let ended = world.broker.finish_migration(&osis(), false).await;
        match ended.err().map(|error| error.to_string()) {
            // A user without the right to see the client gets that error.
            Some(said) if said.contains(&name) || said.contains("CLIENT LIST") => {
                seen = Some(said);
                break;
            }
            Some(_) => {}
            None => canonical(world).await?,
        }
    }
    check!(seen.is_some_and(|said| said.contains("blpop") || said.contains("CLIENT LIST")));
    same!(finish(world).await?, Ended::Done);
    world.raw::<()>(&["LPUSH", &old_list(world), "end"]).await?;
    wait.await.map_err(Failure::new)??;
    Ok(())
}

async fn given_up_marked_jobs_stay_locked(world: &World) -> Outcome {
    start(world).await?;
    world.put(&["j1", "j2"]).await?;
    world.broker.abort_migration(&osis()).await?;
    world.put(&["j3"]).await?;
    let list = old_list(world);
    same!(world.list(&list).await?, ["j1", "j2"]);
    // An old worker takes the newest id.
    same!(world.raw::<String>(&["LPOP", &list]).await?, "j2");
    same!(ids(&world.take(5).await?), ["j1", "j3"]);
    same!(world.list(&list).await?, [""; 0]);
    Ok(())
}

async fn it_begins_again_after_its_end(world: &World) -> Outcome {
    canonical(world).await?;
    same!(finish(world).await?, Ended::Done);
    start(world).await?;
    same!(phase(world).await?, Some(Phase::Dual));
    Ok(())
}

async fn types_that_do_not_migrate_are_seen_too(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let list = world.keys().legacy_type_prefix() + "sal";
    world.raw::<()>(&["LPUSH", &list, "theirs"]).await?;
    let survey = world.broker.survey().await?;
    let canonical = survey.of("osis").map(|of| of.canonical);
    let old = survey.of("sal").map(|of| of.old[0].waiting);
    same!((canonical, old), (Some(1), Some(1)));
    Ok(())
}

async fn each_step_is_told(world: &World) -> Outcome {
    canonical(world).await?;
    let ann = world.broker.clone().acting_as("ann");
    ann.abort_migration(&osis()).await?;
    let list = old_list(world);
    let event = |by: &str, note: String| ["", "migration", by, &note].map(str::to_owned);
    let should = [
        event("", format!("osis dual {list} 30000")),
        event("", format!("osis canonical {list} 30000")),
        event("ann", "osis off".to_owned()),
    ];
    same!(world.events().await?, should);
    Ok(())
}
