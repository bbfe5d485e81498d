//! Log on stderr, and spans over OTLP if the program has that feature and the environment names a collector.

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::out::{can_draw, notes_as_json};
#[cfg(feature = "otlp")]
use crate::telemetry::otlp::Spans;

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// A line of JSON each
    Json,
}

/// Log and tracer, which have to be flushed at the end.
#[must_use]
#[derive(Default)]
pub(crate) struct Logging {
    #[cfg(feature = "otlp")]
    spans: Option<Spans>,
}

impl Logging {
    /// Flushes pending spans.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(spans) = self.spans {
            spans.end();
        }
    }
}

/// Starts the log: as detailed as RUST_LOG, else as the number of -v. With `tells_failures`, the command prints
/// failures of jobs itself, and the log omits them.
pub(crate) fn start(format: LogFormat, verbose: u8, tells_failures: bool) -> Logging {
    let level = match verbose {
        0 if tells_failures => "warn,meshwork::failure=off",
        0 => "warn",
        1 => "warn,meshwork=info",
        _ => "warn,meshwork=trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    if format == LogFormat::Json {
        notes_as_json();
    }
    let registry = tracing_subscriber::registry().with(lines(format).with_filter(filter));
    #[cfg(feature = "otlp")]
    {
        let spans = Spans::from_environment();
        registry.with(spans.as_ref().map(Spans::layer)).init();
        Logging { spans }
    }
    #[cfg(not(feature = "otlp"))]
    {
        registry.init();
        Logging::default()
    }
}

fn lines(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            Box::new(lines.with_ansi(colour && can_draw(&std::io::stderr())))
        }
        // The JSON field `span` names the subject of an event.
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_span_list(false)),
    }
}
