//! A job that kills the workers that run it: it becomes a dead letter, and condemns no other job.

use std::fs;

use meshwork_test_servers::servers::{Tool, need};

use crate::common::{Ground, Running, eventually, on_all_data};

/// Kills the parent of the script's launcher.
const KILLS: &str = "
import os, time
with open(f'/proc/{os.getppid()}/stat') as file:
    worker = int(file.read().rsplit(')', 1)[1].split()[1])
os.kill(worker, 9)
time.sleep(60)
";

fn status(ground: &Ground, id: &str) -> String {
    let job = ground.run(&["job", "status", id, "--json"]).ok().json();
    job["status"].as_str().unwrap().to_owned()
}

fn is_dead(worker: &Running) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", worker.pid()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

on_all_data! {
    fn a_killer_condemns_no_other_job(ground: &Ground) {
        if need(Tool::Python).is_none() {
            return;
        }
        let start = || ground.worker(&["--type", "python", "--concurrency", "4"]);
        ground.file("good.py", "import time\ntime.sleep(4)\nresult = 1");
        ground.file("kill.py", KILLS);
        let goods = ["good1", "good2", "good3"];
        let mut worker = start();
        for id in goods {
            ground.run(&["job", "submit", "good.py", "--id", id]).ok();
        }
        eventually("the innocent jobs run", || {
            goods.iter().all(|id| status(ground, id) == "started").then_some(())
        });
        ground.run(&["job", "submit", "kill.py", "--id", "evil"]).ok();
        while eventually("the worker is killed, or the killer has ended", || {
            match is_dead(&worker) {
                true => Some(true),
                false => (status(ground, "evil") == "error").then_some(false),
            }
        }) {
            worker = start();
        }
        for id in goods {
            ground.run(&["job", "wait", id]).ok();
        }
        let dead = ground.run(&["dead", "list", "--json"]).ok().jsons();
        let dead: Vec<_> = dead.iter().map(|job| (&job["id"], &job["dead"])).collect();
        assert_eq!(dead, [(&"evil".into(), &"poison".into())]);
        worker.stop();
    }
}
