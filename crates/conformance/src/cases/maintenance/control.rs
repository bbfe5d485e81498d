//! control: stop requests.

use std::time::Duration;

use meshwork_broker::{Cancelled, Claimed, Control, Controlled};
use meshwork_model::name::ActorId;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::legacy_worker::{migrate, old};
use crate::cases::harness::world::{LEASE_MS, START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_worker_takes_only_ids_that_it_runs,
    ten_workers_share_the_queue_of_a_type,
    a_bare_push_stops_a_running_job,
    the_reason_that_was_given_stays,
    an_answer_that_got_lost_is_told_again,
    every_queue_is_read,
    a_request_that_is_repeated_is_told_once,
    a_waiting_job_is_stopped_by_whoever_sees_it,
    a_dual_pushed_job_is_stopped_on_both_lists,
    a_delayed_job_is_stopped,
    a_job_that_waits_for_others_is_stopped,
    a_job_of_another_client_is_stopped,
    ids_of_no_job_are_dropped,
    ids_of_ended_jobs_are_dropped,
    a_request_that_nobody_takes_expires,
    a_later_request_has_its_own_time,
    a_clock_that_is_set_back_drops_no_request,
    a_job_that_went_back_to_its_queue_is_stopped_there,
    a_queue_of_another_kind_is_passed_over,
    an_id_that_is_no_text_stops_nobody,
    more_than_1000_runs_are_refused,
];

pub(crate) const TURN: u64 = 1_000;

fn queue(world: &World) -> Result<String, Failure> {
    Ok(world.keys().control_queue_type(&"osis".parse()?))
}

/// Reads the stop requests for `worker`, which runs `held`.
pub(crate) async fn ask(world: &World, worker: &str, held: &[&str]) -> Result<Control, Failure> {
    let queues = [queue(world)?];
    ask_with(world, worker, &queues, held).await
}

async fn ask_with(
    world: &World,
    worker: &str,
    queues: &[String],
    held: &[&str],
) -> Result<Control, Failure> {
    let held: Vec<_> = held.iter().map(|id| (*id).to_owned()).collect();
    let types = ["osis".parse()?, "sal".parse()?];
    let request = Controlled {
        worker,
        queues,
        types: &types,
        held: &held,
        turn: Duration::from_millis(TURN),
    };
    Ok(world.broker.control(request).await?)
}

async fn request(world: &World, id: &str) -> Outcome {
    world.raw(&["LPUSH", &queue(world)?, id]).await
}

async fn requests(world: &World) -> Result<Vec<String>, Failure> {
    world.list(&queue(world)?).await
}

async fn stops(world: &World) -> Result<usize, Failure> {
    world.raw(&["ZCARD", &world.named("STOPS")?]).await
}

async fn error(world: &World, id: &str) -> Result<(String, Option<String>), Failure> {
    let job = world.read(id).await?;
    Ok((job.status, job.error))
}

fn stopped() -> (String, Option<String>) {
    ("error".to_owned(), Some("stopped_by_request".to_owned()))
}

/// Other ids stay in the queue for their workers.
async fn a_worker_takes_only_ids_that_it_runs(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    world.take(2).await?;
    request(world, "j1").await?;
    request(world, "j2").await?;
    same!(ask(world, "w2", &[]).await?.stop.len(), 0);
    same!(requests(world).await?, ["j1", "j2"]);
    same!(ask(world, "w1", &["j2"]).await?.stop, ["j2"]);
    same!(requests(world).await?, ["j1"]);
    same!(ask(world, "w3", &["j1", "x"]).await?.stop, ["j1"]);
    same!(requests(world).await?.len(), 0);
    same!(stops(world).await?, 0);
    Ok(())
}

