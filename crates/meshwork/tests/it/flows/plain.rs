//! Flows of plain clients (`HSET flow:…`, `HSET job:…`, `LPUSH`) beside plain runners, on a clock that the test sets.

use meshwork_broker::flow::Flows;
use meshwork_model::keys::context::FlowId;

use super::time::{LOOK, Timed};
use super::*;

const FLOW: FlowId = FlowId(33);
const SECOND: Duration = Duration::from_secs(1);

/// Writes records as a plain client does.
struct PlainClient {
    timed: Timed,
    flows: Flows,
}

impl PlainClient {
    async fn new(layout: ContextLayout) -> Self {
        let timed = Timed::of(FLOW, layout).await;
        let flows = Flows::of(&timed.broker).unwrap();
        Self { timed, flows }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.flows.keys().prefix())
    }

    async fn write(&self, name: &str, fields: &[&str]) {
        let key = self.key(name);
        let times = ["created_at", "1700000000", "updated_at", "1700000000"];
        let words = [
            &["HSET", &key, "context_id", "7", "caller_id", "12"],
            &times[..],
            fields,
        ];
        self.timed.raw::<()>(&words.concat()).await;
    }

    async fn flow(&self, jobs: &str) {
        let env = "{\"A\":\"flow\",\"B\":\"flow\"}";
        let fields = ["id", "33", "jobs", jobs, "env_vars", env, "result", "{}"];
        self.write(
            "flow:33",
            &[&fields[..], &["status", "dispatched"]].concat(),
        )
        .await;
    }

    /// A job in its queue.
    async fn job(&self, id: &str, status: &str, dependends: &str) {
        let name = format!("job:12:{id}");
        let fields = [
            "id",
            id,
            "script",
            "1",
            "script_type",
            "osis",
            "timeout",
            "60",
        ];
        let more = ["retries", "0", "prerequisites", "[]", "result", "{}"];
        let env = ["env_vars", "{\"B\":\"job\"}", "dependends", dependends];
        self.write(
            &name,
            &[&fields[..], &more, &env, &["status", status]].concat(),
        )
        .await;
        let words = ["LPUSH", &self.key("queue:osis"), &self.key(&name)];
        self.timed.raw::<()>(&words).await;
    }

    async fn field(&self, name: &str, field: &str) -> String {
        let found: Option<String> = self.timed.raw(&["HGET", &self.key(name), field]).await;
        found.unwrap_or_default()
    }

    /// Runs the next job as a plain runner.
    async fn run(&self, result: &str) {
        let job = self.timed.take().await.unwrap();
        let end = ["HSET", &job, "status", "finished", "result", result];
        self.timed.raw::<()>(&end).await;
    }

    async fn found(&self) -> Vec<FlowId> {
        self.flows.sweep(0).await.unwrap().found
    }
}

#[tokio::test]
async fn a_plain_flow_has_its_environment_status_and_result() {
    for layout in ContextLayout::ALL {
        let client = PlainClient::new(layout).await;
        client.flow("[1,2]").await;
        client.job("1", "dispatched", "[]").await;
        client.job("2", "waiting_for_prerequisites", "[1]").await;
        let status = client
            .timed
            .flows
            .status(FLOW)
            .await
            .unwrap_err()
            .to_string();
        assert!(status.contains("was written by another client"), "{status}");
        assert_eq!(client.found().await, [FLOW]);
        let view = client.timed.pass(Duration::ZERO).await;
        assert_eq!(
            (ends(&view).as_str(), view.status.as_str()),
            ("job_1=ready job_2=waiting", "dispatched")
        );
        for job in ["job:12:1", "job:12:2"] {
            let env: Value = serde_json::from_str(&client.field(job, "env_vars").await).unwrap();
            assert_eq!(env, json!({"A": "flow", "B": "job", "FLOW_ID": "33"}));
        }
        assert_eq!(client.found().await, []);
        assert_eq!(
            client.timed.flows.plan(FLOW).await.unwrap().jobs[1].needs[0].as_str(),
            "job_1"
        );
        let first = client.timed.take().await.unwrap();
        let view = client.timed.pass(LOOK).await;
        assert_eq!(
            (ends(&view).as_str(), view.status.as_str()),
            ("job_1=started job_2=waiting", "started")
        );
        let end = [
            "HSET",
            &first,
            "status",
            "finished",
            "result",
            "{\"result\":\"7\"}",
        ];
        client.timed.raw::<()>(&end).await;
        client.run("{\"result\":\"8\"}").await;
        let view = client.timed.pass(LOOK).await;
        assert_eq!(view.status, "finished");
        assert_eq!(client.field("flow:33", "status").await, "finished");
        assert_eq!(client.field("flow:33", "result").await, "{\"2\":\"8\"}");
        let from = meshwork::flow::run::RetryFrom::Job("job_1".to_owned());
        let refused = client.timed.flows.retry(FLOW, ActorId(12), &[from]).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("meshwork job retry"), "{refused}");
    }
}

