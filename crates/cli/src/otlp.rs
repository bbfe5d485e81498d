//! Spans over OTLP: one per run, a child of the span that asked for the job. Where they go, and how, the
//! variables of OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER …);
//! without an endpoint nothing is sent.

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

/// Any of these says where spans go; the first one for spans alone.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
/// Where spans go below an endpoint that is not for spans alone.
const PATH: &str = "v1/traces";
/// Headers of the requests, in the same order.
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
/// The service's name where OTEL_SERVICE_NAME does not say one.
const SERVICE: &str = "meshwork";
/// How long the end may take over what is not sent yet.
const LAST: Duration = Duration::from_secs(5);

/// What a variable says; one that is empty says nothing.
fn said(name: &str) -> Option<String> {
    environment::var(name).filter(|value| !value.is_empty())
}

/// What sends spans, with what it would look for in the environment and does not find there, since it is secret.
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

/// `name=value,name=value`, as in a list of W3C's baggage.
fn read_headers(text: &str) -> HashMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (name.trim().to_owned(), value.into_owned())
    });
    let whole = |(name, value): &(String, String)| !name.is_empty() && !value.is_empty();
    pairs.filter(whole).collect()
}

/// What sends spans.
pub(crate) struct Spans(SdkTracerProvider);

impl Spans {
    /// If the environment says where to. What is wrong with it is told, and nothing is sent.
    pub(crate) fn from_environment() -> Option<Self> {
        let is_set = |name| said(name).is_some();
        if !ENDPOINTS.into_iter().any(is_set) {
            return None;
        }
        let exporter = match exporter() {
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
        // The error of a job may hold what is nobody else's business.
        let ours = Targets::new().with_target("meshwork", LevelFilter::INFO);
        layer.with_filter(ours.with_target("meshwork::failure", LevelFilter::OFF))
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
