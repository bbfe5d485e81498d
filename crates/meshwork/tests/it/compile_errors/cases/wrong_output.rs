//! A handler whose result is not the output of the job.

use meshwork::{Client, Worker};

#[meshwork::job(output = String)]
struct Pay {
    order: u64,
}

#[meshwork::handler]
async fn pay(job: Pay) -> Result<u64, String> {
    Ok(job.order)
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
