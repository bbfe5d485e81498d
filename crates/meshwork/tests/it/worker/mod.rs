//! The worker on a real Redis: claims, leases, releases, and recovery.

mod children;
mod control;
mod duty;
mod holds;
mod keeper;
mod prefetch;
mod presence;
mod routes;
mod slots;
mod stops;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use self::children::*;
use self::control::*;
use self::duty::*;
use self::holds::*;
use self::prefetch::*;
use self::presence::*;
use self::routes::*;
use self::slots::*;
use self::stops::*;
use self::turns::*;
use crate::worker_support::{Gate, Scripted, osis};
use meshwork::{Cancelled, Client, Error, JobRequest, Worker};
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealServer, Tool, shared};

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// A short lease, so that what it brings back comes soon.
const SHORT: Duration = Duration::from_millis(400);
/// A timeout in seconds that no clock can count to.
const ENDLESS: &str = "18446744073709551615";

crate::engines::on_each_engine! {
    a_job_goes_in_and_its_result_comes_out,
    a_handler_gets_children,
    a_run_that_lost_its_job_gets_no_child,
    what_another_client_pushes_is_run_and_answered,
    a_timeout_without_an_end_is_the_longest,
    as_many_jobs_run_at_once_as_there_are_slots,
    prefetched_jobs_return_when_no_slot_becomes_free,
    a_stopping_worker_returns_prefetched_jobs,
    a_prefetched_job_can_be_cancelled,
    a_stopping_worker_hands_back_at_no_cost,
    what_is_handed_back_has_ended_here,
    a_run_that_holds_its_thread_holds_up_no_stop,
    what_runs_is_finished_within_the_grace,
    the_jobs_of_a_worker_that_is_gone_come_back,
    a_running_job_can_be_stopped,
    retries_are_runs_after_the_first,
    a_panic_is_a_failure_and_the_worker_goes_on,
    one_slot_and_three_queues_run_everything_once,
    a_worker_that_stops_soon_leaves_no_trace,
    a_job_that_runs_alone_has_nothing_beside_it,
    the_timeout_of_a_job_that_runs_alone_begins_with_its_turn,
    of_several_that_run_alone_others_may_have_the_rest,
    a_run_that_is_asked_to_stop_says_so,
    a_job_that_waits_for_its_turn_can_be_stopped,
    a_second_worker_of_a_name_is_refused,
    the_name_of_a_process_that_is_gone_is_free_at_once,
    workers_are_found_ours_and_others,
    a_job_goes_to_the_worker_with_the_most_room,
    a_bare_id_stops_a_run_among_ten_workers,
    requests_for_what_does_not_run_here_do_no_harm,
    a_worker_is_stopped_by_its_own_names,
    a_stop_that_control_missed_comes_with_the_renewal,
    old_lists_are_taken_while_their_type_migrates,
    a_retry_comes_when_it_is_due,
    slots_of_a_schedule_come_when_they_are_due,
    the_first_slot_of_a_new_schedule_is_on_time,
    delayed_jobs_come_when_they_are_due,
    a_job_whose_word_is_lost_comes_all_the_same,
    all_who_wait_for_a_job_are_told,
    old_jobs_are_forgotten,
    ids_that_came_to_nobody_are_found,
    what_is_urgent_comes_first_and_starves_nobody,
    an_alias_of_the_default_level_is_taken_from,
    what_is_handed_back_stands_in_its_order,
    what_a_run_says_is_kept_while_it_runs,
    a_paused_queue_holds_up_no_other,
    slow_handlers_keep_all_slots_full,
    the_limit_of_a_queue_makes_it_no_slower_than_its_jobs,
    each_route_has_its_workers,
    routes_come_one_after_the_other,
    routes_with_weights_share,
    bindings_say_where_a_job_goes,
}

fn worker(client: &Client, runner: &Arc<Scripted>) -> Worker {
    Worker::new(client).runtime(osis(), Arc::clone(runner) as _)
}

async fn a_job_goes_in_and_its_result_comes_out(client: Client) {
    let runner = Scripted::echo();
    let worker = worker(&client, &runner).start().await.unwrap();
    let job = client.run(JobRequest::new(osis(), "hello")).await.unwrap();
    assert_eq!(job.output.as_deref(), Some(b"hello".as_slice()));
    assert_eq!((job.status(), job.attempt), (Some(Status::Finished), 1));
    let pong = client.run(JobRequest::new(osis(), "ping")).await.unwrap();
    assert_eq!(pong.output.as_deref(), Some(b"pong".as_slice()));
    assert_eq!(worker.stop().await, 0);
}

