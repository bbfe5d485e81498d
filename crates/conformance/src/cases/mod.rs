//! Requirements of every engine, as cases for the real scripts: one file per verb, and files for topics across verbs.
//! A case gets an empty namespace and a clock that it sets, and returns each violation as a value. [`engine`] lists
//! the engines; [`meshwork_test_servers::servers`] starts them.

mod engine;
mod failure;
pub mod model;
mod run;
mod world;

mod adopt;
mod alert;
mod astray;
mod bananas;
mod batch_ends;
mod batch_lists;
mod batches;
mod cancel;
mod claim;
mod clocks;
mod configure;
mod context;
mod context_index;
mod contexts;
mod control;
mod dead;
mod defer;
mod delays;
mod delete;
mod dependents;
mod each;
mod enqueue;
mod events;
mod exchange;
mod fail;
mod fallback;
mod feeds;
mod figures;
mod finish;
mod flow_answers;
mod flow_ends;
mod flow_ground;
mod flow_plain;
mod flow_retry;
mod flows;
mod foreign;
mod foreign_matrix;
mod foreign_waits;
mod heavy;
mod heavy_batches;
mod heavy_keys;
mod heavy_schedules;
mod heavy_waits;
mod import;
mod in_context;
mod inputs;
mod inspect;
mod isolate;
mod keys;
mod lifecycle;
mod limits;
mod listeners;
mod locks;
mod log;
mod long;
mod migrate;
mod nooble;
mod odd_keys;
mod old_side;
mod options;
mod order;
mod orphan;
mod overlap;
mod own_queues;
mod pause;
mod present;
mod promote;
mod prune;
mod rates;
mod reclaim;
mod records;
mod release;
mod renew;
mod replies;
mod rescue;
mod rescue_foreign;
mod retry;
mod run_now;
mod schedule;
mod settle;
mod shared_events;
mod slots;
mod stale;
mod start_limits;
mod states;
mod stats;
mod stops;
mod submit;
mod sweep;
mod tick;
mod turns;
mod unique;
mod unread;
mod waits;
mod watch;

use futures_util::future::BoxFuture;

pub use engine::{Engine, Place};
pub use failure::{Failure, Outcome};
pub use run::Bounds;
pub use world::World;

use failure::{cases, check, same};

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
    group("enqueue", enqueue::CASES),
    group("add_child", submit::CASES),
    group("claim", claim::CASES),
    group("order", order::CASES),
    group("renew", renew::CASES),
    group("complete", finish::CASES),
    group("complete_and_claim", exchange::CASES),
    group("fail", fail::CASES),
    group("release", release::CASES),
    group("reclaim", reclaim::CASES),
    group("isolate", isolate::CASES),
    group("expire_workers", orphan::CASES),
    group("cancel", cancel::CASES),
    group("promote", promote::CASES),
    group("resolve_dependents", settle::CASES),
    group("retry", retry::CASES),
    group("delete", delete::CASES),
    group("run_now", run_now::CASES),
    group("configure", configure::CASES),
    group("alert", alert::CASES),
    group("put_schedule", schedule::CASES),
    group("fire_schedules", tick::CASES),
    group("overlap", overlap::CASES),
    Group {
        name: "own_queues",
        cases: own_queues::CASES,
        heavy: false,
        beside: true,
    },
    group("records", records::CASES),
    group("replies", replies::CASES),
    group("states", states::CASES),
    group("stale", stale::CASES),
    group("foreign", foreign::CASES),
    group("foreign_matrix", foreign_matrix::CASES),
    group("clocks", clocks::CASES),
    group("deregister", listeners::CASES),
    group("prefetch", feeds::CASES),
    group("series", each::CASES),
    group("migration_lock", locks::CASES),
    group("defer", defer::CASES),
    group("rescue", rescue::CASES),
    group("rescue_foreign", rescue_foreign::CASES),
    group("check_orphans", watch::CASES),
    group("start_limits", start_limits::CASES),
    group("check_orphans_edge", astray::CASES),
    group("track_orphans", adopt::CASES),
    group("prune", prune::CASES),
    group("control", control::CASES),
    group("leadership", turns::CASES),
    group("register", present::CASES),
    group("log", log::CASES),
    group("jobs", inspect::CASES),
    group("stats", stats::CASES),
    group("lifecycle", lifecycle::CASES),
    group("migrate", migrate::CASES),
    group("scan_orphans", sweep::CASES),
    group("prerequisites", waits::CASES),
    group("batches", batches::CASES),
    group("batch_ends", batch_ends::CASES),
    group("batch_lists", batch_lists::CASES),
    group("inputs", inputs::CASES),
    group("restore", import::CASES),
    group("dependents", dependents::CASES),
    group("foreign_prerequisites", foreign_waits::CASES),
    group("dead", dead::CASES),
    group("limits", limits::CASES),
    group("pause", pause::CASES),
    group("delays", delays::CASES),
    group("slots", slots::CASES),
    group("rates", rates::CASES),
    group("keys", keys::CASES),
    group("unique", unique::CASES),
    group("unread", unread::CASES),
    group("counters", figures::CASES),
    group("event_coalescing", shared_events::CASES),
    group("fallback", fallback::CASES),
    group("cancel_requests", stops::CASES),
    group("events", events::CASES),
    group("wrong_type_keys", odd_keys::CASES),
    group("bananas_enqueue", bananas::enqueue::CASES),
    group("bananas_claim", bananas::claim::CASES),
    group("bananas_renew", bananas::renew::CASES),
    group("bananas_complete", bananas::finish::CASES),
    group("bananas_fail", bananas::fail::CASES),
    group("bananas_release", bananas::release::CASES),
    group("bananas_move_to_route", bananas::move_to::CASES),
    group("bananas_reroute", bananas::forward::CASES),
    group("bananas_reclaim", bananas::reclaim::CASES),
    group("bananas_promote", bananas::promote::CASES),
    group("bananas_orphans", bananas::strays::CASES),
    group("bananas_schedules", bananas::cron::CASES),
    group("bananas_dead", bananas::dead::CASES),
    group("bananas_configure", bananas::configure::CASES),
    group("bananas_stats", bananas::stats::CASES),
    group("import_bananas", bananas::take_over::CASES),
    group("export_bananas", bananas::give_back::CASES),
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
        cases: context_index::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "contexts",
        cases: contexts::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flows",
        cases: flows::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_answers",
        cases: flow_answers::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_plain",
        cases: flow_plain::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_retry",
        cases: flow_retry::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "flow_ends",
        cases: flow_ends::CASES,
        heavy: false,
        beside: true,
    },
    Group {
        name: "heavy",
        cases: heavy::CASES,
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
        cases: heavy_batches::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_prerequisites",
        cases: heavy_waits::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_schedules",
        cases: heavy_schedules::CASES,
        heavy: true,
        beside: false,
    },
    Group {
        name: "heavy_keys",
        cases: heavy_keys::CASES,
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
        cases: long::CASES,
        heavy: true,
        beside: false,
    },
];
