//! Jobs that many tasks enqueue one by one: they share calls, and each task gets the answer for its job.

use std::pin::pin;

use futures_util::future::{join_all, poll_immediate};
use meshwork::{Client, Error, JobRequest};
use meshwork_model::name::JobId;
use meshwork_test_servers::servers::RealServer;

/// A client on a server that holds back all writes.
struct Paused {
    server: RealServer,
    client: Client,
}

impl Paused {
    async fn start() -> Option<Self> {
        let server = RealServer::redis().start()?;
        let client = Client::open(&server.url()).await.unwrap();
        client.broker().load().await.unwrap();
        server.say::<()>(&["CONFIG", "RESETSTAT"]).unwrap();
        server
            .say::<()>(&["CLIENT", "PAUSE", "600000", "WRITE"])
            .unwrap();
        Some(Self { server, client })
    }

    fn resume(&self) {
        self.server.say::<()>(&["CLIENT", "UNPAUSE"]).unwrap();
    }

    /// Enqueues these jobs at the same time, and lets writes go on once all calls have begun.
    async fn enqueue(&self, jobs: Vec<JobRequest>) -> Vec<Result<JobId, Error>> {
        let calls = jobs.into_iter().map(|job| async {
            let job = self.client.enqueue(job);
            job.await
        });
        let mut all = pin!(join_all(calls));
        assert!(poll_immediate(&mut all).await.is_none());
        self.resume();
        all.await
    }

    /// Returns the number of calls of scripts.
    fn calls(&self) -> usize {
        let stats: String = self.server.say(&["INFO", "commandstats"]).unwrap();
        let line = stats.lines().find(|line| line.contains("_evalsha:"));
        let calls = line.and_then(|line| line.split("calls=").nth(1)?.split(',').next());
        calls.map_or(0, |calls| calls.parse().unwrap())
    }
}

fn job(script_type: &str, id: usize) -> JobRequest {
    JobRequest::new(script_type.parse().unwrap(), "1").id(format!("j{id}").parse().unwrap())
}

#[tokio::test]
async fn jobs_of_many_tasks_share_calls() {
    let Some(paused) = Paused::start().await else {
        return;
    };
    let ids: Vec<String> = (0..250).map(|id| format!("j{id}")).collect();
    let stored = paused
        .enqueue((0..250).map(|id| job("osis", id)).collect())
        .await;
    let stored: Vec<_> = stored
        .into_iter()
        .map(|id| id.unwrap().to_string())
        .collect();
    assert_eq!(stored, ids);
    // Up to a hundred in each.
    assert_eq!(paused.calls(), 3);
    let waiting = paused.client.queues().await.unwrap()[0].waiting;
    assert_eq!(waiting, 250);
}

#[tokio::test]
async fn a_job_that_cannot_be_stored_affects_no_other() {
    let Some(paused) = Paused::start().await else {
        return;
    };
    // Of another type than a queue.
    paused.resume();
    let queue = "hero:q:work:type:sal";
    paused.server.say::<()>(&["SET", queue, "1"]).unwrap();
    paused
        .server
        .say::<()>(&["CLIENT", "PAUSE", "600000", "WRITE"])
        .unwrap();
    let mut jobs: Vec<_> = (0..20).map(|id| job("osis", id)).collect();
    jobs.insert(10, job("sal", 20));
    jobs.insert(15, job("osis", 3));
    let stored = paused.enqueue(jobs).await;
    for (at, stored) in stored.iter().enumerate() {
        match (at, stored) {
            (10, Err(error)) => assert!(error.to_string().contains(queue), "{error}"),
            (10, Ok(id)) => panic!("{id} is stored"),
            (_, Ok(_)) => {}
            // After a call that failed, the existing job counts as stored by it.
            (_, Err(error)) => panic!("{at}: {error}"),
        }
    }
    assert_eq!(paused.client.queues().await.unwrap()[0].waiting, 20);
}

#[tokio::test]
async fn each_task_hears_of_its_own_job() {
    let Some(paused) = Paused::start().await else {
        return;
    };
    let mut jobs: Vec<_> = (0..20).map(|id| job("osis", id)).collect();
    jobs[15] = job("osis", 3);
    let stored = paused.enqueue(jobs).await;
    for (at, stored) in stored.into_iter().enumerate() {
        match stored {
            Ok(id) if at != 15 => assert_eq!(id.to_string(), format!("j{at}")),
            Err(Error::JobExists { id }) if at == 15 => assert_eq!(id.to_string(), "j3"),
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_job_whose_task_was_dropped_before_its_call_is_not_stored() {
    let Some(paused) = Paused::start().await else {
        return;
    };
    let enqueue = async |id| paused.client.enqueue(job("osis", id)).await;
    let mut first = pin!(join_all([enqueue(0), enqueue(1)]));
    assert!(poll_immediate(&mut first).await.is_none());
    {
        let dropped = pin!(enqueue(2));
        assert!(poll_immediate(dropped).await.is_none());
    }
    let kept = paused.enqueue(vec![job("osis", 3)]).await;
    assert!(kept[0].is_ok());
    first.await.into_iter().for_each(|stored| {
        stored.unwrap();
    });
    assert_eq!(paused.client.queues().await.unwrap()[0].waiting, 3);
}
