//! flow_sweep: finds flows that plain clients have written (`HSET flow:…`), who wake no worker, and flows that are lost from
//! the set of due ones, by a scan of the keys, page by page.

use meshwork_macros::boxed;
use meshwork_model::keys::context::FlowId;

use super::{Flows, MAX_MOVES};
use crate::error::Error;
use crate::script::Verb;
use crate::verb::inspect::jobs::{glob_literal, texts};

/// Number of keys in a page, whose scan takes about 0.3 ms of the server's time.
const PAGE: usize = 1_000;

/// A page of the scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlainFlows {
    /// Cursor of the next page; 0 after the last one.
    pub next: u64,
    /// Flows that no step has taken up, and flows that were lost. Workers were woken for them.
    pub found: Vec<FlowId>,
}

impl Flows {
    /// Scans a page of keys, and wakes workers for the flows that no step has taken up, and for those that are not due
    /// although they have not ended. A user without the right to scan reads the list of flows instead, which has none of
    /// the former.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn sweep(&self, from: u64) -> Result<PlainFlows, Error> {
        let prefix = format!("{}flow:", self.keys.prefix());
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH");
        scan.arg(format!("{}*", glob_literal(&prefix)));
        scan.arg("COUNT").arg(PAGE);
        let scanned = self.broker.ask("flow_sweep", &scan).await;
        let (next, keys): (u64, Vec<Vec<u8>>) = match scanned {
            Err(Error::Denied { .. }) => return self.sweep_list(from).await,
            scanned => scanned?,
        };
        let number = |key: String| key.strip_prefix(&prefix)?.parse::<FlowId>().ok();
        let flows: Vec<FlowId> = texts(keys).filter_map(number).collect();
        let found = self.wake(&flows).await?;
        Ok(PlainFlows { next, found })
    }

    /// Does the same with a page of the list of flows, from this position on.
    async fn sweep_list(&self, from: u64) -> Result<PlainFlows, Error> {
        let flows = self.list(from as usize, PAGE).await?;
        let next = match flows.len() {
            PAGE => from + PAGE as u64,
            _ => 0,
        };
        let found = self.wake(&flows).await?;
        Ok(PlainFlows { next, found })
    }

    async fn wake(&self, flows: &[FlowId]) -> Result<Vec<FlowId>, Error> {
        let mut found = Vec::new();
        for flows in flows.chunks(MAX_MOVES) {
            let mut call = self.broker.scripts.call(Verb::FlowSweep);
            call.push_arg(self.broker.clock.argument());
            for flow in flows {
                call.push_key(self.keys.flow(*flow));
                call.push_arg(flow.0);
            }
            let numbers: Vec<String> = call.run(&self.broker.conn).await?;
            found.extend(numbers.iter().filter_map(|id| id.parse::<FlowId>().ok()));
        }
        Ok(found)
    }
}
