//! Commands that people look for and that are something else here: an error names that.

use crate::error::CommandError;

/// Whatever stands behind the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _words: Vec<String>,
}

/// The answer to `meshwork dashboard`.
pub(crate) fn dashboard() -> CommandError {
    CommandError::usage(
        "there is no command `dashboard`: `meshwork queue stats --watch` shows all queues in the terminal, and \
         deploy/grafana/meshwork.json is a dashboard for the metrics of `meshwork worker --metrics-addr` (docs/metrics.md)",
    )
}

/// The answer to `meshwork config`.
pub(crate) fn config() -> CommandError {
    CommandError::usage(
        "there is no command `config`: settings are options and environment variables, which `meshwork COMMAND --help` \
         lists; `meshwork queue limit set` keeps limits of queues in the store, and docs/operations.md tells of the rest",
    )
}
