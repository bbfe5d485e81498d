//! An agent that thinks and searches by turns until it knows enough (ReAct), and its two tools: three
//! services, each a process. Kill the agent with `kill -9` whenever you like, and start it again: it goes on where it
//! was.
//!
//! ```console
//! $ cargo run --example agent -- --role llm &
//! $ cargo run --example agent -- --role query &
//! $ cargo run --example agent -- --role agent &
//! $ cargo run --example agent -- --role ask --message 'Project X and the notes of the meeting'
//! ```
#![allow(clippy::print_stdout, reason = "so one sees what runs")]

#[path = "../common/mod.rs"]
mod common;

use std::error::Error;
use std::time::Duration;

use meshwork::protocol::nooble::{ActionContext, Request, Service};
use serde::{Deserialize, Serialize};

use common::{client, option, serve};

/// Timeout of a step.
const STEP: Duration = Duration::from_secs(60);
/// Timeout of the user's call.
const PATIENCE: Duration = Duration::from_secs(300);
/// Most calls of the model.
const MOST_TURNS: usize = 10;

/// Request of the user.
#[derive(Serialize, Deserialize)]
struct Chat {
    message: String,
}

/// Reply of the agent.
#[derive(Serialize, Deserialize)]
struct Reply {
    text: String,
}

/// Prompt of the model: the user's text, and the findings so far.
#[derive(Serialize, Deserialize)]
struct Prompt {
    message: String,
    found: Vec<String>,
}

/// Decision of the model: search for more, or answer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Thought {
    Search(String),
    Say(String),
}

/// Query of the agent.
#[derive(Serialize, Deserialize)]
struct Query {
    query_text: String,
}

/// Findings.
#[derive(Serialize, Deserialize)]
struct Found {
    answer: String,
}

/// The agent. Each step has a name that is the same whenever this is gone through, and asks the same then.
async fn chat(chat: Chat, context: ActionContext) -> Result<Reply, Box<dyn Error + Send + Sync>> {
    let cycle = context.cycle();
    let mut prompt = Prompt {
        message: chat.message,
        found: Vec::new(),
    };
    for turn in 1..=MOST_TURNS {
        let think = cycle.request("llm.generate.text", &prompt)?;
        match cycle.ask(&format!("think-{turn}"), think, STEP).await? {
            Thought::Search(query_text) => {
                let search = cycle.request("query.rag.execute", &Query { query_text })?;
                let found: Found = cycle.ask(&format!("search-{turn}"), search, STEP).await?;
                prompt.found.push(found.answer);
            }
            Thought::Say(text) => {
                cycle.end().await?;
                return Ok(Reply { text });
            }
        }
    }
    Err(format!("no answer in {MOST_TURNS} turns").into())
}

/// A model that wants to know everything that stands between the `and`s.
async fn think(prompt: Prompt, _: ActionContext) -> Result<Thought, String> {
    println!("llm ran with {}", prompt.found.len());
    let mut topics = prompt.message.split(" and ");
    Ok(match topics.nth(prompt.found.len()) {
        Some(topic) => Thought::Search(topic.to_owned()),
        None => Thought::Say(prompt.found.join("; ")),
    })
}

async fn search(query: Query, _: ActionContext) -> Result<Found, String> {
    println!("query ran for {}", query.query_text);
    Ok(Found {
        answer: format!("doc:{}", query.query_text),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match option("--role", "ask").as_str() {
        "agent" => {
            serve(Service::new(&client("execution").await?).handle("execution.chat", chat)).await
        }
        "llm" => {
            serve(Service::new(&client("llm").await?).handle("llm.generate.text", think)).await
        }
        "query" => {
            serve(Service::new(&client("query").await?).handle("query.rag.execute", search)).await
        }
        "ask" => {
            let message = option("--message", "Project X and the notes of the meeting");
            let request = Request::new("execution.chat", &Chat { message })?;
            let reply: Reply = client("user").await?.ask(request, PATIENCE).await?;
            println!("{}", reply.text);
            Ok(())
        }
        other => Err(format!("--role is agent, llm, query or ask, not {other:?}").into()),
    }
}
