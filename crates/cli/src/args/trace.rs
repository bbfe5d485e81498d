//! Trace of a command's jobs: from the options, else from the environment, where CI systems and tracing shells put it.

use std::env;

use meshwork_model::trace::TraceContext;

use crate::out::note;

/// Options of the trace.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Job")]
pub(crate) struct Trace {
    /// Trace and parent span of the job, in the format of W3C trace context [default: $TRACEPARENT]
    #[arg(long, value_name = "TEXT", value_parser = parent)]
    traceparent: Option<TraceContext>,
    /// State of tracing systems, in the format of W3C trace context [default: $TRACESTATE]
    #[arg(long, value_name = "TEXT", value_parser = state, requires = "traceparent")]
    tracestate: Option<String>,
}

/// Parses a `traceparent` argument.
pub(crate) fn parent(text: &str) -> Result<TraceContext, String> {
    TraceContext::parse(text, None).map_err(|error| error.to_string())
}

/// A valid context, for parsing a state.
const ANY: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn state(text: &str) -> Result<String, String> {
    let read = TraceContext::parse(ANY, Some(text)).map_err(|error| error.to_string())?;
    Ok(read.state().unwrap_or_default().to_owned())
}

impl Trace {
    /// Returns the context, if there is one.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        if let Some(trace) = &self.traceparent {
            let state = self.tracestate.as_deref().unwrap_or_default();
            return Some(trace.clone().with_state(state));
        }
        of_environment()
    }
}

/// Returns the context of the environment. Invalid parts are logged and ignored.
pub(crate) fn of_environment() -> Option<TraceContext> {
    let said = |name| env::var(name).ok().filter(|text| !text.is_empty());
    let (trace, fault) =
        TraceContext::lenient(&said("TRACEPARENT")?, said("TRACESTATE").as_deref());
    if let Some(fault) = fault {
        note(format_args!(
            "warning: environment variable ignored: {fault}"
        ));
    }
    trace
}
