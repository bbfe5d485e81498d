//! When a job is to run, whose turn it takes, and of what there is to be only one: options of `job submit`.

use std::time::Duration;

use meshwork::JobRequest;
use meshwork::model::job::{OnDuplicate, Until};

use crate::value::{self, Named, When};

/// Options about time, keys and unique names.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "When, and how many")]
pub(crate) struct Wishes {
    /// Not before this time: RFC 3339 (2026-01-31T12:00:00Z, …+01:00), a date in UTC, or +10m from now
    #[arg(long, value_name = "TIME", value_parser = value::when)]
    at: Option<When>,
    /// Not before so long from now: 500ms, 90s, 10m, 2h, 7d
    #[arg(long, alias = "in", value_name = "TIME", value_parser = value::span, conflicts_with = "at",
          allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Whose job it is (a tenant, say): keys take turns in a fair queue, and have limits of their own
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// No other job of the same type and name is accepted until this one is done
    #[arg(long, value_name = "NAME")]
    unique: Option<String>,
    /// … but for so long, whatever becomes of it
    #[arg(long, value_name = "TIME", value_parser = value::span, requires = "unique",
          allow_hyphen_values = true)]
    unique_for: Option<Duration>,
    /// … but until it was started, or is done, its retries included (started or done)
    #[arg(long, value_name = "WORD", value_parser = value::until, requires = "unique",
          conflicts_with = "unique_for")]
    unique_until: Option<Until>,
    /// What becomes of a later job of that name: the first stays and its id is printed (keep), the later is
    /// refused (refuse), or takes the place of one that waits (replace)
    #[arg(long, value_name = "WORD", requires = "unique", default_value = "keep")]
    on_duplicate: OnDuplicate,
    /// Runs when no other job of this name has come for so long; the last one counts
    #[arg(long, value_name = "NAME=TIME", value_parser = value::named,
          conflicts_with_all = ["at", "delay", "unique", "throttle"])]
    debounce: Option<Named>,
    /// Of all jobs of this name within so long, only the first is stored
    #[arg(long, value_name = "NAME=TIME", value_parser = value::named, conflicts_with = "unique")]
    throttle: Option<Named>,
}

impl Wishes {
    /// The job with these.
    pub(crate) fn add_to(&self, mut request: JobRequest) -> JobRequest {
        request = match self.at {
            Some(When::At(ms)) => request.run_at_ms(ms),
            Some(When::In(delay)) => request.run_in(delay),
            None => request,
        };
        if let Some(delay) = self.delay {
            request = request.run_in(delay);
        }
        if let Some(key) = &self.key {
            request = request.key(key);
        }
        if let Some(name) = &self.unique {
            let until = match self.unique_for {
                Some(time) => Until::For(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                None => self.unique_until.unwrap_or_default(),
            };
            request = request.unique(name, until, self.on_duplicate);
        }
        if let Some(Named { name, time }) = &self.debounce {
            request = request.debounce(name, *time);
        }
        if let Some(Named { name, time }) = &self.throttle {
            request = request.throttle(name, *time);
        }
        request
    }
}

/// These options alone, as a line of JSON may have them.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = false)]
struct Alone {
    #[command(flatten)]
    wishes: Wishes,
}

impl Wishes {
    /// Reads them from words of a command line; the first is passed over.
    ///
    /// # Errors
    /// What is wrong, in a line.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        use clap::Parser;
        let alone = Alone::try_parse_from(words).map_err(|error| {
            let text = error.render().to_string();
            let said: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
            let said = said.join(" ");
            said.strip_prefix("error: ").unwrap_or(&said).to_owned()
        })?;
        Ok(alone.wishes)
    }
}
