//! Requirements of every engine, as cases for the real scripts: one file per verb, and files for topics across verbs.
//! A case gets an empty namespace and a clock that it sets, and returns each violation as a value. [`harness::engine`] lists
//! the engines; [`meshwork_test_servers::servers`] starts them.

mod dependencies;
mod harness;
mod heavy_loads;
mod jobs;
mod legacy;
mod maintenance;
mod of_contexts;
mod orphans;
pub mod queue;
mod schedules;
mod store;

mod bananas;
mod context;
mod nooble;

use futures_util::future::BoxFuture;

pub use harness::engine::{Engine, Place};
pub use harness::failure::{Failure, Outcome};
pub use harness::run::Bounds;
pub use harness::world::World;

use harness::failure::{cases, check, same};

/// One requirement.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Name of its function.
    pub name: &'static str,
    /// Function of the case, which needs an empty namespace.
    pub run: for<'a> fn(&'a World) -> BoxFuture<'a, Outcome>,
}

/// Cases of one file.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Name of the file.
    pub name: &'static str,
    /// Cases of the file.
    pub cases: &'static [Case],
    /// True if they fill queues with 100,000 items.
    pub heavy: bool,
    /// True if they use keys and databases beside those of the case.
    pub beside: bool,
}

const fn group(name: &'static str, cases: &'static [Case]) -> Group {
    Group {
        name,
        cases,
        heavy: false,
        beside: false,
    }
}

