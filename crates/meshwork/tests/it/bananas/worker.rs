//! The worker: jobs run, fail, run again, are released, and find their way.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use meshwork::protocol::bananas::{Request, Worker};
use meshwork::runtime::JobContext;
use meshwork_model::bananas::{ClientVariant, Cron, NewJob};
use meshwork_model::name::JobId;
use meshwork_model::schedule::timing::Timing;
use meshwork_test_servers::eventually;
use tokio::sync::{Notify, mpsc};

use super::support::{BOUND, Ground, LEASE};

/// A handler's result reaches each variant of client.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_each_make_runs() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let routes = "gpu,default".parse().unwrap();
    let worker = ground.worker().routes(routes).start().await.unwrap();
    for peer in ClientVariant::ALL {
        for route in [None, Some("gpu")] {
            let client = ground.client.clone().with_variant(peer);
            let mut request = Request::raw("echo", "{\"n\":12345678901234567890}");
            if let Some(route) = route {
                request = request.route(route.parse().unwrap());
            }
            let id = client.enqueue(request).await.unwrap();
            let outcome = client.wait(&id, BOUND).await.unwrap();
            assert!(outcome.succeeded, "{peer}: {outcome:?}");
            let job = client.get(&id).await.unwrap();
            assert_eq!(job.word("status"), "completed");
            assert!(job.payload().contains("12345678901234567890"), "{peer}");
        }
    }
    ground.quiet().await;
    assert_eq!(worker.stop().await, 0);
    let left = ground.left().await;
    assert!(left.is_empty(), "{left:?}");
}

/// Bananas' Go client gives up on any other word.
#[tokio::test(flavor = "multi_thread")]
async fn the_word_is_ready() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let address = ground.url();
    let address = address.trim_start_matches("redis://").split('/').next();
    let mut stream = TcpStream::connect(address.unwrap()).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream
        .write_all(b"SUBSCRIBE bananas:result:notify:heard\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut heard = |word: &str| lines.by_ref().any(|line| line.unwrap() == word);
    assert!(heard("subscribe"));
    let worker = ground.worker().start().await.unwrap();
    let request = Request::raw("echo", "1").id("heard".parse().unwrap());
    ground.client.enqueue(request).await.unwrap();
    assert!(heard("message") && heard("ready"));
    worker.stop().await;
}

/// After two seconds, then it is a dead letter; those who wait for it hear of its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_tried_again_and_ends_as_a_dead_letter() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let worker = ground.worker().start().await.unwrap();
    let request = Request::new("fail", &()).unwrap().max_retries(2);
    let began = Instant::now();
    let id = ground.client.enqueue(request).await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(outcome.error.as_deref(), Some("boom"));
    let job = ground.client.get(&id).await.unwrap();
    assert_eq!((job.attempts(), job.word("status").as_str()), (2, "failed"));
    assert_eq!(
        ground.client.dead_letters(0).await.unwrap(),
        [id.to_string()]
    );
    ground.quiet().await;
    worker.stop().await;
}

/// A foreign worker takes it, and nobody is notified.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_a_handler_has_a_result() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let worker = ground.worker().start().await.unwrap();
    let request = Request::raw("nobody", "1").max_retries(1);
    let id = ground.client.enqueue(request).await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    let error = outcome.error.unwrap();
    assert!(error.contains("no handler") && error.contains("nobody"));
    worker.stop().await;
}

/// Its runs end with its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_its_time_fails() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let stuck = async |(): (), context: JobContext| {
        context.stop.cancelled().await;
        Ok::<_, String>(())
    };
    let worker = ground.worker().handle("stuck", stuck);
    let worker = worker.timeout(Duration::from_millis(100));
    let worker = worker.start().await.unwrap();
    let request = Request::raw("stuck", "null").max_retries(1);
    let id = ground.client.enqueue(request).await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert_eq!(outcome.error.as_deref(), Some("timeout"));
    ground.quiet().await;
    worker.stop().await;
}

