//! Subject: the fields of all log lines about a job, the same for every protocol. While the job runs they are a span,
//! so that each line within has them. With the feature `opentelemetry` the span is also part of the job's trace.

use meshwork_broker::Claimed;
use meshwork_model::outcome::Report;
use meshwork_model::route::Priority;
use meshwork_model::trace::TraceContext;
use tracing::Span;

/// Target of its log lines, in filters as those of RUST_LOG.
const TARGET: &str = "meshwork::span";

/// A job or action in the log. Fields that its protocol does not have are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// Id of the job or action.
    pub job: &'a str,
    /// Script type, job name or action type, by which a worker finds the runtime.
    pub kind: &'a str,
    /// List or stream.
    pub queue: &'a str,
    /// Routing key.
    pub route: Option<&'a str>,
    /// Word of its priority.
    pub priority: Option<&'a str>,
    /// Task of an action.
    pub task: Option<&'a str>,
}

impl Subject<'_> {
    /// Returns the span of a run, and the trace context of its calls. The span has the level of an error, so that all
    /// lines within it have the fields. The worker adds the attempt.
    pub fn run(&self, worker: &str, trace: Option<TraceContext>) -> (Span, Option<TraceContext>) {
        let span = tracing::error_span!(
            target: TARGET,
            "job",
            job = self.job,
            r#type = self.kind,
            queue = self.queue,
            route = self.route,
            priority = self.priority,
            task = self.task,
            attempt = tracing::field::Empty,
            worker,
            trace = trace.as_ref().map(TraceContext::trace_id),
        );
        #[cfg(feature = "opentelemetry")]
        let trace = remote::child(&span, trace);
        (span, trace)
    }

    /// Logs that the job was enqueued.
    pub fn enqueued(&self) {
        tracing::info!(
            target: TARGET,
            job = self.job,
            r#type = self.kind,
            queue = self.queue,
            route = self.route,
            priority = self.priority,
            task = self.task,
            "job enqueued"
        );
    }
}

/// Returns the span of a run of Hero's protocol, and the trace context of its calls.
pub fn of_run(claimed: &Claimed, worker: &str) -> (Span, Option<TraceContext>) {
    let job = &claimed.job;
    let (trace, fault) = job.trace();
    let subject = Subject {
        job: &job.id,
        kind: job.script_type.as_deref().unwrap_or_default(),
        queue: &claimed.queue,
        route: job.group.as_deref(),
        priority: Some(job.priority.as_deref().unwrap_or(Priority::Normal.as_str())),
        task: None,
    };
    let (span, trace) = subject.run(worker, trace);
    if let Some(fault) = fault {
        span.in_scope(
            || tracing::warn!(target: TARGET, %fault, "trace context ignored: not valid"),
        );
    }
    (span, trace)
}

/// Logs that the job of the current span was claimed.
pub(crate) fn dequeued() {
    tracing::info!(target: TARGET, "job dequeued");
}

/// Adds the attempt to the current span, if it is known only at the end of the run.
pub(crate) fn attempt(attempt: u32) {
    Span::current().record("attempt", attempt);
}

/// Records the end of the current span's run. Without a report it was lost.
pub(crate) fn ended(report: Option<&Report>) {
    #[cfg(feature = "opentelemetry")]
    remote::ended(report);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = report;
}

/// Returns the trace of the current span, for jobs that are submitted within it.
pub fn current() -> Option<TraceContext> {
    #[cfg(feature = "opentelemetry")]
    return remote::context(&Span::current());
    #[cfg(not(feature = "opentelemetry"))]
    None
}

/// Spans of OpenTelemetry.
#[cfg(feature = "opentelemetry")]
mod remote {
    use std::str::FromStr;

    use meshwork_model::outcome::Report;
    use meshwork_model::trace::TraceContext;
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    };
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    /// Makes `span` a child of `trace`. Returns the trace context of its calls: that of `span`, or of `trace` if no
    /// spans are recorded.
    pub(super) fn child(span: &Span, trace: Option<TraceContext>) -> Option<TraceContext> {
        if let Some(parent) = trace.as_ref().and_then(remote) {
            let context = Context::new().with_remote_span_context(parent);
            // Fails only if no spans are recorded.
            let _ = span.set_parent(context);
        }
        context(span).or(trace)
    }

    fn remote(trace: &TraceContext) -> Option<SpanContext> {
        Some(SpanContext::new(
            TraceId::from_hex(trace.trace_id()).ok()?,
            SpanId::from_hex(trace.parent_id()).ok()?,
            TraceFlags::new(u8::from(trace.is_sampled())),
            true,
            TraceState::from_str(trace.state().unwrap_or_default()).unwrap_or_default(),
        ))
    }

    /// Returns the context of a span that is recorded.
    pub(super) fn context(span: &Span) -> Option<TraceContext> {
        let context = span.context();
        let found = context.span();
        let found = found.span_context();
        let trace = TraceContext::of_span(
            u128::from_be_bytes(found.trace_id().to_bytes()),
            u64::from_be_bytes(found.span_id().to_bytes()),
            found.is_sampled(),
        )?;
        Some(trace.with_state(&found.trace_state().header()))
    }

    /// Records the outcome of the run. Of an error it records the kind only, since the text may be confidential.
    pub(super) fn ended(report: Option<&Report>) {
        let status = match report.map(|report| &report.result) {
            Some(Ok(_)) => Status::Ok,
            Some(Err(failure)) => Status::error(failure.kind.as_str()),
            None => Status::error("lost"),
        };
        Span::current().set_status(status);
    }
}