/// All cases, by file.
pub const GROUPS: &[Group] = &[
    group("enqueue", jobs::enqueue::CASES),
    group("add_child", jobs::add_child::CASES),
    group("claim", jobs::claim::CASES),
    group("order", jobs::order::CASES),
    group("renew", jobs::renew::CASES),
    group("complete", jobs::complete::CASES),
    group("complete_and_claim", jobs::complete_and_claim::CASES),
    group("fail", jobs::fail::CASES),
    group("failed_attempts", store::failed_attempts::CASES),
    group("release", jobs::release::CASES),
    group("reclaim", orphans::reclaim::CASES),
    group("isolate", jobs::isolate::CASES),
    group("expire_workers", orphans::expire_workers::CASES),
    group("cancel", jobs::cancel::CASES),
    group("promote", jobs::promote::CASES),
    group("resolve_dependents", maintenance::resolve_dependents::CASES),
    group("retry", jobs::retry::CASES),
    group("delete", jobs::delete::CASES),
    group("run_now", jobs::run_now::CASES),
    group("set_job", jobs::set_job::CASES),
    group("configure", queue::configure::CASES),
    group("alert", queue::alert::CASES),
    group("objects", store::objects::CASES),
    group("put_schedule", schedules::put_schedule::CASES),
    group("fire_schedules", schedules::fire_schedules::CASES),
    group("overlap", schedules::overlap::CASES),
    Group {
        name: "own_queues",
        cases: store::own_queues::CASES,
        heavy: false,
        beside: true,
    },
    group("records", store::records::CASES),
    group("replies", jobs::replies::CASES),
    group("states", store::states::CASES),
    group("stale", jobs::fencing::CASES),
    group("foreign", legacy::foreign::CASES),
    group("foreign_matrix", legacy::foreign_matrix::CASES),
    group("clocks", store::clocks::CASES),
    group("deregister", orphans::deregister::CASES),
    group("prefetch", orphans::prefetch::CASES),
    group("wait_and_claim", orphans::wait_and_claim::CASES),
    group("series", store::series::CASES),
    group("migration_lock", legacy::migration_lock::CASES),
    group("defer", legacy::defer::CASES),
    group("rescue", orphans::rescue::CASES),
    group("rescue_foreign", orphans::rescue_foreign::CASES),
    group("check_orphans", orphans::check_orphans::CASES),
    group("start_limits", jobs::start_limits::CASES),
    group("check_orphans_edge", orphans::check_orphans_edge::CASES),
    group("track_orphans", orphans::track_orphans::CASES),
    group("prune", maintenance::prune::CASES),
    group("control", maintenance::control::CASES),
    group("leadership", maintenance::leadership::CASES),
    group("register", maintenance::register::CASES),
    group("log", jobs::log::CASES),
    group("inspect", jobs::inspect::CASES),
    group("pages", jobs::pages::CASES),
    group("stats", queue::stats::CASES),
    group("lifecycle", store::lifecycle::CASES),
    group("migrate", legacy::migrate::CASES),
    group("scan_orphans", orphans::scan_orphans::CASES),
    group("prerequisites", dependencies::prerequisites::CASES),
    group("batches", dependencies::batches::CASES),
    group("batch_ends", dependencies::batch_ends::CASES),
    group("batch_lists", dependencies::batch_lists::CASES),
    group("inputs", jobs::inputs::CASES),
    group("restore", store::restore::CASES),
    group("dependents", dependencies::dependents::CASES),
    group(
        "foreign_prerequisites",
        dependencies::foreign_prerequisites::CASES,
    ),
    group("dead", maintenance::dead::CASES),
    group("limits", queue::limits::CASES),
    group("pause", queue::pause::CASES),
    group("delays", jobs::delays::CASES),
    group("slots", queue::slots::CASES),
    group("rates", queue::rates::CASES),
    group("keys", queue::keys::CASES),
    group("spread", queue::spread::CASES),
    group("unique", queue::unique::CASES),
    group("unread", store::unread::CASES),
    group("counters", queue::counters::CASES),
    group("history", queue::history::CASES),
    group("event_coalescing", store::event_coalescing::CASES),
    group("fallback", queue::fallback::CASES),
    group("cancel_requests", maintenance::cancel_requests::CASES),
    group("events", store::events::CASES),
    group("wrong_type_keys", store::wrong_type_keys::CASES),
    group("bananas_enqueue", bananas::enqueue::CASES),
    group("bananas_claim", bananas::claim::CASES),
    group("bananas_renew", bananas::renew::CASES),
    group("bananas_complete", bananas::complete::CASES),
    group("bananas_fail", bananas::fail::CASES),
    group("bananas_release", bananas::release::CASES),
    group("bananas_move_to_route", bananas::move_to_route::CASES),
    group("bananas_reroute", bananas::reroute::CASES),
    group("bananas_reclaim", bananas::reclaim::CASES),
    group("bananas_promote", bananas::promote::CASES),
    group("bananas_orphans", bananas::orphans::CASES),
    group("bananas_schedules", bananas::cron::CASES),
    group("bananas_dead", bananas::dead::CASES),
    group("bananas_configure", bananas::configure::CASES),
    group("bananas_stats", bananas::stats::CASES),
    group("import_bananas", bananas::import::CASES),
    group("export_bananas", bananas::export::CASES),
    group("nooble_receive", nooble::receive::CASES),
    group("nooble_complete", nooble::finish::CASES),
    group("nooble_fail", nooble::fail::CASES),
    group("nooble_release", nooble::release::CASES),
    group("nooble_renew", nooble::renew::CASES),
    group("nooble_reclaim", nooble::reclaim::CASES),
    group("nooble_promote", nooble::promote::CASES),
    group("nooble_trim", nooble::trim::CASES),
    group("nooble_deregister", nooble::leave::CASES),
    group("nooble_retry_dead", nooble::replay::CASES),
    group("nooble_saga_step", nooble::step::CASES),
    group("nooble_cleanup", nooble::tidy::CASES),
    group("nooble_has_service", nooble::has_service::CASES),
    group("nooble_subscribe", nooble::subscribe::CASES),
    group("context_commit", context::commit::CASES),
    group("context_read", context::read::CASES),
    group("context_take", context::take::CASES),
    Group {
        name: "context_index",
        cases: of_contexts::context_index::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "context_waits",
        cases: of_contexts::context_waits::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "contexts",
        cases: of_contexts::contexts::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flows",
        cases: of_contexts::flows::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_answers",
        cases: of_contexts::flow_answers::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_plain",
        cases: of_contexts::flow_plain::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_retry",
        cases: of_contexts::flow_retry::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_schedules",
        cases: of_contexts::flow_schedules::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_ends",
        cases: of_contexts::flow_ends::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "heavy",
        cases: heavy_loads::heavy::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "nooble_heavy",
        cases: nooble::heavy::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_batches",
        cases: heavy_loads::heavy_batches::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_prerequisites",
        cases: heavy_loads::heavy_prerequisites::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_schedules",
        cases: heavy_loads::heavy_schedules::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_keys",
        cases: heavy_loads::heavy_keys::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_bananas",
        cases: bananas::heavy::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "long",
        cases: heavy_loads::heavy_maintenance::CASES,
        heavy: true,
        beside: false,
    },
];