/// A script finds the payload where scripts find their input.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_a_handler() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("count.rhai");
    std::fs::write(
        &path,
        "let items = parse_json(INPUT).items; items.len() * 2",
    )
    .unwrap();
    let worker = Worker::new(&ground.client).script("count", &path).unwrap();
    assert!(worker.knows("count") && !worker.knows("other"));
    let worker = worker.start().await.unwrap();
    let request = Request::raw("count", "{\"items\":[1,2,3]}");
    let id = ground.client.enqueue(request).await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert_eq!(outcome.result.as_deref(), Some("6"), "{outcome:?}");
    worker.stop().await;
}

/// A handler that ends on a signal.
pub(crate) fn held(ground: &Ground, started: mpsc::UnboundedSender<()>, go: Arc<Notify>) -> Worker {
    let handler = move |(): (), _: JobContext| {
        let (started, go) = (started.clone(), Arc::clone(&go));
        async move {
            let _ = started.send(());
            go.notified().await;
            Ok::<_, String>(())
        }
    };
    ground.worker().handle("held", handler)
}

/// A killed worker's job returns within a lease, and no key of Meshwork remains where Bananas' tools look.
#[tokio::test(flavor = "multi_thread")]
async fn the_job_of_a_worker_that_is_gone_comes_back() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let id = ground
        .client
        .enqueue(Request::raw("echo", "1"))
        .await
        .unwrap();
    let claim = meshwork_broker::bananas::Claim {
        lists: &["bananas:queue:normal".to_owned()],
        want: 1,
        lease: LEASE,
        worker: "gone",
        token: "gone.1",
    };
    let taken = ground.client.broker().claim(claim).await.unwrap();
    assert_eq!(taken.jobs.len(), 1);
    let worker = ground.worker().start().await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert!(outcome.succeeded);
    ground.quiet().await;
    worker.stop().await;
}

/// A job that kills its workers becomes a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_lost_too_many_workers_is_dead() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let id = ground
        .client
        .enqueue(Request::raw("echo", "1"))
        .await
        .unwrap();
    let lost = format!("bananas:mw:lost:{id}");
    ground.say::<()>(&["SET", &lost, "5"]).await;
    let worker = ground.worker().start().await.unwrap();
    let outcome = ground.client.wait(&id, BOUND).await.unwrap();
    assert!(outcome.error.unwrap().contains("5 workers"));
    worker.stop().await;
}

/// Two of Bananas' schedulers may push one id twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_is_not_run_again() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let record = "{\"name\":\"echo\",\"status\":\"completed\",\"payload\":1}";
    ground.put("bananas:queue:normal", "done", record).await;
    let worker = ground.worker().start().await.unwrap();
    eventually("it is off the list", BOUND, async || {
        let left: usize = ground.say(&["LLEN", "bananas:queue:normal"]).await;
        (left == 0).then_some(())
    })
    .await;
    ground.quiet().await;
    assert_eq!(ground.record("done").await, record);
    let there: u8 = ground.say(&["EXISTS", "bananas:result:done"]).await;
    assert_eq!(there, 0);
    worker.stop().await;
}

/// Bananas' order, over lists that fill while the only slot is taken.
#[tokio::test(flavor = "multi_thread")]
async fn route_by_route_and_by_urgency() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&order);
    let (started, mut starts) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let note = move |word: String, _: JobContext| {
        noted.lock().unwrap().push(word);
        async { Ok::<_, String>(()) }
    };
    let worker = held(&ground, started, Arc::clone(&go))
        .handle("note", note)
        .routes("gpu,default".parse().unwrap())
        .concurrency(1)
        .start()
        .await
        .unwrap();
    ground
        .client
        .enqueue(Request::raw("held", "null"))
        .await
        .unwrap();
    starts.recv().await.unwrap();
    let mut last = None;
    for route in ["default", "gpu"] {
        for priority in ["low", "high", "normal"] {
            let word = format!("{route} {priority}");
            let request = Request::new("note", &word).unwrap();
            let request = request.route(route.parse().unwrap());
            let request = request.priority(priority.parse().unwrap());
            let id = ground.client.enqueue(request).await.unwrap();
            if word == "default low" {
                last = Some(id);
            }
        }
    }
    go.notify_one();
    ground.client.wait(&last.unwrap(), BOUND).await.unwrap();
    let expected = [
        "gpu high",
        "gpu normal",
        "gpu low",
        "default high",
        "default normal",
        "default low",
    ];
    assert_eq!(*order.lock().unwrap(), expected);
    worker.stop().await;
}