#[tokio::test]
async fn a_plain_flow_is_cancelled() {
    for layout in ContextLayout::ALL {
        let client = PlainClient::new(layout).await;
        client.flow("[1]").await;
        client.job("1", "dispatched", "[]").await;
        assert!(client.timed.flows.cancel(FLOW, true).await.unwrap());
        let view = client.timed.pass(Duration::ZERO).await;
        assert_eq!(ends(&view), "job_1=stopped");
        assert_eq!(view.error.as_deref(), Some("stopped"));
        assert_eq!(client.field("job:12:1", "status").await, "error");
    }
}

#[tokio::test]
async fn a_failure_stops_no_other_job_of_a_plain_flow() {
    for layout in ContextLayout::ALL {
        let client = PlainClient::new(layout).await;
        client.flow("[1,2]").await;
        client.job("1", "dispatched", "[]").await;
        client.job("2", "dispatched", "[]").await;
        client.found().await;
        client.timed.pass(Duration::ZERO).await;
        let job = client.timed.take().await.unwrap();
        let failed = [
            "HSET",
            &job,
            "status",
            "error",
            "result",
            "{\"error\":\"boom\"}",
        ];
        client.timed.raw::<()>(&failed).await;
        assert_eq!(
            ends(&client.timed.pass(LOOK).await),
            "job_1=error job_2=ready"
        );
        client.run("{\"result\":\"8\"}").await;
        let view = client.timed.pass(LOOK).await;
        assert_eq!(ends(&view), "job_1=error job_2=finished");
        assert_eq!(view.error.as_deref(), Some("job `job_1`: boom"));
    }
}

#[tokio::test]
async fn jobs_that_come_later_are_waited_for() {
    for layout in ContextLayout::ALL {
        let client = PlainClient::new(layout).await;
        client.flow("[1,2,9]").await;
        client.job("1", "dispatched", "[]").await;
        client.found().await;
        client.timed.steps(Duration::ZERO).await;
        assert!(client.field("job:12:1", "env_vars").await.contains("flow"));
        assert!(client.timed.flows.status(FLOW).await.is_err());
        client.job("2", "finished", "[]").await;
        client.timed.steps(SECOND).await;
        assert!(client.timed.flows.status(FLOW).await.is_err());
        // The third one never comes.
        let view = client.timed.pass(Duration::from_secs(60)).await;
        assert_eq!(ends(&view), "job_1=ready job_2=finished job_9=error");
        client.run("{\"result\":\"8\"}").await;
        let view = client.timed.pass(LOOK).await;
        assert_eq!(
            view.error.as_deref(),
            Some("job `job_9`: its record is gone")
        );
    }
}

#[tokio::test]
async fn a_plain_flow_that_cannot_be_read_ends_with_the_reason() {
    for layout in ContextLayout::ALL {
        let client = PlainClient::new(layout).await;
        client.flow("job:12:1").await;
        assert_eq!(client.found().await, [FLOW]);
        client.timed.steps(Duration::ZERO).await;
        assert_eq!(client.field("flow:33", "status").await, "error");
        let why = client.field("flow:33", "error").await;
        assert!(why.contains("`jobs` is no JSON array"), "{why}");
        let said = client
            .timed
            .flows
            .status(FLOW)
            .await
            .unwrap_err()
            .to_string();
        assert!(said.contains(&why), "{said}");
        assert_eq!(client.found().await, []);
    }
}

/// Jobs that need each other, and the same one twice.
#[tokio::test]
async fn odd_jobs_of_a_plain_flow_do_no_harm() {
    let client = PlainClient::new(ContextLayout::Db).await;
    client.flow("[1,2,1]").await;
    client.job("1", "dispatched", "[2]").await;
    client.job("2", "dispatched", "[1]").await;
    client.found().await;
    let view = client.timed.pass(Duration::ZERO).await;
    assert_eq!(ends(&view), "job_1=waiting job_2=waiting");
    client.timed.let_pass(Duration::from_secs(60));
    client.timed.broker.check_orphans().await.unwrap();
    let view = client.timed.pass(LOOK).await;
    assert_eq!(ends(&view), "job_1=error job_2=error");
    assert_eq!(view.status, "error");
}

#[tokio::test]
async fn a_step_that_is_killed_takes_up_no_flow_by_half() {
    for polls in 1..=30 {
        let client = PlainClient::new(ContextLayout::Prefix).await;
        client.flow("[1,2,3]").await;
        for id in ["1", "2", "3"] {
            client.job(id, "dispatched", "[]").await;
        }
        client.found().await;
        let stepper = Stepper::new(&client.timed.broker).unwrap();
        let _ = killed_after(polls, stepper.step()).await;
        // The lease of the killed one ends.
        let view = client.timed.pass(Duration::from_secs(11)).await;
        assert_eq!(
            ends(&view),
            "job_1=ready job_2=ready job_3=ready",
            "{polls}"
        );
        for _ in 0..3 {
            client.run("{\"result\":\"8\"}").await;
        }
        assert_eq!(client.timed.pass(LOOK).await.status, "finished");
        let result = client.field("flow:33", "result").await;
        assert_eq!(result, "{\"1\":\"8\",\"2\":\"8\",\"3\":\"8\"}");
    }
}
