//! A handler that returns no `Result`.

use meshwork::{Client, Worker};

#[meshwork::job(output = u64)]
struct Pay {
    order: u64,
}

#[meshwork::handler]
async fn pay(job: Pay) -> u64 {
    job.order
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
