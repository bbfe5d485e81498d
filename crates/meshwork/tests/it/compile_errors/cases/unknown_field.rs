//! A unique name with a field that the job does not have.

#[meshwork::job(unique = "pay-{number}")]
struct Pay {
    order: u64,
}

fn main() {}
