//! Clients of Hero's APIs: their names, with our workers and with plain ones.

use meshwork::context::{Node, new_key};
use meshwork_test_servers::plain::Plain;
use serde_json::{Value, json};

use super::{Server, bearer};
use crate::common::http::{JSON, came, connect};
use crate::common::{Ground, eventually, on_all_data, wait};

/// Calls a method as Hero's clients do.
fn call(server: &Server, method: &str, params: &Value) -> Value {
    let answer = server.rpc(method, params, "");
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// Runs a job as a plain worker does: it pops the id, writes the record, and replies if it is one of those that do.
fn plain_worker(plain: &mut Plain, output: &str, replies: bool) {
    let id = eventually("the job is queued", || {
        plain
            .ask::<Option<String>>(&["LPOP", "hero:q:work:type:v"])
            .unwrap()
    });
    let key = format!("hero:job:{id}");
    plain
        .ask::<i64>(&["HSET", &key, "status", "started"])
        .unwrap();
    plain
        .ask::<i64>(&["HSET", &key, "status", "finished", "output", output])
        .unwrap();
    if replies {
        plain
            .ask::<i64>(&["LPUSH", &format!("hero:q:reply:{id}"), output])
            .unwrap();
    }
}

on_all_data! {
    fn the_first_generation_creates_starts_and_reads(ground: &Ground) {
        let server = Server::open(ground);
        let worker = ground.worker(&["--type", "osis"]);
        let call = |method: &str, params: Value| call(&server, method, &params);
        assert_eq!(call("play", json!({"script": "let x = 10; x * 2"})), json!({"output": "20"}));
        assert_eq!(call("run_job", json!(["6 * 7", "OSIS"])), "42");
        for params in [json!([{"script": "6 * 7", "script_type": "OSIS", "caller_id": "c"}]), json!({"job": {"script": "6 * 7", "script_type": "OSIS"}})] {
            assert_eq!(call("run_job", params), "42");
        }
        for (method, params, part) in [
            ("run_job", json!(["6 * 7"]), "script_type: give one"),
            ("create_job", json!([{"script": "1"}]), "script_type: give one"),
            ("run_job_and_await_result", json!([{"script": "1", "script_type": ""}]), "script_type: give one"),
            ("create_job", json!([{"script": "1", "script_type": "osis", "retries": "3"}]), "retries: invalid type"),
            ("run_job", json!({"job": 7}), "job: give an object"),
            ("start_job", json!({"job_id": 7}), "job_id: invalid type"),
        ] {
            let refused = server.rpc(method, &params, "")["error"].clone();
            assert_eq!(refused["code"], -32602, "{method} {params}");
            assert!(refused["message"].as_str().unwrap().starts_with(part), "{refused}");
        }
        let job = json!({"caller_id": "c", "context_id": "x", "script": "1 + 2", "script_type": "OSIS", "timeout": 30});
        let id = call("create_job", json!([job]));
        assert_eq!(call("get_job_status", json!([id])), "dispatched");
        assert_eq!(server.rpc("get_job_output", &json!([id]), "")["error"]["code"], -32005);
        assert_eq!(call("start_job", json!({"job_id": id})), json!({"success": true}));
        eventually("the job ends", || (call("get_job_status", json!([id])) == "finished").then_some(()));
        assert_eq!(call("get_job_output", json!([id])), "3");
        assert_eq!(call("get_job_logs", json!([id])), json!({"logs": null}));
        assert_eq!(call("run_job_and_await_result", json!([job, "osis_runner_1"])), "3");
        let failed = server.rpc("run_job", &json!(["throw \"boom\"", "osis"]), "");
        assert_eq!(failed["error"]["code"], -32000, "{failed}");
        let held = call("create_job", json!({"job": job}));
        assert!(call("list_jobs", json!([])).as_array().unwrap().contains(&held));
        assert_eq!(call("stop_job", json!([held])), Value::Null);
        assert_eq!(call("get_job_status", json!([held])), "error");
        assert_eq!(call("delete_job", json!([held])), Value::Null);
        assert_eq!(server.rpc("get_job_status", &json!([held]), "")["error"]["code"], -32004);
        assert_eq!(call("whoami", json!([]))["scope"], "admin");
        assert_eq!(call("clear_all_jobs", json!([])), Value::Null);
        assert_eq!(call("list_jobs", json!([])), json!([]));
        assert_eq!(server.send("GET", "/", "", "").status, 405);
        worker.stop();
        server.stop();
    }

    fn the_second_and_third_have_secrets_and_bearers(ground: &Ground) {
        let made = ground.run(&["key", "create", "root", "--scope", "admin"]).ok();
        let secret = made.stdout.trim().to_owned();
        let server = Server::start(ground, &[]);
        let worker = ground.worker(&["--type", "osis,python"]);
        let with = |mut params: Value| {
            params["secret"] = json!(secret);
            params
        };
        let code = |method: &str, params: Value| server.rpc(method, &params, "")["error"]["code"].clone();
        let job = json!({
            "id": "g-2", "caller_id": "c", "context_id": "x", "payload": "6 * 7", "runner": "r", "executor": "osis",
            "timeout": 30, "env_vars": {}, "created_at": "2023-01-01T00:00:00Z", "updated_at": "2023-01-01T00:00:00Z",
        });
        assert_eq!(code("jobs.create", json!({"job": job})), -32001);
        assert_eq!(code("jobs.create", json!({"secret": "wrong", "job": job})), -32002);
        assert_eq!(code("jobs.list", json!([])), -32001);
        let call = |method: &str, params: Value| call(&server, method, &with(params));
        assert_eq!(call("jobs.create", json!({"job": job})), "g-2");
        assert_eq!(call("job.start", json!({"job_id": "g-2"})), Value::Null);
        eventually("the job ends", || (call("job.status", json!({"job_id": "g-2"}))["status"] == "finished").then_some(()));
        assert_eq!(call("job.result", json!({"job_id": "g-2"})), json!({"success": "42"}));
        let mut other = job;
        (other["id"], other["payload"]) = (json!("g-3"), json!("throw \"boom\""));
        assert!(call("job.run", json!({"job": other}))["error"].as_str().unwrap().contains("boom"));
        assert_eq!(call("jobs.list", json!({})).as_array().unwrap().len(), 2);
        assert_eq!(call("job.delete", json!({"job_id": "g-3"})), Value::Null);
        let verified = server.rpc("auth.verify", &json!({"key": secret}), "")["result"].clone();
        assert_eq!((&verified["valid"], &verified["scope"]), (&json!(true), &json!("admin")));
        let new = server.rpc("auth.create_key", &json!({"admin_key": secret, "name": "ci", "scope": "user"}), "");
        assert!(new["result"]["key"].as_str().unwrap().starts_with("mwk_ci."), "{new}");
        eventually("the runner is found", || {
            let runners = call("list_runners", json!({}));
            let name = runners.as_array()?.first()?.clone();
            assert_eq!(runners, json!([name]));
            (call("get_runner_status", json!({"name": name})) == "Running").then_some(())
        });
        assert_eq!(code("get_runner_status", with(json!({"name": "nobody"}))), -32004);
        // The third generation.
        let head = bearer(&secret);
        let made = server.rpc("create_job", &json!({"job": {"payload": "1", "runner_id": "r", "env_vars": {}}}), &head);
        let id = made["result"].clone();
        eventually("it was queued at once", || {
            let job = server.rpc("get_job", &json!({"job_id": id}), &head)["result"].clone();
            (job["status"] == "finished").then_some(())
        });
        let listed = server.rpc("key.list", &json!({}), &head)["result"]["keys"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 2);
        worker.stop();
        server.stop();
    }

    fn an_actor_logs_in_with_a_signed_nonce(ground: &Ground) {
        ground.run(&["context", "create"]).ok();
        ground.run(&["key", "create", "root", "--scope", "admin"]).ok();
        let server = Server::start(ground, &[]);
        let key = new_key();
        let node = Node::of(&ground.broker());
        let actor = wait(node.trust(key.public(), None)).unwrap();
        let pubkey = actor.pubkey.to_string();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let nonce = call(&server, "fetch_nonce", &json!([pubkey]));
        let signature = hex(&key.sign(nonce.as_str().unwrap().as_bytes()));
        let signed = json!([pubkey, signature]);
        assert_eq!(call(&server, "authenticate", &signed), json!(true));
        // It is valid once.
        assert_eq!(server.rpc("authenticate", &signed, "")["error"]["code"], -32002);
        let answer = server.send("GET", &format!("/auth/nonce?public_key={pubkey}"), "", "").json();
        let other = new_key();
        let stranger = hex(&other.sign(answer["nonce"].as_str().unwrap().as_bytes()));
        let forged = json!({"pubkey": pubkey, "signature": stranger, "nonce": answer["nonce"]});
        assert_eq!(server.rpc("authenticate", &forged, "")["error"]["code"], -32002);
        // Who has not the key uses up no nonce.
        assert_eq!(server.send("GET", "/auth/health", "", "").json()["active_nonces"], 1);
        assert_eq!(server.send("GET", "/auth/nonce?public_key=me", "", "").status, 400);
        server.stop();
    }
}

#[test]
fn plain_workers_and_plain_jobs_are_those_of_redis_commands() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    let server = Server::open(&ground);
    let mut plain = ground.plain();
    for replies in [true, false] {
        let address = server.address.clone();
        let request = json!({"jsonrpc": "2.0", "method": "run_job", "params": ["x", "v"], "id": 1});
        let run = std::thread::spawn(move || {
            let body = request.to_string();
            let length = body.len();
            let head = format!(
                "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{JSON}content-length: {length}\r\n\r\n"
            );
            came(connect(&address, &format!("{head}{body}"))).json()
        });
        plain_worker(&mut plain, "done", replies);
        let output = run.join().unwrap()["result"].clone();
        assert_eq!(output, "done", "{replies}");
        let id = call(
            &server,
            "create_job",
            &json!([{"script": "x", "script_type": "v"}]),
        );
        call(&server, "start_job", &json!([id]));
        plain_worker(&mut plain, "made", replies);
        assert_eq!(call(&server, "get_job_output", &json!([id])), "made");
    }
    // A job with missing and wrong fields.
    plain.say("HSET hero:job:odd status 7 timeout soon env_vars nothing\nHSET hero:job:bare script 1 status dispatched\n").unwrap();
    for id in ["odd", "bare"] {
        assert!(
            call(&server, "list_jobs", &json!([]))
                .as_array()
                .unwrap()
                .contains(&json!(id))
        );
        call(&server, "get_job_status", &json!([id]));
        assert_eq!(call(&server, "get_job", &json!([id]))["id"], id);
        assert_eq!(
            server.rest("GET", &format!("/v1/jobs/{id}"), &json!({})).0,
            200
        );
    }
    server.stop();
}

