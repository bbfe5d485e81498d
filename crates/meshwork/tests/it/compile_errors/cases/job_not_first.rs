//! A handler whose first argument is not the job.

use meshwork::{Client, JobContext, Worker};

#[meshwork::job]
struct Pay {
    order: u64,
}

#[meshwork::handler]
async fn pay(context: JobContext, job: Pay) -> Result<(), String> {
    context.log(&job.order.to_string());
    Ok(())
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