async fn what_another_client_pushes_is_run_and_answered(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    worker.registered().await;
    let conn = &mut client.broker().conn().clone();
    let push = redis_pipe(&[
        &[
            "HSET",
            "hero:job:f1",
            "id",
            "f1",
            "script",
            "by hand",
            "status",
            "dispatched",
        ],
        &["LPUSH", "hero:q:work:type:osis", "f1"],
    ]);
    push.exec_async(conn).await.unwrap();
    let mut pop = redis::cmd("BLPOP");
    pop.arg("hero:q:reply:f1").arg(30);
    let conn = &mut client.broker().conn().dedicated().await.unwrap();
    let (_, reply): (String, String) = pop.query_async(conn).await.unwrap();
    assert_eq!(reply, "by hand");
    worker.stop().await;
}

/// Another client wrote the largest number that there is.
async fn a_timeout_without_an_end_is_the_longest(client: Client) {
    let worker = worker(&client, &Scripted::echo()).lease(SHORT);
    let worker = worker.start().await.unwrap();
    let push = redis_pipe(&[
        &[
            "HSET",
            "hero:job:f1",
            "status",
            "dispatched",
            "script",
            "1",
            "timeout",
            ENDLESS,
        ],
        &["LPUSH", "hero:q:work:type:osis", "f1"],
    ]);
    let conn = &mut client.broker().conn().clone();
    push.exec_async(conn).await.unwrap();
    let job = client.wait(&"f1".parse().unwrap(), PATIENCE).await.unwrap();
    let ended = (job.status(), job.attempt, job.lost);
    assert_eq!(ended, (Some(Status::Finished), 1, 0));
    worker.stop().await;
}

fn redis_pipe(commands: &[&[&str]]) -> redis::Pipeline {
    let mut pipe = redis::pipe();
    for command in commands {
        pipe.cmd(command[0]).arg(&command[1..]);
    }
    pipe
}

