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

/// Writes flows as a plain client does: whole records, and pushes of what can start.
struct Client {
    plain: Plain,
    prefix: &'static str,
}

impl Client {
    fn flow(&mut self, id: &str, jobs: &str) {
        let key = format!("{}flow:{id}", self.prefix);
        let of = ["HSET", &key, "id", id, "caller_id", "12", "context_id", "7"];
        let fields = ["jobs", jobs, "env_vars", "{\"A\":\"x\"}", "result", "{}"];
        let status = ["status", "dispatched", "created_at", "1700000000"];
        let words = [&of[..], &fields, &status].concat();
        self.plain.ask::<i64>(&words).unwrap();
    }

    fn job(&mut self, (id, script_type): (&str, &str), needs: &str, script: &str) {
        let key = format!("{}job:12:{id}", self.prefix);
        let status = match needs {
            "[]" => "dispatched",
            _ => "waiting_for_prerequisites",
        };
        let of = ["HSET", &key, "id", id, "caller_id", "12", "context_id", "7"];
        let mine = [
            "script",
            script,
            "script_type",
            script_type,
            "dependends",
            needs,
        ];
        let words = [&of[..], &mine, &["timeout", "60", "status", status]].concat();
        self.plain.ask::<i64>(&words).unwrap();
        if needs == "[]" {
            let queue = format!("{}queue:{script_type}", self.prefix);
            self.plain.ask::<i64>(&["LPUSH", &queue, &key]).unwrap();
        }
    }

    fn field(&mut self, key: &str, field: &str) -> String {
        let key = format!("{}{key}", self.prefix);
        let value: Option<String> = self.plain.ask(&["HGET", &key, field]).unwrap();
        value.unwrap_or_default()
    }

    fn ends(&mut self, flow: &str, status: &str, result: &str) {
        let key = format!("flow:{flow}");
        eventually("the flow has ended", || {
            (self.field(&key, "status") == status).then_some(())
        });
        assert_eq!(self.field(&key, "result"), result, "flow {flow}");
    }

    /// Runs the next job of the type as a plain runner does. Returns its key.
    fn run(&mut self, script_type: &str, result: &str) -> String {
        let queue = format!("{}queue:{script_type}", self.prefix);
        let job: String = eventually("a job is queued", || {
            let popped: Option<String> = self.plain.ask(&["RPOP", &queue]).unwrap();
            popped
        });
        for fields in [
            &["status", "started"][..],
            &["result", result, "status", "finished"],
        ] {
            let words = [&["HSET", &job], fields].concat();
            self.plain.ask::<i64>(&words).unwrap();
        }
        job
    }
}

/// The jobs of a flow start when their prerequisites have ended, whoever runs these. Flows of Meshwork and damaged ones are
/// beside them.
fn plain_flows_wait(layout: &str, database: u32, prefix: &'static str) {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let create = ["context", "create", "--id", "7", "--layout", layout];
    ground.run(&create).ok();
    let mut worker = ground.start(&["worker", "--json", "--type", "osis", "--context", "7"]);
    assert_eq!(json(&worker.line())["event"], "listening");
    let plain = Plain::connect(&server.url_of(database)).unwrap();
    let mut client = Client { plain, prefix };
    // Damaged ones first.
    let text = format!("{prefix}flow:22");
    client.plain.ask::<String>(&["SET", &text, "x"]).unwrap();
    client.flow("23", "job:12:1");
    let nobody = format!("{prefix}flow:24");
    let words = ["HSET", &nobody, "jobs", "[1]", "status", "dispatched"];
    client.plain.ask::<i64>(&words).unwrap();
    client.flow("33", "[1,2,3]");
    client.job(("1", "osis"), "[]", "1 + 1");
    client.job(("2", "osis"), "[1]", "40 + 2");
    client.job(("3", "osis"), "[1,2]", "\"z\" + ENV.A");
    client.flow("34", "[11,12,13]");
    client.job(("11", "osis"), "[]", "throw \"boom\"");
    client.job(("12", "osis"), "[11]", "1");
    client.job(("13", "osis"), "[]", "13");
    client.flow("35", "[21,22]");
    client.job(("21", "v"), "[]", "first");
    client.job(("22", "v"), "[21]", "second");
    let flow = "flow: ours\njobs: {a: {script: '40', type: osis}, b: {script: '2', type: osis, needs: a}}\n";
    ground.file("ours.yaml", flow);
    let ours = ["flow", "run", "ours.yaml", "--context", "7"];
    assert_eq!(ground.run(&ours).ok().stdout, "2\n");
    client.ends("33", "finished", "{\"3\":\"zx\"}");
    let failed = "{\"error\":\"job `job_11`: Runtime error: boom (line 1, position 1)\"}";
    client.ends("34", "error", failed);
    let error = client.field("job:12:12", "error");
    assert_eq!(
        error,
        format!("prerequisite {prefix}job:12:11 did not finish")
    );
    assert_eq!(client.field("job:12:13", "result"), "{\"result\":\"13\"}");
    let [first, second] = ["{\"a\":\"1\"}", "{\"b\":\"2\"}"];
    assert_eq!(client.run("v", first), format!("{prefix}job:12:21"));
    assert_eq!(client.run("v", second), format!("{prefix}job:12:22"));
    client.ends("35", "finished", "{\"22\":\"{\\\"b\\\":\\\"2\\\"}\"}");
    // The record of a flow of Meshwork is overwritten.
    let ours = format!("{prefix}flow:1");
    client.plain.ask::<String>(&["SET", &ours, "x"]).unwrap();
    let list = ground
        .run(&["flow", "list", "--context", "7", "--json"])
        .ok();
    let error = |id: u32| {
        let lines = list.stdout.lines().map(json);
        let of = lines.filter(|flow| flow["id"] == id);
        of.map(|flow| flow["error"].as_str().unwrap_or_default().to_owned())
            .next()
    };
    let named = |id: u32, what: &str| {
        let error = error(id).unwrap_or_default();
        assert!(error.contains(what), "{id}: {error}");
    };
    named(23, "flow:23: the field `jobs` is no JSON array");
    named(1, &format!("the key {ours} holds a value of another kind"));
    named(24, "flow:24: the field `caller_id` is missing");
    assert_eq!(error(33).as_deref(), Some(""));
    let view = ["flow", "status", "33", "--context", "7", "--json"];
    let view = ground.run(&view).ok().json();
    assert_eq!(view["outputs"], json("{\"3\": \"zx\"}"));
}

#[test]
fn plain_flows_wait_for_prerequisites_in_a_database() {
    plain_flows_wait("db", 7, "");
}

#[test]
fn plain_flows_wait_for_prerequisites_under_a_prefix() {
    plain_flows_wait("prefix", 0, "{ctx:7}:");
}
