//! Damaged keys of one node in the store: they are reported, and hold up no other node.

use std::collections::BTreeMap;

use super::Exchange;
use crate::context::ContextError;

/// Shortest time between two reports of one damage, in milliseconds.
const REPORT_MS: u64 = 60_000;
/// Greatest number of damages whose reports are remembered.
const MAX_REPORTS: usize = 1_000;

/// Damages that were reported, each with its time.
#[derive(Debug, Default)]
pub(super) struct Damages(BTreeMap<String, u64>);

impl Exchange {
    /// Returns `None` for an error that lasts until somebody repairs the store, and reports it.
    ///
    /// # Errors
    /// All others.
    pub(super) fn unless_damaged<T>(
        &mut self,
        result: Result<T, ContextError>,
        mono_ms: u64,
    ) -> Result<Option<T>, ContextError> {
        let error = match result {
            Err(error) if error.is_permanent() => error,
            result => return result.map(Some),
        };
        let (text, reports) = (error.to_string(), &mut self.damages.0);
        let at = reports.get(&text);
        if at.is_none_or(|at| mono_ms.saturating_sub(*at) >= REPORT_MS) {
            tracing::warn!(%error, "damaged key of the exchange with other nodes skipped");
            if reports.len() >= MAX_REPORTS {
                reports.clear();
            }
            reports.insert(text, mono_ms);
        }
        Ok(None)
    }
}
