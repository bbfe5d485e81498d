//! A handler that keeps a value of one thread over an `await`.

use std::rc::Rc;

use meshwork::{Client, Worker};

#[meshwork::job]
struct Pay {
    order: u64,
}

#[meshwork::handler]
async fn pay(job: Pay) -> Result<(), String> {
    let order = Rc::new(job.order);
    std::future::ready(()).await;
    drop(order);
    Ok(())
}

fn worker(client: &Client) -> Worker {
    Worker::new(client).job(pay)
}

fn main() {}
