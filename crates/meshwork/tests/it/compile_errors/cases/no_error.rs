//! A handler whose error is neither an error nor a text.

use meshwork::{Client, Worker};

#[meshwork::job]
struct Pay {
    order: u64,
}

enum Refusal {
    NoOrder,
}

#[meshwork::handler]
async fn pay(job: Pay) -> Result<(), Refusal> {
    match job.order {
        0 => Err(Refusal::NoOrder),
        _ => Ok(()),
    }
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