/// All workers read at once, each with its own job: each receives its own request, once.
async fn ten_workers_share_the_queue_of_a_type(world: &World) -> Outcome {
    let names: Vec<_> = (0..10).map(|n| format!("j{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    world.put(&names).await?;
    world.take(10).await?;
    for id in &names {
        request(world, id).await?;
    }
    for round in 0..3 {
        let asks = names
            .iter()
            .map(|id| ask(world, id, std::slice::from_ref(id)));
        let response = futures_util::future::try_join_all(asks).await?;
        for (control, id) in response.iter().zip(&names) {
            let should: &[&str] = if round == 0 { &[id] } else { &[] };
            same!(control.stop, should);
        }
    }
    same!(requests(world).await?.len(), 0);
    Ok(())
}

/// The push comes from a command line. The record and the event say so too.
async fn a_bare_push_stops_a_running_job(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    request(world, "j1").await?;
    same!(ask(world, WORKER, &["j1"]).await?.stop, ["j1"]);
    let last = world.events().await?.pop().unwrap_or_default();
    same!(last, ["j1", "stop", WORKER, "stopped_by_request"]);
    world.fail(&claimed, FailureKind::Stopped).await?;
    same!(world.status("j1").await?, "error");
    same!(world.read("j1").await?.dead, None);
    Ok(())
}

/// The client that cancelled the job gave the reason.
async fn the_reason_that_was_given_stays(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let said = world.broker.cancel(&claimed.job, "too dear", false).await?;
    same!(said, Cancelled::Stopping);
    same!(ask(world, WORKER, &["j1"]).await?.stop, ["j1"]);
    same!(world.read("j1").await?.stop.as_deref(), Some("too dear"));
    Ok(())
}

/// The next renewal repeats the request.
async fn an_answer_that_got_lost_is_told_again(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    request(world, "j1").await?;
    drop(ask(world, WORKER, &["j1"]).await?);
    same!(ask(world, WORKER, &["j1"]).await?.stop.len(), 0);
    same!(world.try_renew(WORKER, &[claimed]).await?.stop, ["j1"]);
    Ok(())
}

/// The queues are those of the type, of the instance, and of an old worker's name.
async fn every_queue_is_read(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    world.take(3).await?;
    let instance =
        world
            .keys()
            .control_queue_instance(&"osis".parse()?, &"default".parse()?, &"1".parse()?);
    let name: ActorId = "runner_1".parse()?;
    let queues = [
        queue(world)?,
        instance,
        world.keys().legacy_stop_queue(&name),
    ];
    for (queue, id) in queues.iter().zip(["j1", "j2", "j3"]) {
        world.raw::<()>(&["LPUSH", queue, id]).await?;
    }
    let response = ask_with(world, "w1", &queues, &["j1", "j2", "j3"]).await?;
    same!(response.stop, ["j1", "j2", "j3"]);
    for queue in &queues {
        same!(world.list(queue).await?.len(), 0);
    }
    Ok(())
}

/// The request is in two queues.
async fn a_request_that_is_repeated_is_told_once(world: &World) -> Outcome {
    world.started("j1").await?;
    let queues = [queue(world)?, format!("{}:2", queue(world)?)];
    for _ in 0..3 {
        for queue in &queues {
            world.raw::<()>(&["LPUSH", queue, "j1"]).await?;
        }
    }
    same!(ask_with(world, "w1", &queues, &["j1"]).await?.stop, ["j1"]);
    for queue in &queues {
        same!(world.list(queue).await?.len(), 0);
    }
    Ok(())
}

/// The job ends at once, and its client receives a reply.
async fn a_waiting_job_is_stopped_by_whoever_sees_it(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job, world.job("j2")?]).await?;
    request(world, "j1").await?;
    let response = ask(world, "w9", &[]).await?;
    same!(response.stop.len(), 0);
    same!(error(world, "j1").await?, stopped());
    same!(world.waiting().await?, ["j2"]);
    same!(
        world.list(&world.reply("j1")).await?,
        ["stopped_by_request"]
    );
    same!(requests(world).await?.len(), 0);
    let last = world.events().await?.pop().unwrap_or_default();
    same!(last, ["j1", "error", "w9", ""]);
    Ok(())
}

