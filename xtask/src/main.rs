//! The project's chores: everything that a developer or CI runs, as `cargo xtask <chore>`.

#![allow(clippy::print_stderr, reason = "chores report progress on stderr")]

mod api;
mod check;
mod fake_mycelium;
mod long;
mod outside;
mod packages;
mod pictures;
mod process;
mod sizes;
mod suite;
mod tidy;
mod tools;
mod workspace;

use std::env;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::Failure;
use crate::workspace::Workspace;

/// The project's own chores
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Find or install what the tests need, and run those that take few minutes, or the named ones
    Test {
        /// Install nothing: tests whose programs are missing are skipped by name
        #[arg(long)]
        no_install: bool,
        /// Run every test: also kills, mutations, long cases, all engines and the documentation
        #[arg(long)]
        all: bool,
        /// Passed on to `cargo test`, as `-p meshwork-broker claim`; what stands behind a `--`,
        /// as `-- --nocapture`, to the test binaries
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        cargo: Vec<String>,
    },
    /// All that CI does: fmt, tidy, licences, clippy, docs, test
    Check(check::Extent),
    /// Check the structural rules of this repository
    Tidy,
    /// Compare the public API of the library with its record
    Api,
    /// Compare numbers of crates, lines and bytes with their record
    Sizes(sizes::Options),
    /// Build the program of README.md in a crate outside of the workspace, and count the crates
    Outside,
    /// Build the packages for Python and Node.js into target/packages, and try them in empty environments
    Packages(packages::Options),
    /// Write the pictures of the dashboard, of the store that its browser test fills
    Pictures,
    /// Compare the embedded engine with redis-server on random commands (options: --help)
    #[command(disable_help_flag = true)]
    Fuzz {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Measure calls while a million jobs wait, and while a thousand do (options: --help)
    #[command(disable_help_flag = true)]
    Scale {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Measure how fast jobs are enqueued and run, beside the floor (options: --help)
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Kill workers and engines at random moments and count the results (options: --help)
    #[command(disable_help_flag = true)]
    Chaos {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Let Bananas and ours work side by side, kill ours, and count (options: --help)
    #[command(disable_help_flag = true)]
    Bananas {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Call services while their workers are killed, and count (options: --help)
    #[command(disable_help_flag = true)]
    Actions {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Simulate messages between nodes on random schedules, and check the rules (options: --help)
    #[command(disable_help_flag = true)]
    Simulate {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Start fake Mycelium daemons, connected with each other, with their JSON-RPC at these ports
    FakeMycelium {
        /// Ports, such as 8990 8991 8992
        #[arg(required = true)]
        ports: Vec<u16>,
    },
    /// Let a type migrate with old and new workers and clients at work, and count (options: --help)
    #[command(disable_help_flag = true)]
    Legacy {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

fn main() -> ExitCode {
    // Before clap, which would consume the `--`.
    let mut own: Vec<String> = env::args().collect();
    let at = own
        .iter()
        .position(|word| word == "--")
        .unwrap_or(own.len());
    let behind: Vec<String> = own.drain(at..).skip(1).collect();
    let arguments = Arguments::parse_from(own);
    match perform(&arguments.chore, &behind) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chore. `behind` has the arguments after a `--`.
fn perform(chore: &Chore, behind: &[String]) -> Result<(), Failure> {
    let workspace = Workspace::find()?;
    match chore {
        Chore::Test {
            no_install,
            all,
            cargo,
        } => {
            let selection = suite::Selection {
                no_install: *no_install,
                all: *all,
                cargo,
                binaries: behind,
                environment: &[],
            };
            suite::test(&workspace, &selection)
        }
        Chore::Check(extent) => check::check(&workspace, extent),
        Chore::Tidy => tidy::tidy(&workspace),
        Chore::Api => api::check(&workspace),
        Chore::Sizes(options) => sizes::sizes(&workspace, options),
        Chore::Outside => outside::build(&workspace),
        Chore::Packages(options) => packages::build(&workspace, options),
        Chore::Pictures => pictures::write(&workspace),
        Chore::Fuzz { rest } => long::run(&workspace, "fuzz", rest),
        Chore::Scale { rest } => long::run(&workspace, "scale", rest),
        Chore::Bench { rest } => long::run(&workspace, "bench", rest),
        Chore::Chaos { rest } => long::run(&workspace, "chaos", rest),
        Chore::Bananas { rest } => long::run(&workspace, "bananas", rest),
        Chore::Actions { rest } => long::run(&workspace, "actions", rest),
        Chore::Simulate { rest } => long::run(&workspace, "simulate", rest),
        Chore::FakeMycelium { ports } => fake_mycelium::run(&workspace, ports),
        Chore::Legacy { rest } => long::run(&workspace, "legacy", rest),
    }
}
