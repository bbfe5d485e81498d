//! Verdicts of scripts: permanent, retry, snooze, discard.

use serde_json::{Value, json};

use crate::common::{Ground, on_all_data};
use meshwork_test_servers::servers::{Tool, need};

/// Runs a script, and returns its record.
fn record(ground: &Ground, file: &str, script: &str, options: &[&str], code: i32) -> Value {
    ground.file(file, script);
    let args = [&["run", file, "--json"], options].concat();
    ground.run(&args).exits(code).json()
}

/// The reasons of the dead letters that there are.
fn dead(ground: &Ground) -> Vec<String> {
    let dead = ground.run(&["dead", "list", "--json"]).ok();
    let reason = |letter: Value| letter["dead"].as_str().unwrap().to_owned();
    dead.jsons().into_iter().map(reason).collect()
}

on_all_data! {
    fn a_rhai_script_says_what_becomes_of_its_job(ground: &Ground) {
        let job = record(ground, "p.rhai", "fn f() { Permanent(\"never\") } f();", &["--retries", "5"], 1);
        assert_eq!((&job["error"], &job["attempts"]), (&"never".into(), &1.into()));
        assert_eq!(dead(ground), ["permanent"]);
        let job = record(ground, "d.rhai", "throw Discard(\"gone\")", &["--retries", "5"], 1);
        assert_eq!((&job["error"], &job["attempts"], &job["dead"]), (&"gone".into(), &1.into(), &Value::Null));
        assert_eq!(dead(ground).len(), 1);
        // The pause of the job would be an hour.
        let retry = &["--retries", "2", "--backoff", "3600"];
        let job = record(ground, "r.rhai", "Retry(0.01, \"busy\")", retry, 1);
        assert_eq!((&job["error"], &job["attempts"]), (&"busy".into(), &3.into()));
        let job = record(ground, "b.rhai", "Retry(-1)", &[], 1);
        assert!(job["error"].as_str().unwrap().contains("0 to 604800"), "{job}");
        let job = record(ground, "c.rhai", "let x = 0; try { Snooze(9) } catch (why) { x = 1; } x", &[], 0);
        assert_eq!((&job["output"], &job["snoozes"]), (&1.into(), &0.into()));
    }

    fn a_python_script_says_what_becomes_of_its_job(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let job = record(ground, "p.py", "raise Permanent('never')", &["--retries", "5"], 1);
        assert_eq!((&job["error"], &job["attempts"]), (&"never".into(), &1.into()));
        let job = record(ground, "d.py", "raise Discard('gone')", &["--retries", "5"], 1);
        assert_eq!((&job["error"], &job["attempts"], &job["dead"]), (&"gone".into(), &1.into(), &Value::Null));
        assert_eq!(dead(ground), ["permanent"]);
        let script = "import datetime\nclass Busy(Retry):\n    pass\n\
            raise Busy('busy', after=datetime.timedelta(milliseconds=10))";
        let retry = &["--retries", "2", "--backoff", "3600"];
        let job = record(ground, "r.py", script, retry, 1);
        assert_eq!((&job["error"], &job["attempts"]), (&"busy".into(), &3.into()));
        let failed = job["failed_attempts"].as_array().unwrap();
        let errors: Vec<_> = failed.iter().map(|it| (&it["number"], &it["outcome"], &it["error"])).collect();
        let busy = |number: u32| (json!(number), json!("failed"), json!("busy"));
        assert_eq!(errors, [1, 2, 3].map(busy).iter().map(|it| (&it.0, &it.1, &it.2)).collect::<Vec<_>>());
        let shown = ground.run(&["job", "show", job["id"].as_str().unwrap()]).ok().stdout;
        assert!(shown.contains("\nattempt 2    failed on worker."), "{shown}");
        for bad in ["raise Retry(after=-1)", "raise Snooze(float('nan'))", "raise Snooze(700000)"] {
            let job = record(ground, "b.py", bad, &[], 1);
            assert!(job["error"].as_str().unwrap().contains("0 to 604800"), "{job}");
        }
    }

    fn a_snoozed_job_runs_again_and_uses_no_attempt(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let count = ground.path("count");
        let script = "import os\n\
            with open(os.environ['COUNT'], 'a') as file:\n    file.write('x')\n\
            print('noise')\n\
            if os.path.getsize(os.environ['COUNT']) < 4:\n    raise Snooze(0.01)\n\
            result = 'awake'";
        let env = format!("COUNT={}", count.display());
        let job = record(ground, "s.py", script, &["--env", &env], 0);
        assert_eq!((&job["output"], &job["attempts"], &job["snoozes"]), (&"awake".into(), &1.into(), &3.into()));
        assert_eq!(dead(ground), Vec::<String>::new());
        // Clients of Hero see a job that waits; it can be stopped while it does.
        ground.file("l.py", "raise Snooze(3600, 'later')");
        let worker = ground.worker(&["--type", "python"]);
        ground.run(&["job", "submit", "l.py", "--id", "late"]).ok();
        let late = crate::common::eventually("it is snoozed", || {
            let job = ground.run(&["job", "status", "late", "--json"]).ok().json();
            (job["snoozes"] == 1).then_some(job)
        });
        assert_eq!((&late["status"], &late["error"], &late["attempts"]), (&"dispatched".into(), &Value::Null, &0.into()));
        ground.run(&["job", "stop", "late"]).ok();
        assert_eq!(ground.run(&["job", "status", "late", "--json"]).ok().json()["status"], "error");
        worker.stop();
    }
}
