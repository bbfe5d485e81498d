//! Plain flows: finds flows that clients have written without Meshwork, so that a step takes them up.

use futures_util::future::BoxFuture;
use meshwork_broker::Error;
use meshwork_broker::flow::Flows;

use super::task::{Outcome, Task};

/// Pages of one run, once a second: 4,000 keys, about 1 ms of the server's time.
const PAGES: usize = 4;

/// Continues the scan for flows of plain clients.
pub(super) struct PlainFlowScan {
    flows: Flows,
    /// Position of the scan.
    page: u64,
}

impl PlainFlowScan {
    pub(super) const fn new(flows: Flows) -> Self {
        Self { flows, page: 0 }
    }
}

impl Task for PlainFlowScan {
    fn name(&self) -> &'static str {
        "flow_sweep"
    }

    fn run_once(&mut self) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let mut worked = false;
            for _ in 0..PAGES {
                let swept = self.flows.sweep(self.page).await?;
                self.page = swept.next;
                worked |= !swept.found.is_empty();
                if self.page == 0 {
                    break;
                }
            }
            // The next poll of the leader continues.
            Ok(Outcome { worked, next: None })
        })
    }
}
