//! Which dead letters are meant.

use meshwork::model::name::{Group, ScriptType};
use meshwork::{Client, DeadFilter};

use crate::error::CommandError;
use crate::value::{self, Moment};

/// Why a job is a dead letter.
const REASONS: [&str; 5] = ["failed", "timeout", "permanent", "poison", "queue"];

/// Options that choose.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which")]
pub(super) struct Filter {
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    script_type: Option<ScriptType>,
    /// Only those that were sent to this group
    #[arg(long)]
    group: Option<Group>,
    /// Only those that died of this: no retry was left, no retry could help, it killed its workers, or its
    /// queue is no list
    #[arg(long, value_name = "WORD", value_parser = REASONS)]
    reason: Option<String>,
    /// Only those whose error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only those that died before: an age (90s, 15m, 2h, 7d) or a time in UTC
    #[arg(long, value_name = "WHEN", value_parser = value::moment, allow_hyphen_values = true)]
    older_than: Option<Moment>,
    /// Only those that died since: an age (90s, 15m, 2h, 7d) or a time in UTC
    #[arg(long, value_name = "WHEN", value_parser = value::moment, allow_hyphen_values = true)]
    newer_than: Option<Moment>,
}

/// The names of all its options, for rules about them.
pub(super) const OPTIONS: [&str; 6] = [
    "script_type",
    "group",
    "reason",
    "error",
    "older_than",
    "newer_than",
];

impl Filter {
    /// As the library knows it. Ages are counted by the server's clock.
    pub(super) async fn resolve(&self, client: &Client) -> Result<DeadFilter, CommandError> {
        let now = match (self.older_than, self.newer_than) {
            (None, None) => 0,
            _ => client.broker().now().await?,
        };
        Ok(DeadFilter {
            script_type: self.script_type.clone(),
            group: self.group.clone(),
            reason: self.reason.clone(),
            error_contains: self.error.clone(),
            until_ms: self.older_than.map(|moment| moment.ms(now)),
            since_ms: self.newer_than.map(|moment| moment.ms(now)),
        })
    }
}