/// An old worker would run it otherwise.
async fn a_dual_pushed_job_is_stopped_on_both_lists(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1", "j2", "j3"]).await?;
    for id in ["j1", "j2", "j3"] {
        request(world, id).await?;
    }
    // Walks through old lists are slow, so some requests wait for the next call.
    for _ in 0..2 {
        ask(world, "w9", &[]).await?;
    }
    same!(world.list(&old(world)).await?.len(), 0);
    same!(world.waiting().await?.len(), 0);
    same!(error(world, "j3").await?, stopped());
    Ok(())
}

/// The job does not return at the end of its delay.
async fn a_delayed_job_is_stopped(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "boom");
    let delay = Duration::from_secs(10);
    world
        .broker
        .fail(&claimed, &failure, b"", b"", delay)
        .await?;
    request(world, "j1").await?;
    ask(world, "w9", &[]).await?;
    same!(error(world, "j1").await?, stopped());
    world.pass(10_000);
    same!(world.broker.promote().await?.due, 0);
    same!(world.waiting().await?.len(), 0);
    Ok(())
}

/// Jobs that wait for it end too.
async fn a_job_that_waits_for_others_is_stopped(world: &World) -> Outcome {
    let mut jobs = vec![world.job("j1")?, world.job("j2")?, world.job("j3")?];
    jobs[1].depends_on = vec!["j1".parse()?];
    jobs[2].depends_on = vec!["j2".parse()?];
    world.put_jobs(&jobs).await?;
    request(world, "j2").await?;
    ask(world, "w9", &[]).await?;
    same!(error(world, "j2").await?, stopped());
    same!(world.status("j3").await?, "error");
    let claimed = world.take_one().await?;
    world.finish(&claimed, "1").await?;
    check!(world.take(5).await?.is_empty());
    Ok(())
}

/// The status and the spelling of the type do not matter; a hash without a status is no job.
async fn a_job_of_another_client_is_stopped(world: &World) -> Outcome {
    let fields = [("script", "1"), ("script_type", "OSIS")];
    world.put_foreign("j1", &fields).await?;
    world
        .put_foreign("j2", &[&fields[..], &[("status", "")]].concat())
        .await?;
    for (id, status) in [("j3", "waiting_for_prerequisites"), ("j4", "paused")] {
        world
            .put_foreign(id, &[("status", status), fields[1]])
            .await?;
    }
    world.put_hash("none", &fields).await?;
    for id in ["j1", "j2", "j3", "j4", "none"] {
        request(world, id).await?;
    }
    let before = world.record("none").await?;
    // Each request walks through lists, so one call handles two.
    for _ in 0..2 {
        ask(world, "w9", &[]).await?;
    }
    for id in ["j1", "j2", "j3", "j4"] {
        same!((id, error(world, id).await?), (id, stopped()));
    }
    same!(world.record("none").await?, before);
    same!(world.waiting().await?, ["none"]);
    Ok(())
}

/// No record is created for them.
async fn ids_of_no_job_are_dropped(world: &World) -> Outcome {
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world.raw::<()>(&["SET", &world.key("string"), "x"]).await?;
    ask(world, "w1", &[]).await?;
    let before = world.all().await?;
    for id in ["gone", "list", "string", "", " "] {
        request(world, id).await?;
    }
    // A record that was deleted while its job ran is not created again.
    same!(ask(world, "w1", &["gone"]).await?.stop, ["gone"]);
    // Records may come back within the time of a request.
    same!(requests(world).await?.len(), 2);
    world.pass(60_000);
    ask(world, "w1", &[]).await?;
    same!(requests(world).await?.len(), 0);
    world.at(START);
    let clock = world.keys().clock();
    world.raw::<()>(&["DEL", &clock]).await?;
    ask(world, "w1", &[]).await?;
    world.unchanged(&before).await
}

/// Ended jobs stay unchanged.
async fn ids_of_ended_jobs_are_dropped(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    let claimed = world.started("j2").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    ask(world, "w1", &[]).await?;
    let before = world.all().await?;
    request(world, "j1").await?;
    request(world, "j2").await?;
    same!(ask(world, "w1", &[]).await?.stop.len(), 0);
    world.unchanged(&before).await
}

