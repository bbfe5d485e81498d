//! Subject: the facts about a job that stand with all that is logged about it, the same for every protocol. While the job
//! runs they are a span, so that each line within has them; with the feature `opentelemetry` it is a span of the job's
//! trace as well.

use meshwork_broker::Claimed;
use meshwork_model::outcome::Report;
use meshwork_model::route::Priority;
use meshwork_model::trace::TraceContext;
use tracing::Span;

/// A job, task or action in the log. What its protocol does not have is left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub(crate) job: &'a str,
    /// Its script type, its name or its action type: what a worker finds the runner by.
    pub(crate) kind: &'a str,
    /// The list or the stream.
    pub(crate) queue: &'a str,
    /// The routing key.
    pub(crate) route: Option<&'a str>,
    pub(crate) priority: Option<&'a str>,
    /// The task that an action belongs to.
    pub(crate) task: Option<&'a str>,
}

impl Subject<'_> {
    /// The span of a run, and the trace that what it calls belongs to. The span has the level of an error, so that
    /// whatever is logged within it has these facts. The attempt is for the worker to tell.
    pub(crate) fn run(
        &self,
        worker: &str,
        trace: Option<TraceContext>,
    ) -> (Span, Option<TraceContext>) {
        let span = tracing::error_span!(
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

    /// Logs that it was put into its queue.
    pub(crate) fn enqueued(&self) {
        tracing::info!(
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

/// The span of a run of a native job, and the trace context of its calls.
pub(crate) fn of_run(claimed: &Claimed, worker: &str) -> (Span, Option<TraceContext>) {
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
        span.in_scope(|| tracing::warn!(%fault, "a trace context that is not valid is left out"));
    }
    (span, trace)
}

/// Logs that the job of the current span was taken from its queue.
pub(crate) fn dequeued() {
    tracing::info!("job dequeued");
}

/// Says which attempt the run of the current span is, where that is known only at its end.
pub(crate) fn attempt(attempt: u32) {
    Span::current().record("attempt", attempt);
}

/// The run of the current span has ended. Without a report it was lost.
pub(crate) fn ended(report: Option<&Report>) {
    #[cfg(feature = "opentelemetry")]
    remote::ended(report);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = report;
}

/// The trace of the current span, for jobs that are submitted within it.
pub(crate) fn current() -> Option<TraceContext> {
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

    /// Makes `span` a child of `trace`. What it calls is a part of `span` then, or of `trace` still where
    /// nobody records spans.
    pub(super) fn child(span: &Span, trace: Option<TraceContext>) -> Option<TraceContext> {
        if let Some(parent) = trace.as_ref().and_then(remote) {
            let context = Context::new().with_remote_span_context(parent);
            // It fails only where nobody records spans.
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

    /// The context of a span that is recorded.
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

    /// Records the outcome of the run. Of an error only the kind is recorded, since its text may be confidential.
    pub(super) fn ended(report: Option<&Report>) {
        let status = match report.map(|report| &report.result) {
            Some(Ok(_)) => Status::Ok,
            Some(Err(failure)) => Status::error(failure.kind.as_str()),
            None => Status::error("lost"),
        };
        Span::current().set_status(status);
    }
}
