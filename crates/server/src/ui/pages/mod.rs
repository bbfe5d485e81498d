//! The pages, one file each.

mod attempts;
mod batch;
mod confirm;
mod dead;
mod flow;
mod flows;
mod history;
mod job;
mod jobs;
pub(super) mod many;
mod overview;
mod queue;
mod queue_parts;
mod queues;
mod schedules;
mod search;
mod workers;

use std::sync::Arc;

use axum::routing::{MethodRouter, get};

use super::Shared;
use super::layout::page;

/// All pages with their paths.
pub(super) fn all() -> [(&'static str, MethodRouter<Arc<Shared>>); 14] {
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
        ("/search", get(search::open)),
        ("/batch", page(batch::show)),
        ("/confirm", page(confirm::show)),
        ("/many", page(many::show).post(many::act)),
    ]
}
