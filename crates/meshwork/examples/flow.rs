//! A flow of typed jobs in a context: a list, a job for each item, and a sum. `cargo run -p meshwork --example flow`
#![allow(clippy::print_stdout, reason = "that is its purpose")]

use meshwork::context::{Node, Object, Operation, new_key};
use meshwork::flow::Flow;
use meshwork::{Client, Input, Worker};

#[meshwork::job(output = Vec<String>, retries = 2)]
struct Fetch {
    day: String,
}

#[meshwork::job(input = String, output = usize)]
struct Count;

#[meshwork::job(input = Vec<usize>, output = String)]
struct Report {
    title: String,
}

async fn fetch(job: Fetch) -> Result<Vec<String>, String> {
    let files = ["sales", "stock"].into_iter();
    Ok(files.map(|name| format!("{}/{name}", job.day)).collect())
}

async fn count(_: Count, Input(file): Input<Count>) -> Result<usize, String> {
    Ok(file.len())
}

async fn report(job: Report, Input(sizes): Input<Report>) -> Result<String, String> {
    let sum: usize = sizes.iter().sum();
    Ok(format!("{}: {} files, {sum} bytes", job.title, sizes.len()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder().directory("target/flow").connect().await?;
    // Flows belong to a context, and an actor with a key submits them.
    let node = Node::of(client.broker());
    let key = new_key();
    node.trust(key.public(), None).await?;
    let me = node.identify(key).await?;
    let context = node.create_context(&me, None, None).await?;
    let flows = context.flows(&me).await?;
    let jobs = context.client(&me, Object::Queue, Operation::Pop).await?;
    let worker = Worker::new(&jobs).job(fetch).job(count).job(report);
    let worker = worker.start().await?;
    let (day, title) = ("monday".to_owned(), "Nightly".to_owned());
    let plan = Flow::new("nightly")
        .start(Fetch { day })
        .each(Count)
        .then(Report { title })
        .plan()?;
    let id = flows.submit(&plan).await?;
    let ended = flows.client().wait(id, |_| {}).await?;
    println!("{}", plan.output(&ended)?.unwrap_or_default());
    worker.stop().await;
    Ok(())
}