/// A job for later runs then, not before.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_time() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let worker = ground.worker().start().await.unwrap();
    let time: (u64, u64) = ground.say(&["TIME"]).await;
    let due = time.0 * 1000 + time.1 / 1000 + 1_500;
    let began = Instant::now();
    for peer in [ClientVariant::Go, ClientVariant::Python] {
        let client = ground.client.clone().with_variant(peer);
        let request = Request::raw("echo", "1").at_ms(due);
        let id = client.enqueue(request).await.unwrap();
        assert!(client.wait(&id, BOUND).await.unwrap().succeeded);
        assert!(began.elapsed() >= Duration::from_millis(1_400));
    }
    worker.stop().await;
}

/// Slot by slot, with one worker or two.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_asks_for_jobs() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let note = move |word: String, context: JobContext| {
        let _ = started.send((word, context.job_id));
        async { Ok::<_, String>(()) }
    };
    let worker = || ground.worker().handle("note", note.clone());
    let (one, two) = (
        worker().start().await.unwrap(),
        worker().start().await.unwrap(),
    );
    let mut job = NewJob::new(JobId::foreign(String::new()), "note", "\"tick\"");
    job.description = "often".to_owned();
    let cron = Cron {
        name: "often".parse().unwrap(),
        timing: Timing::new("* * * * * *".parse().unwrap()),
        job,
    };
    ground.client.put_schedule(&cron, false).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (word, id) = starts.recv().await.unwrap();
        assert_eq!(word, "tick");
        ids.push(id);
    }
    ground.client.delete_schedule(&cron.name).await.unwrap();
    let state: HashMap<String, String> = ground.say(&["HGETALL", "bananas:schedules:often"]).await;
    let runs: usize = state["run_count"].parse().unwrap();
    eventually("all of its jobs end", BOUND, async || {
        let records: Vec<String> = ground.say(&["KEYS", "bananas:result:*"]).await;
        (records.len() == runs).then_some(())
    })
    .await;
    for id in ids {
        assert!(
            ground
                .record(&id)
                .await
                .contains("\"description\":\"often\"")
        );
    }
    one.stop().await;
    two.stop().await;
    ground.quiet().await;
}

/// Theirs take up to 3.8 s for it. The bound says only that nobody polls: the figure is in docs/bananas.md.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_is_woken() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = mpsc::unbounded_channel();
    let note = move |(): (), _: JobContext| {
        let _ = started.send(Instant::now());
        async { Ok::<_, String>(()) }
    };
    let worker = ground
        .worker()
        .handle("note", note)
        .routes("gpu,default".parse().unwrap())
        .start()
        .await
        .unwrap();
    let lists = worker.queues();
    assert_eq!(lists.len(), 9);
    let mut raw = ground.raw().await;
    let mut took = Vec::new();
    for n in 0..90 {
        let (id, list) = (format!("j{n}"), &lists[n % lists.len()]);
        let record = "{\"name\":\"note\",\"payload\":null}";
        ground
            .say::<()>(&["SET", &format!("bananas:job:{id}"), record])
            .await;
        eventually("it waits", BOUND, async || {
            (ground.waiting().await == 9).then_some(())
        })
        .await;
        let began = Instant::now();
        let pushed = redis::cmd("LPUSH")
            .arg(list)
            .arg(&id)
            .query_async(&mut raw)
            .await;
        let () = pushed.unwrap();
        took.push(starts.recv().await.unwrap().duration_since(began));
        ground.result(&id, "status").await;
    }
    took.sort();
    println!(
        "picked up after {:?}, 9 of 10 within {:?}",
        took[45], took[81]
    );
    // Who looks at nine lists in turn, a while at each, takes seconds.
    assert!(took[45] < Duration::from_secs(1), "{:?}", took[45]);
    worker.stop().await;
}
