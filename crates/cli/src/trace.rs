//! The trace that a command's jobs belong to: as it is asked for, else as the environment says it, where CI
//! systems and shells that trace put it.

use std::env;

use meshwork::model::trace::TraceContext;

use crate::out::note;

/// Which trace.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The job")]
pub(crate) struct Trace {
    /// The trace that it belongs to and the span that asks for it, as W3C trace context writes it
    /// [default: $TRACEPARENT]
    #[arg(long, value_name = "TEXT", value_parser = parent)]
    traceparent: Option<TraceContext>,
    /// What tracing systems say beside it [default: $TRACESTATE]
    #[arg(long, value_name = "TEXT", value_parser = state, requires = "traceparent")]
    tracestate: Option<String>,
}

/// A `traceparent` as an argument.
pub(crate) fn parent(text: &str) -> Result<TraceContext, String> {
    TraceContext::parse(text, None).map_err(|error| error.to_string())
}

/// A valid context, to read a state with.
const ANY: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn state(text: &str) -> Result<String, String> {
    let read = TraceContext::parse(ANY, Some(text)).map_err(|error| error.to_string())?;
    Ok(read.state().unwrap_or_default().to_owned())
}

impl Trace {
    /// The context, if there is one.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        if let Some(trace) = &self.traceparent {
            let state = self.tracestate.as_deref().unwrap_or_default();
            return Some(trace.clone().with_state(state));
        }
        of_environment()
    }
}

/// The context that the environment says. What is not valid of it is left out, and logged.
pub(crate) fn of_environment() -> Option<TraceContext> {
    let said = |name| env::var(name).ok().filter(|text| !text.is_empty());
    let (trace, fault) =
        TraceContext::lenient(&said("TRACEPARENT")?, said("TRACESTATE").as_deref());
    if let Some(fault) = fault {
        note(format_args!(
            "warning: left out of the environment: {fault}"
        ));
    }
    trace
}
