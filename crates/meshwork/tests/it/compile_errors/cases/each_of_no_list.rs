//! Items of an output that is no list.

use meshwork::flow::Flow;

#[meshwork::job(output = u64)]
struct Fetch;

#[meshwork::job(input = u64)]
struct Parse;

fn main() {
    let _ = Flow::new("nightly").start(Fetch).each(Parse);
}
