//! Spans over OTLP: one per run, a child of the span that enqueued the job. The variables of OpenTelemetry configure
//! the export (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER …). Without an endpoint nothing is
//! sent.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use percent_encoding::percent_decode_str;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::filter::{Filtered, Targets};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter::LevelFilter};

use crate::environment;
use crate::out::note;

/// Variables with the endpoint; the first one is for spans alone.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// Path of spans below an endpoint that is not for spans alone.
const PATH: &str = "v1/traces";
/// Variables with headers of the requests, in the same order.
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
/// Default service name without OTEL_SERVICE_NAME.
const SERVICE: &str = "meshwork";
/// Longest time to flush spans at the end.
const LAST: Duration = Duration::from_secs(5);

/// Returns the value of a variable; an empty one counts as unset.
fn said(name: &str) -> Option<String> {
    environment::var(name).filter(|value| !value.is_empty())
}

/// Builds the exporter. Sets the secret options, which were removed from the environment.
fn exporter() -> Result<SpanExporter, ExporterBuildError> {
    let [endpoint, base] = ENDPOINTS.map(said);
    let base = base.map(|base| format!("{}/{PATH}", base.trim_end_matches('/')));
    let mut exporter = SpanExporter::builder().with_http();
    if let Some(endpoint) = endpoint.or(base) {
        exporter = exporter.with_endpoint(endpoint);
    }
    if let Some(headers) = HEADERS.into_iter().find_map(said) {
        exporter = exporter.with_headers(read_headers(&headers));
    }
    exporter.build()
}

/// Parses `name=value,name=value`, as in W3C baggage.
fn read_headers(text: &str) -> HashMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (name.trim().to_owned(), value.into_owned())
    });
    let whole = |(name, value): &(String, String)| !name.is_empty() && !value.is_empty();
    pairs.filter(whole).collect()
}

/// Provider of exported spans.
pub(crate) struct Spans(SdkTracerProvider);

impl Spans {
    /// Returns the provider if the environment names an endpoint. An invalid setting is logged, and nothing is sent.
    pub(crate) fn from_environment() -> Option<Self> {
        let is_set = |name| said(name).is_some();
        if !ENDPOINTS.into_iter().any(is_set) {
            return None;
        }
        let exporter = match exporter() {
            Ok(exporter) => exporter,
            Err(error) => {
                note(format_args!("warning: spans not exported: {error}"));
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

    /// Returns the layer that exports Meshwork's spans. Spans of libraries (HTTP, TLS) are excluded: the export itself
    /// would create more of them.
    pub(crate) fn layer<S>(&self) -> Filtered<OpenTelemetryLayer<S, SdkTracer>, Targets, S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE));
        // Events are excluded: the error of a job may be confidential.
        let ours = Targets::new().with_target("meshwork", LevelFilter::INFO);
        layer.with_filter(ours.with_target("meshwork::failure", LevelFilter::OFF))
    }

    /// Flushes pending spans.
    pub(crate) fn end(self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            note(format_args!(
                "warning: the last spans may not have been exported: {error}"
            ));
        }
    }
}
