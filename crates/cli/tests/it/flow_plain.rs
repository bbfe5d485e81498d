//! Flows that any client of Redis writes, beside a worker of Meshwork, in both layouts.

use crate::common::{Ground, eventually, json};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, ServerOptions};

/// More flows than one, since a worker claims the job before or after the flow was found.
const FLOWS: u32 = 8;
const SCRIPT: &str =
    "import os\nresult = os.environ['PLACE'] + os.environ['OWN'] + os.environ['FLOW_ID']";

/// Fields of a job beside its ids.
const JOB: [&str; 16] = [
    "script",
    SCRIPT,
    "script_type",
    "python",
    "timeout",
    "60",
    "retries",
    "0",
    "prerequisites",
    "[]",
    "env_vars",
    "{\"OWN\":\"job\"}",
    "dependends",
    "[]",
    "status",
    "dispatched",
];

fn plain_flows_run(server: ServerOptions, layout: &str) {
    let Some(server) = server.start() else { return };
    let ground = Ground::url(server.url());
    let create = ["context", "create", "--id", "7", "--layout", layout];
    ground.run(&create).ok();
    let mut worker = ground.start(&["worker", "--json", "--type", "python", "--context", "7"]);
    assert_eq!(json(&worker.line())["event"], "listening");
    let (database, prefix) = if layout == "db" {
        (7, "")
    } else {
        (0, "{ctx:7}:")
    };
    let mut plain = Plain::connect(&server.url_of(database)).unwrap();
    for id in 1..=FLOWS {
        let (flow, job) = (format!("{prefix}flow:{id}"), format!("{prefix}job:12:{id}"));
        let (id, jobs) = (id.to_string(), format!("[{id}]"));
        let env = "{\"PLACE\":\"here\",\"OWN\":\"flow\"}";
        let of = |key, id| ["HSET", key, "id", id, "caller_id", "12", "context_id", "7"];
        let fields = [
            "jobs",
            &jobs,
            "env_vars",
            env,
            "result",
            "{}",
            "status",
            "dispatched",
        ];
        plain
            .ask::<i64>(&[&of(&flow, &id)[..], &fields].concat())
            .unwrap();
        let job_fields = [&of(&job, &id)[..], &JOB].concat();
        plain.ask::<i64>(&job_fields).unwrap();
        let queue = format!("{prefix}queue:python");
        plain.ask::<i64>(&["LPUSH", &queue, &job]).unwrap();
    }
    for id in 1..=FLOWS {
        let flow = format!("{prefix}flow:{id}");
        eventually("the flow has ended", || {
            let status: String = plain.ask(&["HGET", &flow, "status"]).unwrap();
            (status == "finished").then_some(())
        });
        let result: String = plain.ask(&["HGET", &flow, "result"]).unwrap();
        assert_eq!(result, format!("{{\"{id}\":\"herejob{id}\"}}"));
    }
    let view = ["flow", "status", "3", "--context", "7", "--json"];
    let view = ground.run(&view).ok().json();
    assert_eq!(view["outputs"], json("{\"3\": \"herejob3\"}"));
}

#[test]
fn plain_flows_run_on_redis() {
    plain_flows_run(RealServer::redis(), "db");
    plain_flows_run(RealServer::redis(), "prefix");
}

#[test]
fn plain_flows_run_on_valkey() {
    plain_flows_run(RealServer::valkey(), "db");
    plain_flows_run(RealServer::valkey(), "prefix");
}
