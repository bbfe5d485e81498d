//! `meshwork metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use meshwork::metrics::{Format, Metrics};
use meshwork_model::name::Namespace;
use meshwork_server::metrics::Served;
use serde::Serialize;

use crate::app::App;
use crate::args::endpoint::EndpointArgs;
use crate::commands::bananas::beside;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Print the metrics of all queues once, or serve them
///
/// docs/metrics.md describes the metrics. Each worker serves its own (--metrics-addr). The format is OpenMetrics, or
/// with --json one line per sample.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsCommand {
    /// Serve the metrics over HTTP at this address, until Ctrl-C; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    addr: Option<SocketAddr>,
    #[command(flatten)]
    endpoint: EndpointArgs,
    /// Include the metrics of Bananas' jobs with this prefix of keys [default: bananas]
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, require_equals = true,
          default_missing_value = "bananas")]
    bananas: Option<Namespace>,
}

#[derive(Debug, Serialize)]
struct Listening<'a> {
    event: &'a str,
    metrics: &'a str,
}

#[derive(Debug, PartialEq, Serialize)]
struct Sample<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, String>,
    value: f64,
}

impl MetricsCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if let Some(remote) = &context.remote {
            if self.addr.is_some() || self.bananas.is_some() {
                return Err(CommandError::usage(
                    "--addr and --bananas do not work with --api, which serves `/metrics` itself",
                ));
            }
            context.retried(async || remote.connect().await).await?;
            let text = remote.get("/metrics").await?;
            tell_samples(&text, context)?;
            return Ok(Exit::DONE);
        }
        let interrupt = Interrupt::listen()?;
        let client = interrupt.or(context.client()).await?;
        let mut metrics = Metrics::new(&client);
        if let Some(prefix) = self.bananas {
            metrics = metrics.bananas(&beside(&client, prefix));
        }
        let Some(endpoint) = self.endpoint.bind(self.addr).await? else {
            return print(&metrics.whole(), context).await;
        };
        let served = endpoint.serve(metrics, None);
        tell(&served, context)?;
        tokio::select! {
            () = served.forever() => {}
            _ = interrupt.heard() => {}
        }
        Ok(Exit::DONE)
    }
}

fn tell(served: &Served, context: &mut App) -> Result<(), CommandError> {
    let metrics = served.url();
    if context.out.is_json() {
        let event = "listening";
        context.out.json(&Listening {
            event,
            metrics: &metrics,
        })?;
        return Ok(context.out.flush()?);
    }
    note(format_args!("metrics at {metrics}"));
    Ok(())
}

async fn print(metrics: &Metrics, context: &mut App) -> Result<Exit, CommandError> {
    let text = metrics.text(Format::OpenMetrics).await;
    // The metric `up` has the same information for machines.
    let exit = match metrics.shared().is_up().await {
        true => Exit::DONE,
        false => Exit::SERVER,
    };
    tell_samples(&text, context)?;
    Ok(exit)
}

fn tell_samples(text: &str, context: &mut App) -> Result<(), CommandError> {
    if !context.out.is_json() {
        return Ok(context.out.raw(text.as_bytes())?);
    }
    for sample in text.lines().filter_map(sample) {
        context.out.json(&sample)?;
    }
    Ok(())
}

/// Parses a line of OpenMetrics, if it is a sample.
fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    Some(Sample {
        name,
        labels: pairs(labels)?,
        value: value.parse().ok()?,
    })
}

/// Parses `a="1",b="x\"y"`.
fn pairs(mut text: &str) -> Option<BTreeMap<&str, String>> {
    let mut pairs = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        let (mut value, mut escaped, mut end) = (String::new(), false, None);
        for (at, c) in rest.char_indices() {
            match (escaped, c) {
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (false, '\\') => escaped = true,
                (true, 'n') => (escaped, _) = (false, value.push('\n')),
                (_, c) => (escaped, _) = (false, value.push(c)),
            }
        }
        text = &rest[end? + 1..];
        text = text.strip_prefix(',').unwrap_or(text);
        pairs.insert(name, value);
    }
    Some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read() {
        let read = sample(r#"a_total{b="1",c="x\"},\\\n"} 2.5"#).unwrap();
        assert_eq!((read.name, read.value), ("a_total", 2.5));
        assert_eq!(read.labels["b"], "1");
        assert_eq!(read.labels["c"], "x\"},\\\n");
        assert_eq!(sample("a 1").unwrap().labels.len(), 0);
        assert_eq!(sample("# EOF"), None);
    }
}
