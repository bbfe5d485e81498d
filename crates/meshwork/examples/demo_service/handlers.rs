//! The handlers of the demo service.

use std::time::Duration;

use meshwork::protocol::nooble::Data;
use meshwork::protocol::nooble::{ActionContext, Client, Service};
use serde::{Deserialize, Serialize};

/// TTL of records of `record.put`, in seconds.
const STAYS: u64 = 120;

#[derive(Serialize)]
struct Echo {
    echo: Data,
    task_id: String,
    correlation_id: String,
    by: String,
}

#[derive(Deserialize)]
struct Put {
    effect_key: String,
    value: serde_json::Value,
}

#[derive(Serialize)]
struct Stored {
    stored: String,
}

#[derive(Deserialize)]
struct Fail {
    message: String,
}

#[derive(Deserialize)]
struct Slow {
    seconds: serde_json::Number,
}

#[derive(Serialize)]
struct Slept {
    slept: serde_json::Number,
}

#[derive(Deserialize)]
struct Texts {
    texts: Vec<String>,
    #[serde(default)]
    chunk_ids: Vec<String>,
    model: Option<String>,
}

#[derive(Serialize)]
struct Embedded {
    status: &'static str,
    model: Option<String>,
    chunk_ids: Vec<String>,
    embeddings: Vec<[usize; 2]>,
}

#[derive(Deserialize)]
struct Query {
    query_text: String,
}

#[derive(Serialize)]
struct Found {
    answer: String,
    query_text: String,
}

async fn echo(data: Data, context: ActionContext) -> Result<Echo, String> {
    // Where the wire has no place for an id, it is none.
    let or_none = |id: &Option<String>| id.clone().unwrap_or_else(|| "None".to_owned());
    Ok(Echo {
        echo: data,
        task_id: or_none(&context.action.task_id),
        correlation_id: or_none(&context.action.correlation_id),
        by: context.client().service().to_owned(),
    })
}

async fn slow(slow: Slow, _: ActionContext) -> Result<Slept, String> {
    let seconds = slow.seconds.as_f64().unwrap_or_default();
    let seconds = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    tokio::time::sleep(seconds).await;
    Ok(Slept {
        slept: slow.seconds,
    })
}

async fn embed(given: Texts, _: ActionContext) -> Result<Embedded, String> {
    let texts = given.texts.iter().enumerate();
    Ok(Embedded {
        status: "completed",
        model: given.model,
        chunk_ids: given.chunk_ids,
        embeddings: texts.map(|(at, text)| [text.chars().count(), at]).collect(),
    })
}

async fn search(query: Query, _: ActionContext) -> Result<Found, String> {
    Ok(Found {
        answer: format!("doc:{}", query.query_text),
        query_text: query.query_text,
    })
}

/// The service that `client` is a client of; `record.put` writes to the Redis at `url`.
pub(crate) fn service(client: &Client, url: &str) -> Result<Service, redis::RedisError> {
    let name = client.service();
    let of = |action: &str| format!("{name}.{action}");
    let redis = redis::Client::open(url)?;
    let put = move |put: Put, _: ActionContext| {
        let redis = redis.clone();
        async move {
            let mut connection = redis.get_multiplexed_async_connection().await?;
            let text = put.value.as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| put.value.to_string());
            let mut set = redis::cmd("SET");
            set.arg(&put.effect_key).arg(text).arg("EX").arg(STAYS);
            set.query_async::<()>(&mut connection).await?;
            Ok::<_, redis::RedisError>(Stored {
                stored: put.effect_key,
            })
        }
    };
    let none = async |_: Data, _: ActionContext| Ok::<(), String>(());
    let fail = async |fail: Fail, _: ActionContext| Err::<(), _>(fail.message);
    // One at a time, in their order, as Nooble4's workers.
    Ok(Service::new(client)
        .concurrency(1)
        .handle(&of("echo.run"), echo)
        .handle(&of("record.put"), put)
        .handle(&of("none.run"), none)
        .handle(&of("fail.run"), fail)
        .handle(&of("slow.run"), slow)
        .handle(&of("batch.generate"), embed)
        .handle(&of("batch_process"), embed)
        .handle(&of("rag.execute"), search))
}
