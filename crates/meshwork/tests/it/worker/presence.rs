//! Registration: names, discovery, targeting. Called by the tests of the worker.

use std::time::Duration;

use meshwork::{Client, Error, JobRequest};
use meshwork_model::job::NewJob;
use meshwork_test_servers::eventually;

use super::{PATIENCE, worker};
use crate::worker_support::{Gate, Scripted, osis, raw};

const KEY: &str = "hero:meta:actor:inst:osis:default:1";

pub(crate) async fn a_second_worker_of_a_name_is_refused(client: Client) {
    let one = || worker(&client, &Scripted::echo()).instance("1".parse().unwrap());
    let first = one().start().await.unwrap();
    let refused = one().start().await.unwrap_err();
    let Error::WorkerNameTaken { pid, since, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*pid, std::process::id().to_string());
    let said = refused.to_string();
    assert!(
        said.contains("osis worker 1 of group default") && said.contains(since),
        "{said}"
    );
    // Without a name there may be as many as you like, and the first is as it was.
    let unnamed = worker(&client, &Scripted::echo()).start().await.unwrap();
    let request = JobRequest::new(osis(), "x").instance("1".parse().unwrap());
    client.run(request).await.unwrap();
    first.stop().await;
    let again = one().start().await.unwrap();
    // One that is only dropped gives its name back too.
    drop(again);
    let last = eventually("the name is free", PATIENCE, async || {
        one().start().await.ok()
    })
    .await;
    last.stop().await;
    unnamed.stop().await;
    assert_eq!(client.workers().await.unwrap(), []);
}

pub(crate) async fn the_name_of_a_process_that_is_gone_is_free_at_once(client: Client) {
    let one = || worker(&client, &Scripted::echo()).instance("1".parse().unwrap());
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let first = one().start().await.unwrap();
    let value: String = raw(&client, &["GET", KEY]).await;
    first.stop().await;
    let own = format!("\"pid\":{}", std::process::id());
    let gone = value.replace(&own, &format!("\"pid\":{}", child.id()));
    let gone = gone.replace("\"incarnation\":\"", "\"incarnation\":\"other");
    let _: String = raw(&client, &["SET", KEY, &gone, "EX", "15"]).await;
    let second = one().start().await.unwrap();
    second.stop().await;
    // The same pid on another host says nothing.
    let elsewhere = gone
        .replace("\"hostname\":\"", "\"hostname\":\"not-")
        .replace("\"pid_counted_in\":\"", "\"pid_counted_in\":\"not-");
    let _: String = raw(&client, &["SET", KEY, &elsewhere, "EX", "15"]).await;
    let refused = one().name_timeout(Duration::ZERO).start().await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("on host not-"), "{refused}");
    // It is not refreshed, as after the restart of a container: its registration ends.
    let _: String = raw(&client, &["SET", KEY, &elsewhere, "PX", "1000"]).await;
    one().start().await.unwrap().stop().await;
    // It is refreshed: it lives.
    let _: String = raw(&client, &["SET", KEY, &elsewhere, "EX", "15"]).await;
    let refresh = async {
        for beat in 0.. {
            let heartbeat = format!("\"last_heartbeat\":\"{beat}");
            let refreshed = elsewhere.replace("\"last_heartbeat\":\"", &heartbeat);
            let _: String = raw(&client, &["SET", KEY, &refreshed, "EX", "15"]).await;
        }
    };
    let refused = tokio::select! {
        started = one().start() => started.unwrap_err(),
        () = refresh => unreachable!("it has no end"),
    };
    assert!(
        matches!(refused, Error::WorkerNameTaken { certain: false, .. }),
        "{refused}"
    );
}

pub(crate) async fn workers_are_found_ours_and_others(client: Client) {
    let ours = worker(&client, &Scripted::echo())
        .runtime("sal".parse().unwrap(), Scripted::echo())
        .group("io".parse().unwrap())
        .instance("7".parse().unwrap())
        .concurrency(3);
    let ours = ours.start().await.unwrap();
    let theirs = "hero:meta:actor:inst:v:default:2";
    let _: String = raw(
        &client,
        &["SET", theirs, "{\"pid\": 12, \"hostname\": \"far\"}"],
    )
    .await;
    let workers = client.workers().await.unwrap();
    let names: Vec<_> = workers
        .iter()
        .map(|worker| {
            (
                worker.script_type.as_str(),
                worker.group.as_str(),
                worker.instance.as_str(),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("osis", "io", "7"),
            ("sal", "io", "7"),
            ("v", "default", "2")
        ]
    );
    let sal = &workers[1];
    assert_eq!(sal.capabilities, ["osis", "sal"]);
    assert_eq!((sal.in_flight, sal.slots), (Some(0), Some(3)));
    assert_eq!(sal.worker.as_deref(), Some(ours.name()));
    assert!(sal.named && sal.started_at.is_some() && sal.last_heartbeat.is_some());
    assert_eq!((workers[2].pid, workers[2].slots), (Some(12), None));
    ours.stop().await;
    assert_eq!(client.workers().await.unwrap().len(), 1);
}

pub(crate) async fn a_job_goes_to_the_worker_with_the_most_room(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let mut workers = Vec::new();
    for name in ["1", "2"] {
        let worker = worker(&client, &runner).concurrency(1);
        let worker = worker.instance(name.parse().unwrap()).start();
        workers.push(worker.await.unwrap());
    }
    let group = "default".parse().unwrap();
    let aimed = async || {
        let request = JobRequest::new(osis(), "x");
        let request = client.to_least_busy(request, &osis(), &group).await;
        request.unwrap().build().unwrap()
    };
    let mut jobs: Vec<NewJob> = Vec::new();
    for n in 1..=2 {
        // The first goes on saying that it is free for a moment.
        let job = eventually("one that is free is chosen", PATIENCE, async || {
            let job = aimed().await;
            let other = |before: &NewJob| before.route.instance != job.route.instance;
            (job.route.instance.is_some() && jobs.iter().all(other)).then_some(job)
        })
        .await;
        client
            .enqueue_built(std::slice::from_ref(&job))
            .await
            .unwrap();
        jobs.push(job);
        gate.wait_for(n).await;
    }
    eventually("both say that they are busy", PATIENCE, async || {
        let least = client.least_busy(&osis(), &group).await.unwrap();
        least.is_none().then_some(())
    })
    .await;
    let any = aimed().await;
    client
        .enqueue_built(std::slice::from_ref(&any))
        .await
        .unwrap();
    gate.open();
    for job in &jobs {
        let ran = client.result(&job.id, PATIENCE).await.unwrap();
        let target = job.route.instance.as_ref().unwrap().as_str();
        assert!(ran.worker.unwrap().starts_with(&format!("{target}.")));
    }
    let any = client.result(&any.id, PATIENCE).await.unwrap();
    assert_eq!(
        (any.group.as_deref(), any.instance),
        (Some("default"), None)
    );
    for worker in workers {
        worker.stop().await;
    }
}