async fn as_many_jobs_run_at_once_as_there_are_slots(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let worker = worker(&client, &runner)
        .concurrency(3)
        .start()
        .await
        .unwrap();
    let jobs: Vec<_> = (0..5)
        .map(|n| JobRequest::new(osis(), format!("job {n}")).build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    gate.wait_for(3).await;
    assert_eq!(worker.running(), 3);
    let queues = client.queues().await.unwrap();
    let waiting: usize = queues.iter().map(|queue| queue.waiting).sum();
    assert_eq!(waiting, 2, "{queues:?}");
    gate.open();
    for job in &jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    worker.stop().await;
}

async fn a_stopping_worker_hands_back_at_no_cost(client: Client) {
    let gate = Gate::new();
    let first = worker(&client, &Scripted::gated(&gate))
        .shutdown_timeout(Duration::ZERO)
        .start()
        .await
        .unwrap();
    let id = client
        .enqueue(JobRequest::new(osis(), "slow"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    assert_eq!(first.stop().await, 1);
    let job = client.status(&id).await.unwrap();
    assert_eq!(
        (job.status(), job.attempt, job.lost),
        (Some(Status::Dispatched), 0, 0)
    );
    let second = worker(&client, &Scripted::echo()).start().await.unwrap();
    let job = client.result(&id, PATIENCE).await.unwrap();
    assert_eq!((job.attempt, job.lost), (1, 0));
    second.stop().await;
}

async fn what_runs_is_finished_within_the_grace(client: Client) {
    let gate = Gate::new();
    let worker = worker(&client, &Scripted::gated(&gate))
        .start()
        .await
        .unwrap();
    let id = client
        .enqueue(JobRequest::new(osis(), "slow"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    let stopping = tokio::spawn(worker.stop());
    gate.open();
    assert_eq!(stopping.await.unwrap(), 0);
    assert_eq!(
        client.status(&id).await.unwrap().status(),
        Some(Status::Finished)
    );
}

async fn the_jobs_of_a_worker_that_is_gone_come_back(client: Client) {
    let gate = Gate::new();
    let first = worker(&client, &Scripted::gated(&gate))
        .lease(SHORT)
        .start()
        .await
        .unwrap();
    let id = client
        .enqueue(JobRequest::new(osis(), "survivor"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    drop(first);
    let second = worker(&client, &Scripted::echo())
        .lease(SHORT)
        .start()
        .await
        .unwrap();
    let job = client.result(&id, PATIENCE).await.unwrap();
    assert_eq!((job.attempt, job.lost), (1, 1));
    // The first run ends now; its report is stale and changes nothing.
    gate.open();
    second.stop().await;
    let after = client.status(&id).await.unwrap();
    assert_eq!(after.output.as_deref(), Some(b"survivor".as_slice()));
}

#[tokio::test]
async fn a_handler_that_hogs_the_runtime_keeps_its_lease() {
    let Some(database) = shared(Tool::Redis) else {
        return;
    };
    let (client, url) = (Client::open(&database.url()).await.unwrap(), database.url());
    // Returns only when the lease has been extended three times, and holds this test's only thread
    // meanwhile.
    let runner = Scripted::new(move |run| {
        crate::worker_support::block_until_renewed(&url, &run.job.id, 3);
        Report::done("done")
    });
    // A busy host may run the keeper of leases a second late.
    let lease = Duration::from_secs(3);
    let worker = worker(&client, &runner).lease(lease).start().await.unwrap();
    let job = client.run(JobRequest::new(osis(), "hog")).await.unwrap();
    assert_eq!((job.attempt, job.lost), (1, 0));
    worker.stop().await;
}

async fn a_running_job_can_be_stopped(client: Client) {
    let gate = Gate::new();
    let worker = worker(&client, &Scripted::gated(&gate))
        .start()
        .await
        .unwrap();
    let id = client
        .enqueue(JobRequest::new(osis(), "endless"))
        .await
        .unwrap();
    gate.wait_for(1).await;
    assert_eq!(client.cancel(&id).await.unwrap(), Cancelled::Stopping);
    gate.wait_stopped().await;
    eventually("the slot is free again", PATIENCE, async || {
        (worker.running() == 0).then_some(())
    })
    .await;
    let failed = client.result(&id, PATIENCE).await.unwrap_err();
    assert!(
        matches!(&failed, Error::Failed { message, .. } if message == "stopped_by_request"),
        "{failed}"
    );
    worker.stop().await;
}

async fn retries_are_runs_after_the_first(client: Client) {
    let runner = Scripted::new(|run| match run.job.attempt {
        3 => Report::done("third time"),
        n => Report::failed(Failure::new(FailureKind::Script, format!("failure {n}"))),
    });
    let worker = worker(&client, &runner).start().await.unwrap();
    let job = client
        .run(JobRequest::new(osis(), "x").retries(2))
        .await
        .unwrap();
    assert_eq!((job.attempt, job.error), (3, None));
    let failed = client
        .run(JobRequest::new(osis(), "x").retries(1))
        .await
        .unwrap_err();
    assert!(matches!(failed, Error::Failed { message, .. } if message == "failure 2"));
    worker.stop().await;
}

async fn a_panic_is_a_failure_and_the_worker_goes_on(client: Client) {
    let runner = Scripted::new(|run| {
        assert!(run.job.script != b"panic", "on request");
        Report::done("fine")
    });
    let worker = worker(&client, &runner).start().await.unwrap();
    let failed = client
        .run(JobRequest::new(osis(), "panic"))
        .await
        .unwrap_err();
    assert!(matches!(failed, Error::Failed { message, .. } if message.contains("panicked")));
    assert!(
        client
            .run(JobRequest::new(osis(), "no panic"))
            .await
            .is_ok()
    );
    worker.stop().await;
}

async fn one_slot_and_three_queues_run_everything_once(client: Client) {
    let runner = Scripted::echo();
    let mut workers = Vec::new();
    for n in ["1", "2", "3"] {
        let worker = worker(&client, &runner).concurrency(1);
        let worker = worker.instance(n.parse().unwrap()).start();
        workers.push(worker.await.unwrap());
    }
    let mut ids = Vec::new();
    for n in 0..60 {
        let request = JobRequest::new(osis(), format!("job {n}"));
        let request = match n % 3 {
            0 => request,
            1 => request.group("default".parse().unwrap()),
            _ => request.instance(format!("{}", n % 9 / 3 + 1).parse().unwrap()),
        };
        ids.push(client.enqueue(request).await.unwrap());
    }
    for id in &ids {
        let job = client.result(id, PATIENCE).await.unwrap();
        assert_eq!((job.attempt, job.lost), (1, 0), "{}", job.id);
    }
    assert_eq!(runner.runs(), 60);
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(client.broker().running().await.unwrap(), 0);
    assert!(
        client.queues().await.unwrap().is_empty(),
        "nobody listens, nothing waits"
    );
}

/// Stopping meets the first wait and the first renewal on their way.
async fn a_worker_that_stops_soon_leaves_no_trace(client: Client) {
    for round in 0..50 {
        let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
        client.run(JobRequest::new(osis(), "short")).await.unwrap();
        worker.stop().await;
        let queues = client.queues().await.unwrap();
        assert!(queues.is_empty(), "round {round}: {queues:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_no_job() {
    let Some(mut server) = RealServer::redis().append_only().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let worker = worker(&client, &Scripted::echo())
        .lease(SHORT)
        .start()
        .await
        .unwrap();
    for round in 0..3 {
        let id = client
            .enqueue(JobRequest::new(osis(), format!("{round} a")))
            .await
            .unwrap();
        client.result(&id, PATIENCE).await.unwrap();
        tokio::task::block_in_place(|| server.restart());
        let id = client
            .enqueue(JobRequest::new(osis(), format!("{round} b")))
            .await
            .unwrap();
        client.result(&id, PATIENCE).await.unwrap();
    }
    worker.stop().await;
}
