//! An attribute that no job has.

#[meshwork::job(retry = 3)]
struct Pay {
    order: u64,
}

fn main() {}
