//! Metrics of this process and of the store, as text for Prometheus (OpenMetrics). [`FIGURES`] lists all metrics. A
//! program serves [`Metrics::text`] over HTTP.

mod bananas;
mod format;
mod mesh;
mod metric;
mod page;
mod process;
mod shared;
mod table;

pub use format::Format;
pub use metric::{Kind, Metric};
pub use shared::{FRESH, Shared};
pub use table::FIGURES;

use meshwork_macros::boxed;
use std::sync::Arc;

use crate::protocol::bananas::Client as BananasClient;
use crate::{Client, Monitor};
use page::Page;

/// Metrics of the store, of this process, and of the worker in it, if any. Clones share cached readings.
#[derive(Debug, Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
    monitor: Option<Monitor>,
    whole: bool,
}

impl Metrics {
    /// Creates the metrics of a process without a worker.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            shared: Arc::new(Shared::new(client.broker().clone(), None)),
            monitor: None,
            whole: false,
        }
    }

    /// Adds metrics of Bananas jobs, for routes that workers of Meshwork have served, or to which its clients have
    /// submitted.
    #[must_use]
    pub fn bananas(self, client: &BananasClient) -> Self {
        let (ours, theirs) = (self.shared.broker().clone(), client.broker().clone());
        Self {
            shared: Arc::new(Shared::new(ours, Some(theirs))),
            ..self
        }
    }

    /// Adds the metrics of a worker in this process.
    #[must_use]
    pub fn worker(self, monitor: Monitor) -> Self {
        Self {
            monitor: Some(monitor),
            ..self
        }
    }

    /// Completes the scan for queues before each reading, however long it takes: for single readings. Without this, the
    /// scan continues with each reading, and `meshwork_store_partial` is 1 until it is complete.
    #[must_use]
    pub fn whole(self) -> Self {
        Self {
            whole: true,
            ..self
        }
    }

    /// Returns the metrics of the store.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns all metrics. If the store does not answer, its metrics are missing, and `meshwork_store_up` is 0.
    #[boxed]
    pub async fn text(&self, format: Format) -> String {
        let page = Page {
            keys: self.shared.keys().clone(),
            store: self.shared.read(self.whole).await,
            monitor: self.monitor.clone(),
            process: process::read(),
        };
        format.text(page)
    }
}
