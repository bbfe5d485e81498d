//! Asks the demo service everything that it answers, and looks at what it says: `cargo run --release --example
//! demo_client -- --redis URL --name demo --env development --dialect streams`, as the example `demo_service` was started. It
//! prints a line for each, and ends with exit code 1 at the first answer that is not as it should be.
#![allow(clippy::print_stdout, reason = "that is its purpose")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "a client serves nothing")]
mod common;

use std::time::Duration;

use meshwork::protocol::nooble::ErrorDetail;
use meshwork::protocol::nooble::{ActionContext, Client, Request, Service};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Timeout of an answer.
const WAIT: Duration = Duration::from_secs(20);
/// The event of its callbacks.
const EVENT: &str = "tester.embedding_result";

type Fault = Box<dyn std::error::Error>;

/// A client, and the service that it asks.
struct Asks {
    client: Client,
    service: String,
}

/// Compares the expected and the received value.
fn same(what: &str, expected: &Value, came: &Value) -> Result<(), Fault> {
    if expected != came {
        return Err(format!("{what}: expected {expected}, and it was {came}").into());
    }
    println!("{what}: {came}");
    Ok(())
}

impl Asks {
    fn request(&self, verb: &str, data: &Value) -> Result<Request, Fault> {
        Ok(Request::new(&format!("{}.{verb}", self.service), data)?)
    }

    /// Calls it, and expects this data.
    async fn answers(&self, verb: &str, data: Value, expected: Value) -> Result<(), Fault> {
        let answer: Value = self.client.ask(self.request(verb, &data)?, WAIT).await?;
        same(verb, &expected, &answer)
    }

    /// Calls it, and expects this error.
    async fn refuses(&self, verb: &str, data: Value, message: &str) -> Result<(), Fault> {
        let request = self.request(verb, &data)?;
        let error = self.client.call(request, WAIT).await?.error;
        let said = error.map_or_else(String::new, |error| error.message);
        same(verb, &json!(message), &json!(said))
    }

    /// Checks the echoed data and ids.
    async fn echo(&self) -> Result<(), Fault> {
        let data = json!({ "n": 7, "text": "ñandú ☃", "list": [1, null] });
        let request = self.request("echo.run", &data)?;
        let answer: Value = self.client.ask(request, WAIT).await?;
        same("echo.run", &data, &answer["echo"])
    }

    /// It nobody waits for: its effect is a key, which is there before long.
    async fn record(&self, url: &str) -> Result<(), Fault> {
        let key = format!("demo:effect:{}", std::process::id());
        let data = json!({ "effect_key": key, "value": "v1" });
        self.client.send(self.request("record.put", &data)?).await?;
        self.answers("record.put", data, json!({ "stored": key }))
            .await?;
        let mut redis = redis::Client::open(url)?
            .get_multiplexed_async_connection()
            .await?;
        let written: String = redis::cmd("GET").arg(&key).query_async(&mut redis).await?;
        same("record.put wrote", &json!("v1"), &json!(written))
    }

    /// A batch whose answer comes as a callback.
    async fn callback(&self) -> Result<(), Fault> {
        let (heard, mut hears) = mpsc::channel(1);
        let done = move |outcome: Result<Value, ErrorDetail>, context: ActionContext| {
            let heard = heard.clone();
            async move {
                let outcome = outcome.map_err(|error| error.message)?;
                let remembers = context.callback_of.map(|request| request.remembers);
                heard
                    .send((outcome, remembers))
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        let listens = Service::listener(&self.client)
            .on_callback(EVENT, done)
            .start()
            .await?;
        let request = self.request("batch_process", &texts())?;
        self.client
            .send_with_callback(request, EVENT, "page 3")
            .await?;
        let came = tokio::time::timeout(WAIT, hears.recv()).await?;
        let (outcome, remembers) = came.ok_or("nobody listens")?;
        listens.stop().await;
        same("batch_process, a callback", &embedded(), &outcome)?;
        same("and what it is about", &json!("page 3"), &json!(remembers))
    }
}

fn texts() -> Value {
    json!({ "texts": ["hola", "ñ"], "chunk_ids": ["c1", "c2"], "model": "m" })
}

fn embedded() -> Value {
    json!({
        "status": "completed", "model": "m", "chunk_ids": ["c1", "c2"], "embeddings": [[4, 0], [1, 1]],
    })
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let asks = Asks {
        client: common::client("tester").await?,
        service: common::option("--name", "demo"),
    };
    asks.echo().await?;
    asks.record(&common::redis()).await?;
    asks.answers("none.run", json!({}), json!({})).await?;
    asks.refuses("fail.run", json!({ "message": "boom" }), "boom")
        .await?;
    let nap = json!({ "seconds": 0.2 });
    asks.answers("slow.run", nap, json!({ "slept": 0.2 }))
        .await?;
    asks.answers("batch.generate", texts(), embedded()).await?;
    asks.callback().await?;
    let found = json!({ "answer": "doc:Proyecto X", "query_text": "Proyecto X" });
    asks.answers("rag.execute", json!({ "query_text": "Proyecto X" }), found)
        .await?;
    let unknown = format!("No handler for {}.no.such", asks.service);
    asks.refuses("no.such", json!({}), &unknown).await
}
