//! The `meshwork` command. [`commands`] has one file per command; [`cli::report`] turns errors into messages and exit
//! codes.

mod app;
pub(crate) mod args;
mod bulk;
mod change;
mod cli;
mod commands;
mod confirm;
mod each;
mod environment;
mod ephemeral_worker;
mod error;
mod exit;
mod follow;
mod help;
mod identity;
mod interrupt;
mod job_args;
mod known_queue;
mod listing;
mod out;
mod parts;
mod passphrase;
mod persist;
mod remote;
mod scope;
mod single;
pub(crate) mod telemetry;
mod timing_args;
mod whole_id;
mod words;

use std::process::ExitCode;

use crate::cli::Cli;
use crate::error::CommandError;

fn main() -> ExitCode {
    // Must be first: in a script's launcher process this call does not return.
    meshwork::runtime::init();
    // Without it, only processes of scripts that kill their launcher survive.
    let _ = meshwork::runtime::adopt_orphans();
    environment::guard();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let logging = cli.log();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|source| CommandError::system("thread", &source));
    let exit = runtime.map_or_else(
        |error| cli::report(&error),
        |runtime| {
            let exit = runtime
                .block_on(cli.run())
                .unwrap_or_else(|error| cli::report(&error));
            // A script that blocks its thread must not delay the end.
            runtime.shutdown_background();
            exit
        },
    );
    // Spans that were recorded up to here are exported.
    logging.end();
    exit.into()
}
