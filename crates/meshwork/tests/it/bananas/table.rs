//! The table of bad input in docs/bananas.md: a test per row. After each, the worker goes on.

use std::sync::Arc;

use meshwork::protocol::bananas::{Request, WorkerHandle};
use meshwork::runtime::JobContext;
use meshwork_model::bananas::ClientVariant;
use meshwork_test_servers::eventually;
use tokio::sync::Semaphore;

use super::support::{BOUND, Ground};

const NORMAL: &str = "bananas:queue:normal";

async fn started() -> Option<(Ground, WorkerHandle)> {
    let ground = Ground::open().await?;
    let worker = ground.worker().start().await;
    Some((ground, worker.expect("it starts")))
}

/// The worker runs the next job, and nothing is left of the last one.
async fn goes_on(ground: &Ground, worker: WorkerHandle) {
    let id = ground.client.enqueue(Request::raw("echo", "7")).await;
    let id = id.expect("the server takes it");
    let outcome = ground.client.wait(&id, BOUND).await;
    assert_eq!(outcome.expect("it ends").result.as_deref(), Some("7"));
    ground.quiet().await;
    worker.stop().await;
}

/// Checks that the id is a dead letter with this record, and that waiting clients got the reason.
async fn is_dead(ground: &Ground, id: &str, record: &str, error: &str) {
    let error_text = ground.result(id, "error").await;
    assert!(error_text.contains(error), "{error_text}");
    let dead: Vec<String> = ground
        .say(&["LRANGE", "bananas:queue:dead", "0", "-1"])
        .await;
    assert_eq!(dead, [id]);
    let is = ground.record(id).await;
    assert!(is.contains(record), "{is}");
}

#[tokio::test(flavor = "multi_thread")]
async fn corrupt_json() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.put(NORMAL, "bad", "{not json").await;
    is_dead(
        &ground,
        "bad",
        "\"corrupted_data\":\"{not json\"",
        "the record is no job",
    )
    .await;
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_the_wrong_type() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.put(NORMAL, "bad", "{\"name\":5}").await;
    is_dead(&ground, "bad", "corrupted_data", "`name` is 5, not a text").await;
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_record() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.say::<()>(&["LPUSH", NORMAL, "missing"]).await;
    is_dead(
        &ground,
        "missing",
        "Job data not found",
        "there is no record",
    )
    .await;
    goes_on(&ground, worker).await;
}

/// Bananas' cron writes jobs so; they run as any other.
#[tokio::test(flavor = "multi_thread")]
async fn empty_id() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"id\":\"\",\"name\":\"echo\",\"payload\":[1],\"status\":\"\",\"priority\":\"normal\",\
                  \"created_at\":\"0001-01-01T00:00:00Z\",\"updated_at\":\"0001-01-01T00:00:00Z\",\
                  \"attempts\":0,\"max_retries\":0,\"routing_key\":\"\"}";
    ground.put(NORMAL, "", record).await;
    assert_eq!(ground.result("", "result").await, "[1]");
    goes_on(&ground, worker).await;
}

/// All jobs of Bananas' cron have it, and share one record: what is due while another one runs is a job of its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_id_while_another_one_runs() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let go = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go);
    let hold = move |word: String, _: JobContext| {
        let (started, gate) = (started.clone(), Arc::clone(&gate));
        async move {
            let _ = started.send(word.clone());
            gate.acquire().await.unwrap().forget();
            Ok::<_, String>(word)
        }
    };
    let worker = ground.worker().handle("hold", hold);
    let worker = worker.start().await.unwrap();
    for word in ["one", "next"] {
        let record =
            format!("{{\"id\":\"\",\"name\":\"hold\",\"payload\":\"{word}\",\"status\":\"\"}}");
        ground.put(NORMAL, "", &record).await;
        assert_eq!(starts.recv().await.as_deref(), Some(word));
    }
    go.add_permits(1);
    ground.result("", "status").await;
    go.add_permits(1);
    eventually("the next one is done", BOUND, async || {
        let is = ground.record("").await;
        is.contains("\"next\",\"status\":\"completed\"")
            .then_some(())
    })
    .await;
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn naive_time() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\": \"echo\", \"payload\": 1, \"status\": \"scheduled\", \
                  \"created_at\": \"2026-11-20T11:33:54.004364\", \"scheduled_for\": \"2026-11-20T12:33:54\"}";
    ground
        .say::<()>(&["SET", "bananas:job:naive", record])
        .await;
    ground
        .say::<()>(&["ZADD", "bananas:queue:scheduled", "1", "naive"])
        .await;
    assert_eq!(ground.result("naive", "status").await, "completed");
    assert!(
        ground
            .record("naive")
            .await
            .contains("2026-11-20T11:33:54.004364")
    );
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_in_the_payload() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\":\"echo\",\"payload\":\"a\\u0000b\"}";
    ground.put(NORMAL, "nul", record).await;
    assert_eq!(ground.result("nul", "result").await, "\"a\\u0000b\"");
    // As a byte it is no JSON.
    ground
        .put(NORMAL, "raw", "{\"name\":\"echo\",\"payload\":\"a\0b\"}")
        .await;
    is_dead(&ground, "raw", "corrupted_data", "the record is no job").await;
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_megabytes() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let payload = format!("\"{}\"", "x".repeat(5 * 1024 * 1024));
    for peer in [ClientVariant::Go, ClientVariant::Python] {
        let client = ground.client.clone().with_variant(peer);
        let id = client
            .enqueue(Request::raw("echo", &payload))
            .await
            .unwrap();
        let outcome = client.wait(&id, BOUND).await.unwrap();
        assert_eq!(outcome.result.map(|it| it.len()), Some(payload.len()));
    }
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_priority() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\":\"echo\",\"payload\":1,\"priority\":\"urgent\"}";
    ground
        .say::<()>(&["SET", "bananas:job:urgent", record])
        .await;
    ground
        .say::<()>(&["ZADD", "bananas:queue:scheduled", "1", "urgent"])
        .await;
    assert_eq!(ground.result("urgent", "status").await, "completed");
    assert!(
        ground
            .record("urgent")
            .await
            .contains("\"priority\":\"urgent\"")
    );
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_status() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\":\"echo\",\"payload\":1,\"status\":\"lost\"}";
    ground.put(NORMAL, "odd", record).await;
    assert_eq!(ground.result("odd", "status").await, "completed");
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_beyond_2_to_the_53() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\":\"echo\",\"payload\":12345678901234567890,\"x\":[1e400,0.10],\"status\":\"pending\"}";
    ground.put(NORMAL, "big", record).await;
    assert_eq!(ground.result("big", "result").await, "12345678901234567890");
    let is = ground.record("big").await;
    assert!(
        is.contains("12345678901234567890") && is.contains("[1e400,0.10]"),
        "{is}"
    );
    goes_on(&ground, worker).await;
}

