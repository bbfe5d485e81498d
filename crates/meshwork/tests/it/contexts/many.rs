//! Large numbers and sizes: jobs of a message, open messages, unread elements of an inbox, and results.

use meshwork::context::Coordinator;
use serde_json::Value;

use super::world::World;

/// Ends all jobs of context 8 as a plain runner, with this result.
const RUN_ALL: &str = "local n = 0 \
    while true do local job = redis.call('RPOP', KEYS[1]) if not job then return n end \
    redis.call('HSET', job, 'status', 'finished', 'result', ARGV[1]) n = n + 1 end";

async fn run_all(world: &World, result: &str) -> usize {
    world
        .ask(8, &["EVAL", RUN_ALL, "1", "@queue:v", result])
        .await
}

/// The jobs in the only message of the inbox of context 7.
async fn result(world: &World) -> Vec<Value> {
    let inbox: Vec<String> = world.ask(7, &["LRANGE", "@msg_in", "0", "-1"]).await;
    assert_eq!(inbox.len(), 1);
    let jobs: String = world.ask(7, &["HGET", &inbox[0], "job"]).await;
    serde_json::from_str(&jobs).unwrap()
}

#[tokio::test]
async fn a_message_with_the_most_jobs_is_taken_up_and_answered() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let most = world.send_jobs(8, 1_000).await.to_string();
        let other = world.send_jobs(8, 1).await.to_string();
        world.settle(&coordinator).await;
        for key in [&most, &other] {
            assert_eq!(world.of(7, key, "status").await, "acknowledged");
        }
        assert_eq!(run_all(&world, "1").await, 1_001);
        world.pass(6_000);
        world.settle(&coordinator).await;
        for key in [&most, &other] {
            assert_eq!(world.of(7, key, "status").await, "processed");
        }
        assert_eq!(world.ask::<usize>(7, &["LLEN", "@msg_in"]).await, 2);
    }
}

#[tokio::test]
async fn results_over_the_limit_become_errors_that_name_their_records() {
    const MANY: usize = 9 * 1024 * 1024;
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let key = world.send_jobs(8, 3).await.to_string();
        world.settle(&coordinator).await;
        for bytes in [10, MANY, MANY + 1] {
            let job: String = world.ask(8, &["RPOP", "@queue:v"]).await;
            let long = "x".repeat(bytes);
            let ended = ["HSET", &job, "status", "finished", "result", &long];
            world.ask::<i64>(8, &ended).await;
        }
        world.pass(6_000);
        world.settle(&coordinator).await;
        assert_eq!(world.of(7, &key, "status").await, "error");
        let jobs = result(&world).await;
        let length = |job: &Value| job["result"]["result"].as_str().map(str::len);
        assert_eq!(length(&jobs[0]), Some(10));
        assert_eq!(length(&jobs[1]), Some(MANY));
        let error = jobs[2]["error"].as_str().unwrap();
        assert!(error.starts_with("result too large"), "{error}");
        assert_eq!(
            (length(&jobs[2]), &jobs[2]["status"]),
            (None, &"error".into())
        );
    }
}

#[tokio::test]
async fn thousands_of_open_messages_do_not_delay_a_result() {
    /// Copies an open message, with the same job, which runs.
    const COPY: &str = "local unpack = table.unpack or unpack \
        local record = redis.call('HGETALL', KEYS[1]) \
        for i = 1000, 4000 do local key = ARGV[1] .. i \
        redis.call('HSET', key, unpack(record)) redis.call('ZADD', KEYS[2], '1', key) end";
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let slow = world.send_job().await.to_string();
        world.settle(&coordinator).await;
        world.ask::<String>(8, &["RPOP", "@queue:v"]).await;
        let record = format!("@{slow}");
        let copy = ["EVAL", COPY, "2", &record, "@mw:open", "@message:1:"];
        world.ask::<redis::Value>(8, &copy).await;
        let key = world.send_job().await.to_string();
        world.settle(&coordinator).await;
        run_all(&world, "1").await;
        // All are due at the same time, the ended one last.
        world.pass(6_000);
        world.settle(&coordinator).await;
        assert_eq!(world.of(7, &key, "status").await, "processed");
        assert_eq!(world.of(7, &slow, "status").await, "acknowledged");
    }
}

#[tokio::test]
async fn a_job_message_behind_unread_elements_of_the_inbox_is_taken_up() {
    for world in World::everywhere().await {
        let coordinator = Coordinator::new(&world.node).await.unwrap();
        let unread = async |from: usize| {
            for number in from..from + 150 {
                let element = format!("@message:2:{number}");
                let record = ["HSET", &*element, "message_type", "chat"];
                world.ask::<i64>(8, &record).await;
                world.ask::<i64>(8, &["LPUSH", "@msg_in", &element]).await;
            }
        };
        unread(0).await;
        let job = r#"{"id": 5, "caller_id": 1, "script": "1", "script_type": "v"}"#;
        let record = [
            "HSET",
            "@message:1:999",
            "message_type",
            "job",
            "created_at",
            "1700000000",
            "job",
            job,
        ];
        world.ask::<i64>(8, &record).await;
        world
            .ask::<i64>(8, &["LPUSH", "@msg_in", "@message:1:999"])
            .await;
        unread(200).await;
        world.settle(&coordinator).await;
        assert_eq!(world.of(8, "message:1:999", "status").await, "acknowledged");
        assert_eq!(world.ask::<usize>(8, &["LLEN", "@queue:v"]).await, 1);
        assert_eq!(world.ask::<usize>(8, &["LLEN", "@msg_in"]).await, 300);
    }
}
