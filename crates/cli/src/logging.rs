//! What is told of the work itself: the log on stderr and, where the program was built with it and the
//! environment names a collector, spans over OTLP.

use std::io::IsTerminal;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

#[cfg(feature = "otlp")]
use crate::otlp::Spans;
use crate::out::notes_as_json;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// A line of JSON each
    Json,
}

/// What has to be ended with the process.
#[must_use]
#[derive(Default)]
pub(crate) struct Logging {
    #[cfg(feature = "otlp")]
    spans: Option<Spans>,
}

impl Logging {
    /// Hands over what is not told yet.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(spans) = self.spans {
            spans.end();
        }
    }
}

/// Begins to log, as much as RUST_LOG says, else as often as -v was given. A command that says itself why its jobs failed
/// (`tells_failures`) does not log that too.
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
            Box::new(lines.with_ansi(colour && std::io::stderr().is_terminal()))
        }
        // What an event is about stands beside it, as `span`.
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_span_list(false)),
    }
}