/// Go's are of 64 bits and may be negative.
#[tokio::test(flavor = "multi_thread")]
async fn counts_that_go_reads() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    for (id, counts) in [
        ("less", "\"attempts\":-1,\"max_retries\":-3"),
        ("more", "\"attempts\":0,\"max_retries\":4294967296"),
    ] {
        let record = format!("{{\"name\":\"echo\",\"payload\":1,{counts}}}");
        ground.put(NORMAL, id, &record).await;
        assert_eq!(ground.result(id, "status").await, "completed");
        assert!(ground.record(id).await.contains(counts));
    }
    let fails = "{\"name\":\"fail\",\"payload\":null,\"max_retries\":-3}";
    ground.put(NORMAL, "fails", fails).await;
    is_dead(&ground, "fails", "\"attempts\":1", "boom").await;
    goes_on(&ground, worker).await;
}

/// Go reads other characters there; what was meant is lost.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_text() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let mut set = redis::cmd("SET");
    set.arg("bananas:job:bytes")
        .arg(&b"{\"name\":\"echo\",\"payload\":\"\xff\"}"[..]);
    let () = set.query_async(&mut ground.raw().await).await.unwrap();
    ground.say::<()>(&["LPUSH", NORMAL, "bytes"]).await;
    is_dead(&ground, "bytes", "corrupted_data", "no UTF-8").await;
    goes_on(&ground, worker).await;
}

/// The last one counts, as for all readers.
#[tokio::test(flavor = "multi_thread")]
async fn duplicate_keys() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    let record = "{\"name\":\"fail\",\"name\":\"echo\",\"payload\":1,\"payload\":2,\"status\":\"x\",\"status\":\"pending\"}";
    ground.put(NORMAL, "twice", record).await;
    assert_eq!(ground.result("twice", "result").await, "2");
    let is = ground.record("twice").await;
    assert!(
        is.contains("\"status\":\"x\",\"status\":\"completed\""),
        "{is}"
    );
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_another_kind() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.say::<()>(&["RPUSH", "bananas:job:odd", "x"]).await;
    ground.say::<()>(&["LPUSH", NORMAL, "odd"]).await;
    let error = ground.result("odd", "error").await;
    assert!(error.contains("something else"), "{error}");
    let is: Vec<String> = ground.say(&["LRANGE", "bananas:job:odd", "0", "-1"]).await;
    assert_eq!(is, ["x"]);
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_another_kind() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.say::<()>(&["SET", "bananas:queue:high", "x"]).await;
    goes_on(&ground, worker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_another_kind() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground.say::<()>(&["SET", "bananas:result:odd", "x"]).await;
    ground
        .put(NORMAL, "odd", "{\"name\":\"echo\",\"payload\":1}")
        .await;
    eventually("it is done", BOUND, async || {
        ground
            .record("odd")
            .await
            .contains("completed")
            .then_some(())
    })
    .await;
    goes_on(&ground, worker).await;
}

/// A time without a record is looked at by Bananas' scheduler for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_without_a_record() {
    let Some((ground, worker)) = started().await else {
        return;
    };
    ground
        .say::<()>(&["ZADD", "bananas:queue:scheduled", "1", "ghost"])
        .await;
    is_dead(&ground, "ghost", "Job data not found", "there is no record").await;
    goes_on(&ground, worker).await;
}
