//! A fake Mycelium daemon as a process, with the options of the real one that tests need.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::process::ExitCode;

use meshwork_test_servers::fakes::mycelium::program::serve;

#[tokio::main]
async fn main() -> ExitCode {
    match serve(std::env::args().skip(1), |ready| println!("{ready}")).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("fake-mycelium: {fault}");
            ExitCode::FAILURE
        }
    }
}
