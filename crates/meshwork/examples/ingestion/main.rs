//! Ingestion asks embedding for vectors, and has them by callback: who asks does not wait,
//! and whichever process of ingestion listens stores what comes, after a restart too.
//!
//! ```console
//! $ cargo run --example ingestion -- --role embedding --handler crates/meshwork/examples/ingestion/embed.py &
//! $ cargo run --example ingestion -- --role ingestion &
//! $ cargo run --example ingestion -- --role ingest --document doc-1 --text 'one two three four five'
//! ```
//!
//! Without `--handler` embedding has one in Rust.
#![allow(clippy::print_stdout, reason = "so one sees what runs")]

#[path = "../common/mod.rs"]
mod common;

use std::error::Error;
use std::path::Path;

use meshwork::protocol::nooble::ErrorDetail;
use meshwork::protocol::nooble::{ActionContext, Request, Service};
use serde::{Deserialize, Serialize};

use common::{client, option, serve};

/// Action of the embedding service.
const EMBED: &str = "embedding.batch_process";
/// Event of its callback.
const EMBEDDED: &str = "ingestion.embedding_result";
/// Texts of one batch.
const BATCH: usize = 2;

#[derive(Serialize, Deserialize)]
struct Batch {
    texts: Vec<String>,
    chunk_ids: Vec<String>,
    model: String,
}

#[derive(Serialize, Deserialize)]
struct Embedded {
    status: String,
    model: String,
    chunk_ids: Vec<String>,
    embeddings: Vec<Vec<usize>>,
    dimensions: usize,
}

/// Data that ingestion needs in the callback.
#[derive(Serialize, Deserialize)]
struct Remembers {
    document: String,
    batch: usize,
}

/// The handler of embedding, where it is in Rust.
async fn embed(batch: Batch, _: ActionContext) -> Result<Embedded, String> {
    let texts = batch.texts.iter().enumerate();
    Ok(Embedded {
        status: "completed".to_owned(),
        embeddings: texts
            .map(|(at, text)| vec![text.chars().count(), at])
            .collect(),
        model: batch.model,
        chunk_ids: batch.chunk_ids,
        dimensions: 2,
    })
}

/// The handler of ingestion's callback.
async fn store(
    outcome: Result<Embedded, ErrorDetail>,
    context: ActionContext,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let request = context
        .callback_of
        .ok_or("a callback without its request")?;
    let Remembers { document, batch } = serde_json::from_value(request.remembers)?;
    match outcome {
        Ok(embedded) => {
            let Embedded {
                chunk_ids,
                embeddings,
                ..
            } = embedded;
            println!("stored batch {batch} of {document}: {chunk_ids:?} {embeddings:?}");
        }
        Err(error) => println!("batch {batch} of {document} failed: {}", error.message),
    }
    Ok(())
}

/// Cuts a document into words, and asks for them in batches.
async fn ingest(document: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let client = client("ingestion").await?;
    let words: Vec<_> = text.split_whitespace().enumerate().collect();
    for (batch, words) in words.chunks(BATCH).enumerate() {
        let data = Batch {
            texts: words.iter().map(|(_, word)| (*word).to_owned()).collect(),
            chunk_ids: words
                .iter()
                .map(|(at, _)| format!("{document}-{at}"))
                .collect(),
            model: "text-embedding-3-small".to_owned(),
        };
        let remembers = Remembers {
            document: document.to_owned(),
            batch,
        };
        let request = Request::new(EMBED, &data)?;
        client
            .send_with_callback(request, EMBEDDED, &remembers)
            .await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match option("--role", "ingest").as_str() {
        "embedding" => {
            let service = Service::new(&client("embedding").await?);
            match option("--handler", "").as_str() {
                "" => serve(service.handle(EMBED, embed)).await,
                script => serve(service.script(EMBED, Path::new(script))?).await,
            }
        }
        "ingestion" => {
            let client = client("ingestion").await?;
            serve(Service::new(&client).on_callback(EMBEDDED, store)).await
        }
        "ingest" => {
            ingest(
                &option("--document", "doc-1"),
                &option("--text", "one two three"),
            )
            .await
        }
        other => Err(format!("--role is embedding, ingestion or ingest, not {other:?}").into()),
    }
}
