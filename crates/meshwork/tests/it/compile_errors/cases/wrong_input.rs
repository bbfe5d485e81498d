//! A job in a flow whose input is not the output before it.

use meshwork::flow::Flow;

#[meshwork::job(output = Vec<String>)]
struct Fetch;

#[meshwork::job(input = u64)]
struct Report;

fn main() {
    let _ = Flow::new("nightly").start(Fetch).then(Report);
}
