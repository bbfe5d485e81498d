//! The examples of actions, each service a process.

use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{Tool, need};

use super::process::Process;
use super::support::{BOUND, Ground};

/// Output lines with this prefix, without it.
fn after(said: &[String], begins: &str) -> Vec<String> {
    let rest = said.iter().filter_map(|line| line.strip_prefix(begins));
    rest.map(str::to_owned).collect()
}

/// The agent is killed while a tool is away, after a tool has run, and after the model has: each of them runs once for
/// each step all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_killed_goes_on_where_it_was() {
    for ground in Ground::both().await {
        let start = async |role: &'static str| Process::service(&ground, "agent", role, &[]).await;
        let (mut llm, agent) = (start("llm").await, start("agent").await);
        let asks = ["--message", "Project X and the notes and the plan"];
        let mut user = Process::start(&ground, "agent", "ask", &asks).await;
        llm.says("llm ran with 0").await;
        let tool = ground.broker.names().actions("query", None);
        eventually("the tool gets its action", BOUND, async || {
            (ground.standing(&tool).await.len() == 1).then_some(())
        })
        .await;
        agent.kill().await;
        let mut query = start("query").await;
        query.says("query ran for Project X").await;
        let agent = start("agent").await;
        query.says("query ran for the notes").await;
        agent.kill().await;
        let agent = start("agent").await;
        llm.says("llm ran with 2").await;
        agent.kill().await;
        let agent = start("agent").await;
        user.says("doc:Project X; doc:the notes; doc:the plan")
            .await;
        let ran = after(&query.end().await, "query ran for ");
        assert_eq!(ran, ["Project X", "the notes", "the plan"]);
        let ran = after(&llm.end().await, "llm ran with ");
        assert_eq!(ran, ["0", "1", "2", "3"]);
        let cycles: Vec<String> = ground.say(&["KEYS", "*:mw:cycle:*"]).await;
        assert_eq!(cycles.len(), 1);
        let stays: i64 = ground.say(&["TTL", &cycles[0]]).await;
        assert!((1..=3_600).contains(&stays), "{stays}");
        let answers: Vec<String> = ground.say(&["KEYS", "*:execution:responses:*"]).await;
        assert!(answers.is_empty(), "{answers:?}");
        drop(agent);
    }
}

/// Ingestion hears of each batch once, whoever embeds it, and after it was away.
async fn ingested(ground: &Ground, embedding: &[&str]) {
    let (role, document) = ("embedding", ["--document", "doc-7", "--text", "a bb ccc ñ"]);
    let _embedding = Process::service(ground, "ingestion", role, embedding).await;
    let mut asks = Process::start(ground, "ingestion", "ingest", &document).await;
    assert!(asks.ended().await);
    let list =
        ground
            .broker
            .names()
            .callback("ingestion", "ingestion.embedding_result", None, None);
    eventually("the callbacks stand there", BOUND, async || {
        (ground.say::<usize>(&["LLEN", &list]).await == 2).then_some(())
    })
    .await;
    let mut stores = Process::service(ground, "ingestion", "ingestion", &[]).await;
    for _ in 0..2 {
        stores.says("stored ").await;
    }
    eventually("nothing is waited for any more", BOUND, async || {
        let pending: Vec<String> = ground.say(&["KEYS", "*:mw:callback:*"]).await;
        pending.is_empty().then_some(())
    })
    .await;
    let mut stored = after(&stores.end().await, "stored ");
    stored.sort();
    let expected = [
        "batch 0 of doc-7: [\"doc-7-0\", \"doc-7-1\"] [[1, 0], [2, 1]]",
        "batch 1 of doc-7: [\"doc-7-2\", \"doc-7-3\"] [[3, 0], [1, 1]]",
    ];
    assert_eq!(stored, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestion_asks_embedding_in_rust() {
    for ground in Ground::both().await {
        ingested(&ground, &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestion_asks_embedding_in_python() {
    if need(Tool::Python).is_none() {
        return; // reported as skipped
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/ingestion/embed.py");
    for ground in Ground::both().await {
        ingested(&ground, &["--handler", script]).await;
    }
}
