//! A handler whose fault `#[handler]` would name.

use meshwork::{Client, Worker};

#[meshwork::job]
struct Pay {
    order: u64,
}

#[derive(Clone)]
struct Database;

async fn pay(job: Pay, database: Database) -> Result<(), String> {
    let _ = (job.order, database);
    Ok(())
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay).state(Database)
}

fn main() {}
