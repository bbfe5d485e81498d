//! The command `meshwork`, as people and programs run it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod action_listen;
mod action_refusals;
mod actions;
mod bad_input;
mod bananas;
mod bananas_dead;
mod batch;
mod beside;
mod children;
mod cluster;
mod common;
mod connect;
mod context_acl;
mod context_messages;
mod contexts;
mod dead;
mod dead_worker;
mod doctor;
mod each;
mod events;
mod examples;
mod filter;
mod flow;
mod follow;
mod footprint;
mod full_disk;
mod gateway;
mod gateway_hostile;
mod input;
mod job;
mod limits;
mod metrics;
mod migrate;
mod migrate_bananas;
mod noise;
mod order;
#[cfg(feature = "otlp")]
mod otlp;
mod outage;
mod output;
mod program;
mod protocol;
mod rescue;
mod resume;
mod run;
mod sandbox;
mod schedule;
mod secrets;
mod tls;
mod trace;
mod why;
mod words;
mod worker;
