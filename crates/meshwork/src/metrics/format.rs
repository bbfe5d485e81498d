//! The two text formats of metrics, and the choice between them.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::page::Page;

/// Exposition format of metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0, with units and an end mark.
    #[default]
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// Returns the format for an `Accept` header: OpenMetrics if it is named, else Prometheus.
    #[must_use]
    pub fn accepted(header: Option<&str>) -> Self {
        let wants = |part: &str| {
            let mut words = part.split(';').map(str::trim);
            let named = words.next() == Some("application/openmetrics-text");
            // `q=0` means that the type is refused.
            named && words.all(|word| !is_refused(word))
        };
        match header {
            Some(header) if header.split(',').map(str::trim).any(wants) => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// Returns the value of the `Content-Type` header.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    pub(super) fn text(self, page: Page) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(page));
        let mut text = String::new();
        // Writing into a string fails only if a metric does, and none here can.
        if let Err(error) = encode(&mut text, &registry) {
            tracing::error!(%error, "metrics are missing");
        }
        match self {
            Self::OpenMetrics => text,
            Self::Prometheus => older(&text),
        }
    }
}

fn is_refused(word: &str) -> bool {
    let quality = word.strip_prefix("q=").map(str::trim);
    quality.is_some_and(|quality| quality.parse() == Ok(0.0_f64))
}

/// Converts OpenMetrics to the older format: without units and end mark, and with the samples' names for counters.
fn older(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if let Some(name) = line
            .strip_suffix(" counter")
            .and_then(|line| line.strip_prefix("# TYPE "))
        {
            let of_it = format!("# HELP {name} ");
            if let Some(help) = lines.last_mut().filter(|last| last.starts_with(&of_it)) {
                *help = format!("# HELP {name}_total {}", &help[of_it.len()..]);
            }
            lines.push(format!("# TYPE {name}_total counter"));
            continue;
        }
        lines.push(line.to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_for_those_who_name_it() {
        for (header, format) in [
            (None, Format::Prometheus),
            (Some("*/*"), Format::Prometheus),
            (Some("text/plain;version=0.0.4"), Format::Prometheus),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (
                Some("text/plain;q=0.5, application/openmetrics-text; version=1.0.0;q=0.8"),
                Format::OpenMetrics,
            ),
            (
                Some("application/openmetrics-text;q=0,*/*"),
                Format::Prometheus,
            ),
        ] {
            assert_eq!(Format::accepted(header), format, "{header:?}");
        }
    }

    #[test]
    fn the_older_format_calls_counters_like_their_samples() {
        let text = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total 1\n# HELP b B.\n# TYPE b gauge\nb 2\n# EOF\n";
        let expected = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
                        a_seconds_total 1\n# HELP b B.\n# TYPE b gauge\nb 2\n";
        assert_eq!(older(text), expected);
    }
}
