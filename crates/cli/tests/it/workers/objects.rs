//! Objects of scripts when their worker is killed: index, history and object stay equal, and the next worker ends the job.

use meshwork_broker::Broker;
use meshwork_conformance::objects::faults;
use meshwork_model::object::Space;
use meshwork_test_servers::halting::{Halt, Halting};
use meshwork_test_servers::servers::{Tool, shared};

use crate::common::{BOUND, Ground, wait};

/// Its end is the same if a part of it has run before.
const SCRIPT: &str = r#"
let cars = get_context(["ann", "bob"]);
cars.save("car", #{ id: "x", colour: "red", note: "fast one" });
cars.save("car", #{ id: "x", colour: "blue", note: "slow one" });
cars.save("car", #{ id: "y", colour: "red" });
cars.delete("y");
cars.save("car", #{ id: "y", colour: "green" });
[cars.get("x").note, cars.find("car", "colour", "red").len(), cars.list("car").len()]
"#;
/// More commands than the job takes.
const MOST: usize = 200;

fn agree(ground: &Ground, when: &str) {
    let faults = wait(faults(&ground.broker())).unwrap();
    assert!(faults.is_empty(), "{when}: {faults:#?}");
}

async fn is_finished(broker: &Broker) -> bool {
    let job = broker.inspect(&"j".parse().unwrap()).await.unwrap();
    job.is_some_and(|job| job.status == "finished")
}

/// Waits without a thread of its own, as [`wait`] needs it.
fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let look = async || holds().await.then_some(());
    wait(meshwork_test_servers::eventually(what, BOUND, look));
}

fn enqueue(ground: &Ground) {
    ground.file("a.rhai", SCRIPT);
    let args = [
        "job",
        "enqueue",
        "a.rhai",
        "--id",
        "j",
        "--caller-id",
        "ann",
    ];
    ground.run(&args).ok();
}

/// Ends the job with another worker.
fn ends(ground: &Ground, when: &str) {
    let worker = ground.worker(&["--type", "osis"]);
    let result = ground.run(&["job", "wait", "j"]).ok().stdout;
    assert_eq!(result, "[\"slow one\",0,2]\n", "{when}");
    agree(ground, when);
    worker.stop();
}

/// Kills a worker at each of its commands, from the claim of a job to its report.
fn killed_at_each_command(tool: Tool, halt: fn(usize) -> Halt) {
    for commands in 1..MOST {
        let Some(database) = shared(tool) else {
            return;
        };
        let server = ([127, 0, 0, 1], database.server.port()).into();
        let proxy = wait(Halting::to(server)).unwrap();
        let beyond = format!("redis://{}/{}", proxy.at(), database.number);
        let (beyond, ground) = (Ground::url(beyond), Ground::url(database.url()));
        let worker = beyond.worker(&["--type", "osis"]);
        let halt = halt(commands);
        proxy.halt(halt);
        enqueue(&ground);
        let broker = ground.broker();
        until("the worker is held up, or ends the job", async || {
            proxy.is_halted() || is_finished(&broker).await
        });
        worker.kill();
        agree(&ground, &format!("{halt:?}"));
        if wait(is_finished(&broker)) {
            assert!(commands > 8, "only {commands} commands");
            return;
        }
        ends(&ground, &format!("{halt:?}"));
    }
    panic!("the job takes more than {MOST} commands");
}

#[test]
fn a_kill_before_each_command_leaves_equal_parts_on_redis() {
    killed_at_each_command(Tool::Redis, Halt::Before);
}

#[test]
fn a_kill_after_each_command_leaves_equal_parts_on_redis() {
    killed_at_each_command(Tool::Redis, Halt::After);
}

#[test]
fn a_kill_after_each_command_leaves_equal_parts_on_valkey() {
    killed_at_each_command(Tool::Valkey, Halt::After);
}

/// The worker is the store, too: its log is cut anywhere.
#[test]
fn a_kill_at_any_time_leaves_equal_parts_in_a_directory() {
    let ground = Ground::embedded().unwrap();
    let script = r#"
        let c = get_context(["a"]);
        for n in 0..1000000 {
            let id = `x${n % 7}`;
            if n % 5 == 0 { c.delete(id); } else { c.save("car", #{ id: id, n: n, note: `number ${n}` }); }
        }
    "#;
    ground.file("many.rhai", script);
    let space = Space::new(["a"]).unwrap().of_caller("ann");
    let version = async |broker: &Broker| {
        let history = broker.object_history(&space, "x1").await.unwrap();
        history.last().map_or(0, |version| version.number)
    };
    for round in 0..5 {
        let id = format!("many{round}");
        let worker = ground.worker(&["--type", "osis"]);
        let broker = ground.broker();
        let before = wait(version(&broker));
        let args = [
            "job",
            "enqueue",
            "many.rhai",
            "--id",
            &id,
            "--caller-id",
            "ann",
        ];
        ground.run(&args).ok();
        until("the script changes objects", async || {
            version(&broker).await > before + 3
        });
        drop(broker);
        worker.kill();
        agree(&ground, &format!("round {round}"));
        ground.run(&["job", "cancel", &id, "--force"]).ok();
    }
}
