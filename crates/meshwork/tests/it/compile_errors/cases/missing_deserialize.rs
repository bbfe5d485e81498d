//! A job without serde's `Deserialize`.

use meshwork::Job;
use meshwork::serde::Serialize;

#[derive(Serialize, Job)]
#[serde(crate = "meshwork::serde")]
struct Pay {
    order: u64,
}

fn main() {}
