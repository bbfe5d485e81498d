//! `meshwork worker --reload`: a worker that starts again when its code has changed.

use serde_json::json;

use super::{APP, ended, enqueue, exists, result, worker};
use crate::common::{Ground, Running, json as parse, on_all_data};

/// Waits until the worker listens again.
fn listens(worker: &mut Running) {
    while parse(&worker.line())["event"] != "listening" {}
}

on_all_data! {
    fn a_changed_file_starts_the_worker_again_after_its_jobs(ground: &Ground) {
        let mut worker = worker(ground, &["--processes", "1", "--reload"]);
        let waits = enqueue(ground, "waits", &json!({"mark": "runs", "until": "done"}), &[]);
        exists(ground, "runs");
        ground.file("shop.py", APP.replace("return \"5\"", "return \"6\""));
        ground.file("done", "");
        let job = ended(ground, &waits);
        assert_eq!((&job["output"], &job["attempts"]), (&json!("waited"), &json!(1)), "{job}");
        listens(&mut worker);
        assert_eq!(result(ground, "digits", &json!({})), "6");
        // Code that cannot be loaded ends the worker, until it is repaired.
        ground.file("shop.py", "import nothing_of_this_name\n");
        assert_eq!(parse(&worker.line())["event"], "stopped");
        ground.file("shop.py", APP.replace("return \"5\"", "return \"7\""));
        listens(&mut worker);
        assert_eq!(result(ground, "digits", &json!({})), "7");
        worker.stop();
    }
}
