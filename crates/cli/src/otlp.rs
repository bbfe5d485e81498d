//! Spans over OTLP: one per run, a child of the span that asked for the job. Where they go, and how, the
//! variables of OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER …);
//! without an endpoint nothing is sent.

use std::env;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::filter::{Filtered, Targets};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter::LevelFilter};

use crate::out::note;

/// Any of these says where spans go.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// The service's name where OTEL_SERVICE_NAME does not say one.
const SERVICE: &str = "meshwork";
/// How long the end may take over what is not sent yet.
const LAST: Duration = Duration::from_secs(5);

/// What sends spans.
pub(crate) struct Spans(SdkTracerProvider);

impl Spans {
    /// If the environment says where to. What is wrong with it is told, and nothing is sent.
    pub(crate) fn from_environment() -> Option<Self> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        if !ENDPOINTS.into_iter().any(is_set) {
            return None;
        }
        let exporter = match SpanExporter::builder().with_http().build() {
            Ok(exporter) => exporter,
            Err(error) => {
                note(format_args!("warning: no spans are sent: {error}"));
                return None;
            }
        };
        let mut resource = Resource::builder();
        if !is_set("OTEL_SERVICE_NAME") {
            resource = resource.with_service_name(SERVICE);
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build());
        Some(Self(provider.build()))
    }

    /// What makes spans of ours into such that are sent. Those of others (HTTP, TLS) are left out, or sending
    /// would be told as well.
    pub(crate) fn layer<S>(&self) -> Filtered<OpenTelemetryLayer<S, SdkTracer>, Targets, S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE));
        layer.with_filter(Targets::new().with_target("meshwork", LevelFilter::INFO))
    }

    /// Sends what is not sent yet.
    pub(crate) fn end(self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            note(format_args!(
                "warning: the last spans may not have been sent: {error}"
            ));
        }
    }
}