#[test]
fn the_coordinator_makes_and_loads_objects() {
    crate::common::on_both(|ground| {
        ground.run(&["context", "create"]).ok();
        let server = Server::open(ground);
        let call = |method: &str, params: Value| call(&server, method, &json!({"params": params}));
        let of = |id: u32| json!({"context_id": 1, "id": id});
        assert_eq!(call("context.load", json!({"id": 1}))["admins"], json!([1]));
        assert_eq!(call("actor.load", json!({"id": 1}))["id"], 1);
        let actor = call(
            "actor.create",
            json!({"pubkey": new_key().public().to_string()}),
        );
        let made = call("context.create", json!({"id": 5, "readers": [actor["id"]]}));
        assert_eq!(made["readers"], json!([actor["id"]]), "{made}");
        let runner = call(
            "runner.create",
            json!({"context_id": 1, "id": 20, "script_type": "osis", "pubkey": "", "address": ""}),
        );
        assert_eq!(call("runner.load", of(20)), runner);
        let message = call(
            "message.create",
            json!({"context_id": 1, "message": "hi", "message_type": "chat"}),
        );
        assert_eq!(
            call(
                "message.load",
                json!({"context_id": 1, "id": message["id"]})
            )["message"],
            "hi"
        );
        let job = json!({"context_id": 1, "id": 7, "script": "6 * 7", "script_type": "OSIS", "env_vars": {"API_KEY": "hidden"}});
        let made = call("job.create", job.clone());
        assert!(!made.to_string().contains("hidden"), "{made}");
        assert_eq!(call("job.load", of(7)), made);
        assert_eq!(
            server.rpc("job.create", &json!({"params": job}), "")["error"]["code"],
            -32005
        );
        let flow = call(
            "flow.create",
            json!({"context_id": 1, "id": 9, "jobs": [7]}),
        );
        assert_eq!(
            (&flow["status"], &call("flow.load", of(9))["jobs"]),
            (&json!("dispatched"), &json!([7]))
        );
        server.stop();
    });
}
