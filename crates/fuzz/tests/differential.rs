//! Compares the engine with redis-server 7.0: random commands to both, every reply compared. `cargo xtask fuzz` is
//! the long form.

#![allow(clippy::print_stderr, reason = "a fresh seed has to be seen")]

use meshwork_fuzz::{FuzzError, Plan, run};
use meshwork_test_servers::servers::RealServer;

/// Commands of one test.
const COMMANDS: u64 = 50_000;

fn compare(seed: u64) {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    eprintln!("seed {seed}");
    let plan = Plan {
        commands: COMMANDS,
        seed,
    };
    match run(plan, &server.socket()) {
        Ok(()) => {}
        Err(error @ FuzzError::Version(_)) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_engine_does_as_redis_does() {
    compare(1);
}

#[test]
fn the_engine_does_as_redis_does_with_a_fresh_seed() {
    compare(rand::random());
}
