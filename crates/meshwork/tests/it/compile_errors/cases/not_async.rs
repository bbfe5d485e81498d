//! A handler that is no `async fn`.

use meshwork::{Client, Worker};

#[meshwork::job(output = u64)]
struct Pay {
    order: u64,
}

#[meshwork::handler]
fn pay(job: Pay) -> Result<u64, String> {
    Ok(job.order)
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