/// The request expires a minute after it was first read.
async fn a_request_that_nobody_takes_expires(world: &World) -> Outcome {
    world.started("j1").await?;
    request(world, "j1").await?;
    world.pass(100_000);
    for ms in [0, 30_000, 29_999] {
        world.pass(ms);
        ask(world, "w2", &[]).await?;
        same!(requests(world).await?, ["j1"]);
    }
    world.pass(1);
    ask(world, "w2", &[]).await?;
    same!((requests(world).await?.len(), stops(world).await?), (0, 0));
    same!(world.status("j1").await?, "started");
    Ok(())
}

/// The earlier request went away with its queue.
async fn a_later_request_has_its_own_time(world: &World) -> Outcome {
    world.started("j1").await?;
    request(world, "j1").await?;
    ask(world, "w2", &[]).await?;
    world.raw::<()>(&["DEL", &queue(world)?]).await?;
    world.pass(700_000);
    ask(world, "w2", &[]).await?;
    same!(stops(world).await?, 0);
    request(world, "j1").await?;
    for _ in 0..2 {
        ask(world, "w2", &[]).await?;
        same!(requests(world).await?, ["j1"]);
        world.pass(30_000);
    }
    ask(world, "w2", &[]).await?;
    same!(requests(world).await?.len(), 0);
    Ok(())
}

/// Nor does it keep a request for ever.
async fn a_clock_that_is_set_back_drops_no_request(world: &World) -> Outcome {
    world.started("j1").await?;
    request(world, "j1").await?;
    world.at(START + 1_000_000_000);
    ask(world, "w2", &[]).await?;
    // The store has forgotten the latest time.
    let clock = world.keys().clock();
    world.raw::<()>(&["DEL", &clock]).await?;
    world.at(START);
    ask(world, "w2", &[]).await?;
    same!(requests(world).await?, ["j1"]);
    world.pass(60_000);
    ask(world, "w2", &[]).await?;
    same!(requests(world).await?.len(), 0);
    Ok(())
}

/// The worker that still holds the job receives the request too.
async fn a_job_that_went_back_to_its_queue_is_stopped_there(world: &World) -> Outcome {
    world.started("j1").await?;
    request(world, "j1").await?;
    world.lose_all().await?;
    same!(ask(world, WORKER, &["j1"]).await?.stop, ["j1"]);
    same!(error(world, "j1").await?, stopped());
    check!(world.take(5).await?.is_empty());
    Ok(())
}

/// The next queue is still read.
async fn a_queue_of_another_kind_is_passed_over(world: &World) -> Outcome {
    world.started("j1").await?;
    let queues = [queue(world)?, format!("{}:2", queue(world)?)];
    world.raw::<()>(&["SET", &queues[0], "j1"]).await?;
    world.raw::<()>(&["LPUSH", &queues[1], "j1"]).await?;
    same!(ask_with(world, "w1", &queues, &["j1"]).await?.stop, ["j1"]);
    same!(world.raw::<String>(&["GET", &queues[0]]).await?, "j1");
    same!(ask_with(world, "w1", &[], &["j1"]).await?.stop.len(), 0);
    Ok(())
}

/// The id is dropped.
async fn an_id_that_is_no_text_stops_nobody(world: &World) -> Outcome {
    world.started("j1").await?;
    let mut push = redis::cmd("LPUSH");
    push.arg(queue(world)?).arg(b"\xff\xfe").arg("j1");
    push.query_async::<()>(&mut world.conn().clone()).await?;
    same!(ask(world, "w1", &["j1"]).await?.stop, ["j1"]);
    same!(requests(world).await?.len(), 0);
    Ok(())
}

/// A refused call takes no request.
async fn more_than_1000_runs_are_refused(world: &World) -> Outcome {
    let many: Vec<_> = (0..1_001).map(|n| format!("j{n}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let claimed: Claimed = world.started("j1").await?;
    request(world, "j1").await?;
    check!(ask(world, "w1", &many).await.is_err());
    same!(requests(world).await?, ["j1"]);
    same!(ask(world, "w1", &many[1..]).await?.stop, ["j1"]);
    world.pass(LEASE_MS);
    world.finish(&claimed, "1").await?;
    Ok(())
}
