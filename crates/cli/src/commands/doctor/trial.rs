//! One job on the whole path, as clients and workers go: enqueue, claim, completion, in a queue of its own.

use std::time::Duration;

use meshwork::{Client, JobRequest, Target};
use meshwork_broker::doctor::{Finding, Level};
use meshwork_broker::{Arrived, Broker, Claim, PrefetchLists, WaitingClaim};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::{JobId, Namespace, ScriptType};
use meshwork_model::time::duration_of;
use tokio::time::Instant;

/// Type of the job, which no worker runs.
const TYPE: &str = "meshwork-doctor";
/// Longest time of all steps: a server that is slower makes each command late.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest wait for the job, which is there already.
const WAIT: Duration = Duration::from_secs(5);
/// Lease of the claim: after a kill of this command, a later one finds the job again.
const LEASE: Duration = Duration::from_secs(10);
/// Jobs of killed commands that are completed on the way.
const MOST: usize = 100;

/// Runs the job, and returns what came of it.
pub(super) async fn check(target: &Target, namespace: &Namespace) -> Finding {
    const CHECK: &str = "trial";
    let began = Instant::now();
    let late = || Err("no answer within 10 s".to_owned());
    let trial = tokio::time::timeout(LONGEST, Box::pin(trial(target, namespace)));
    match trial.await.unwrap_or_else(|_| late()) {
        Ok(()) => Finding {
            check: CHECK,
            level: Level::Ok,
            what: format!(
                "a job was enqueued, claimed, completed and deleted in {}",
                duration_of(began.elapsed())
            ),
            why: None,
            remedy: None,
        },
        Err(fault) => Finding {
            check: CHECK,
            level: Level::Problem,
            remedy: Some(remedy(&fault).to_owned()),
            what: fault,
            why: Some("jobs do not work here: clients and workers fail in the same way"),
        },
    }
}

fn remedy(fault: &str) -> &'static str {
    let known = [
        ("NOAUTH", "give user and password in the URL (REDIS_URL)"),
        (
            "WRONGPASS",
            "correct user and password in the URL (REDIS_URL)",
        ),
        ("NOPERM", "give the user the rights of docs/operations.md"),
        (
            "does not have the command",
            "give the server all its commands: remove rename-command from its configuration",
        ),
        (
            "nknown command",
            "give the server all its commands: remove rename-command from its configuration",
        ),
        ("READONLY", "name the master, or its sentinels, in the URL"),
        ("OOM", "give the server more memory (maxmemory)"),
        ("MISCONF", "give the server room on its disk"),
    ];
    let found = known.iter().find(|(word, _)| fault.contains(word));
    found.map_or("remove the fault, and run doctor again", |(_, remedy)| {
        remedy
    })
}

/// Returns the text for an error of a step.
fn at<E: ToString>(step: &'static str) -> impl Fn(E) -> String {
    move |error| match error.to_string() {
        // An error of the store begins with its verb.
        text if text.contains(" failed: ") => text,
        text => format!("{step} failed: {text}"),
    }
}

/// Returns the step that failed, and why.
async fn trial(target: &Target, namespace: &Namespace) -> Result<(), String> {
    let keys = JobKeys::new(namespace.clone());
    let broker = Broker::connect(target, keys).await;
    let client = Client::new(broker.map_err(at("the connection"))?.acting_as("doctor"));
    let name: ScriptType = TYPE.parse().map_err(at("the name"))?;
    let queue = client.broker().keys().work_queue_type(&name);
    let enqueued = client.enqueue(JobRequest::new(name, "doctor")).await;
    let id = enqueued.map_err(at("enqueue"))?;
    let ran = run(&client, &queue, &id).await;
    if ran.is_err() {
        // A later command finds what is left.
        let _ = client.delete(&id).await;
    }
    ran
}

/// Claims and completes the jobs of the queue up to this one.
async fn run(client: &Client, queue: &str, id: &JobId) -> Result<(), String> {
    let broker = client.broker();
    let blocking = broker.blocking_conn().await.map_err(at("the connection"))?;
    let worker = format!("doctor.{}.{id}", std::process::id());
    for number in 0..MOST {
        let token = format!("{worker}.{number}");
        let waiting = WaitingClaim {
            list: queue,
            requeue_to: queue,
            wait: WAIT,
            lease: LEASE,
            worker: &worker,
            token: &token,
        };
        let arrived = broker.wait_and_claim(&blocking, &waiting).await;
        let claimed = match arrived.map_err(at("claim"))? {
            Arrived::Jobs(claimed) => claimed,
            Arrived::Nothing => return Err("claim failed: the job did not arrive".to_owned()),
            Arrived::Id => {
                let claim = Claim {
                    queues: &[queue.to_owned()],
                    old: &[],
                    reverse: false,
                    prefetch: PrefetchLists::All,
                    want: 1,
                    ahead: 0,
                    lease: LEASE,
                    worker: &worker,
                    token: &token,
                };
                broker.claim(claim).await.map_err(at("claim"))?
            }
        };
        for job in claimed.jobs {
            let completed = broker.complete(&job, b"", b"", b"").await;
            completed.map_err(at("completion"))?;
            let of_trial = JobId::foreign(job.job.id.clone());
            let deleted = client.delete(&of_trial).await;
            deleted.map_err(at("delete"))?;
            if of_trial == *id {
                return Ok(());
            }
        }
    }
    Err(format!("claim failed: the queue {queue} has too many jobs"))
}
