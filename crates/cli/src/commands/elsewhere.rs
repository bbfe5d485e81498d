//! Commands that do not exist under these names: the error names the right one.

use crate::error::CommandError;

/// Any further arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<String>,
}

/// Error of `meshwork config`.
pub(crate) fn config() -> CommandError {
    CommandError::usage(
        "there is no command `config`: settings are options and environment variables, which `meshwork COMMAND --help` \
         lists; `meshwork queue limit set` keeps limits of queues in the store, and docs/operations.md tells of the rest",
    )
}
