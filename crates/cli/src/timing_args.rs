//! Options of `job enqueue` about time, concurrency keys and uniqueness.

use std::time::Duration;

use meshwork::JobRequest;
use meshwork_model::job::{OnDuplicate, Until};
use meshwork_model::schedule::wall_time::Direction;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::NamedSpan;

use crate::args::moment::{self, Moment, MomentError, ZoneArg};
use crate::args::parsers;

/// Options about time, keys and unique names.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Time and uniqueness")]
pub(crate) struct TimingArgs {
    /// Run at this time: 'tomorrow 9:00', 'monday 9:00', 2026-01-31, '2026-01-31 12:00', RFC 3339
    /// (2026-01-31T12:00:00Z, …+01:00), or +10m from now
    #[arg(long, value_name = "WHEN", value_parser = moment::future)]
    at: Option<Moment>,
    #[command(flatten)]
    zone: ZoneArg,
    /// Run after this delay: 500ms, 90s, 10m, 2h, 7d
    #[arg(long, visible_alias = "in", value_name = "DURATION", value_parser = parsers::span, conflicts_with = "at",
          allow_hyphen_values = true)]
    delay: Option<Duration>,
    /// Concurrency key, such as a tenant: keys have limits of their own, and share a fair queue equally
    #[arg(long, value_name = "KEY", value_parser = parsers::key)]
    key: Option<String>,
    /// Unique name: no other job of the same type and name is accepted until this one has ended
    #[arg(long, value_name = "NAME", value_parser = parsers::key)]
    unique: Option<String>,
    /// Keep the unique name for this time instead, even if the job ends before
    #[arg(long, value_name = "DURATION", value_parser = parsers::span, requires = "unique",
          allow_hyphen_values = true)]
    unique_for: Option<Duration>,
    /// Keep the unique name until the job starts, or until it is done with all retries: started or done [default: done]
    #[arg(
        long,
        value_name = "WORD",
        requires = "unique",
        conflicts_with = "unique_for"
    )]
    unique_until: Option<Until>,
    /// If the unique name is in use: keep the first job and print its id (keep), refuse the new one (refuse), or
    /// replace a waiting one (replace)
    #[arg(long, value_name = "WORD", requires = "unique", default_value = "keep")]
    on_duplicate: OnDuplicate,
    /// Run when no other job of this name has arrived for this time; the last one runs
    #[arg(long, value_name = "NAME=DURATION",
          conflicts_with_all = ["at", "delay", "unique", "throttle"])]
    debounce: Option<NamedSpan>,
    /// Store only the first job of this name within this time
    #[arg(long, value_name = "NAME=DURATION", conflicts_with = "unique")]
    throttle: Option<NamedSpan>,
}

impl TimingArgs {
    /// Returns the time zone of the options, or that of the host.
    pub(crate) fn zone(&self) -> Result<Zone, MomentError> {
        self.zone.zone(&[self.at])
    }

    /// Returns the time zone of the options.
    pub(crate) fn tz(&self) -> Option<&Zone> {
        self.zone.tz.as_ref()
    }

    /// Returns the options without the time zone.
    pub(crate) fn without_zone(&self) -> Self {
        Self {
            zone: ZoneArg::default(),
            ..self.clone()
        }
    }

    /// Sets the time for a text without a zone, and prints it.
    pub(crate) fn settle(&mut self) -> Result<(), MomentError> {
        if let Some(moment @ Moment::Wall(_)) = self.at {
            let (now, zone) = (meshwork::host_ms(), self.zone()?);
            let ms = moment.meant("runs at", now, &zone, Direction::Next)?;
            self.at = Some(Moment::At(moment::to_come(ms, now)?));
        }
        Ok(())
    }

    /// Adds the options to a request. Times without a zone are those of `zone`.
    pub(crate) fn add_to(
        &self,
        mut request: JobRequest,
        zone: &Zone,
    ) -> Result<JobRequest, MomentError> {
        request = match self.at {
            // The server's clock counts.
            Some(Moment::In(delay)) => request.delay(delay),
            Some(moment) => {
                let now = meshwork::host_ms();
                let ms = moment.ms(now, zone, Direction::Next)?;
                request.run_at_ms(moment::to_come(ms, now)?)
            }
            None => request,
        };
        if let Some(delay) = self.delay {
            request = request.delay(delay);
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
        if let Some(NamedSpan { name, span }) = &self.debounce {
            request = request.debounce(name, span.0);
        }
        if let Some(NamedSpan { name, span }) = &self.throttle {
            request = request.throttle(name, span.0);
        }
        Ok(request)
    }
}
