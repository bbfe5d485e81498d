//! Refused frames and envelopes in the audit trail of the node.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use super::Exchange;
use crate::context::ContextError;

/// Shortest time between two entries of one code, in milliseconds: a flood of frames does not displace other entries.
const NOTE_MS: u64 = 60_000;

/// Numbers of refusals in the audit trail by code, each with its time.
#[derive(Debug, Default)]
pub(super) struct Noted(BTreeMap<String, (u64, u64)>);

impl Exchange {
    /// Adds refusals since the last entry to the audit trail. The exchange does so every two seconds.
    ///
    /// # Errors
    /// A call to the server fails.
    #[boxed]
    pub async fn note_refusals(&mut self, mono_ms: u64) -> Result<(), ContextError> {
        for (code, count) in &self.refused {
            let noted = self.noted.0.get(code);
            let is_due = |(at, before): &(u64, u64)| {
                count != before && mono_ms.saturating_sub(*at) >= NOTE_MS
            };
            if !noted.is_none_or(is_due) {
                continue;
            }
            let so_far = format!("{count} since the start");
            let noting = self
                .node
                .note_refused("mesh", "refuse frames", code, &so_far);
            noting.await?;
            self.noted.0.insert(code.clone(), (mono_ms, *count));
        }
        Ok(())
    }
}
