//! Our services and clients of Nooble4's actions, as other programs see them on the wire.

mod callbacks;
mod captured;
mod chains;
mod client;
mod cycles;
mod deleted;
mod demo;
mod ends;
mod examples_run;
mod from_handlers;
mod from_jobs;
#[path = "../../../examples/demo_service/handlers.rs"]
mod handlers;
mod late;
mod memory;
mod notices;
mod panics;
mod process;
mod scripts;
mod service;
mod slots;
mod stops;
mod support;
mod table;
