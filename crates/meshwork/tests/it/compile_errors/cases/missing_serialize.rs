//! A job without serde's `Serialize`.

use meshwork::Job;
use meshwork::serde::Deserialize;

#[derive(Deserialize, Job)]
#[serde(crate = "meshwork::serde")]
struct Pay {
    order: u64,
}

fn main() {}
