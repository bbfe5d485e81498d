//! A value that is no job.

use meshwork::{Client, Error};

struct Pay {
    order: u64,
}

async fn submit(client: &Client) -> Result<(), Error> {
    client.enqueue(Pay { order: 7 }).await?;
    Ok(())
}

fn main() {}
