//! The pages, one file each.

mod attempts;
mod confirm;
mod dead;
mod flow;
mod flows;
mod job;
mod jobs;
mod overview;
mod queue;
mod queues;
mod schedules;
mod search;
mod views;
mod workers;

use std::sync::Arc;

use axum::routing::MethodRouter;

use super::Shared;
use super::layout::page;

/// All pages with their paths.
pub(super) fn all() -> [(&'static str, MethodRouter<Arc<Shared>>); 12] {
    [
        ("/", page(overview::show)),
        ("/jobs", page(jobs::show)),
        ("/job", page(job::show)),
        ("/queues", page(queues::show)),
        ("/queue", page(queue::show)),
        ("/workers", page(workers::show)),
        ("/dead", page(dead::show)),
        ("/schedules", page(schedules::show)),
        ("/flows", page(flows::show)),
        ("/flow", page(flow::show)),
        ("/search", page(search::show)),
        ("/confirm", page(confirm::show)),
    ]
}
