//! `meshwork metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use meshwork::metrics::{Format, Metrics};
use meshwork::model::name::Namespace;
use serde::Serialize;

use crate::commands::bananas::beside;
use crate::context::Context;
use crate::endpoint::{Endpoint, Served};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Print the metrics of all queues once, or serve them
///
/// What the figures mean stands in docs/metrics.md. Those of a worker are served by the worker itself
/// (--metrics-addr). Text is OpenMetrics; with --json a sample is a line.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsCommand {
    /// Serve them at this address over HTTP, until Ctrl-C; the port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    addr: Option<SocketAddr>,
    /// With those of jobs of Bananas, whose keys begin so [default: bananas]
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
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let interrupt = Interrupt::listen()?;
        let client = interrupt.or(context.client()).await?;
        let mut metrics = Metrics::new(&client);
        if let Some(prefix) = self.bananas {
            metrics = metrics.bananas(&beside(&client, prefix));
        }
        let Some(endpoint) = Endpoint::bind(self.addr).await? else {
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

fn tell(served: &Served, context: &mut Context) -> Result<(), CommandError> {
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

async fn print(metrics: &Metrics, context: &mut Context) -> Result<Exit, CommandError> {
    let text = metrics.text(Format::OpenMetrics).await;
    // The page itself says it too, to machines.
    let exit = match metrics.shared().is_up().await {
        true => Exit::DONE,
        false => Exit::SERVER,
    };
    if !context.out.is_json() {
        context.out.raw(text.as_bytes())?;
        return Ok(exit);
    }
    for sample in text.lines().filter_map(sample) {
        context.out.json(&sample)?;
    }
    Ok(exit)
}

/// A line of OpenMetrics, if it is a sample.
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

/// `a="1",b="x\"y"`.
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
