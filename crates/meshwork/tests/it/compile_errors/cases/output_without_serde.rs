//! An output without serde's traits.

#[meshwork::job(output = Receipt)]
struct Pay {
    order: u64,
}

struct Receipt {
    order: u64,
}

fn main() {}
