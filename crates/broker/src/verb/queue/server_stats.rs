//! server_stats: metrics of the server itself, from its `INFO`: memory, evicted keys, and scripts.

use crate::broker::Broker;
use crate::conn::{SlotMap, Unsuitable, evicts};
use crate::error::Error;
use meshwork_macros::boxed;

/// Sections of `INFO` with these metrics.
const SECTIONS: [&str; 4] = ["memory", "stats", "commandstats", "latencystats"];
/// Commands that run scripts.
const SCRIPTS: [&str; 3] = ["evalsha", "evalsha_ro", "eval"];

/// Metrics of the server. A value that the server does not report is missing: the embedded engine has no memory of its
/// own and measures no percentiles.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Memory in use, in bytes.
    pub memory: Option<u64>,
    /// Limit of the memory, in bytes; `None` if there is none.
    pub memory_limit: Option<u64>,
    /// Number of keys that were evicted because memory ran out.
    pub evicted_keys: Option<u64>,
    /// Number of scripts that ran, of all clients.
    pub scripts: Option<u64>,
    /// Total duration of these scripts, in microseconds.
    pub script_micros: Option<u64>,
    /// Percentiles of the duration of a script called by its digest, such as 99.9, in microseconds.
    pub script_percentiles: Vec<(String, f64)>,
}

impl Broker {
    /// Returns the fault of a server that evicts keys by now, and jobs with them.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn evicts(&self) -> Result<Option<Unsuitable>, Error> {
        let verb = "policy";
        let found = evicts(&mut self.conn.clone()).await;
        found.map_err(|source| Error::Call { verb, source })
    }

    /// Returns the owners of all slots of a Cluster; `None` for another store.
    ///
    /// # Errors
    /// No node answers.
    #[boxed]
    pub async fn slots(&self) -> Result<Option<SlotMap>, Error> {
        self.conn.slots().await.map_err(Error::connect)
    }

    /// Returns the metrics of the server; none for a user who may not read them.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn server_stats(&self) -> Result<ServerStats, Error> {
        let mut info = redis::cmd("INFO");
        info.arg(&SECTIONS);
        match self.ask::<String>("stats", &info).await {
            Ok(info) => Ok(ServerStats::read(&info)),
            Err(error) if error.is_temporary() => Err(error),
            Err(_) => Ok(ServerStats::default()),
        }
    }
}

impl ServerStats {
    /// Reads lines `name:value`; other lines, and values that are not numbers, are ignored.
    fn read(info: &str) -> Self {
        let line = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let number = |name: &str| line(name)?.parse::<u64>().ok();
        let scripts: Vec<_> = SCRIPTS
            .iter()
            .filter_map(|command| line(&format!("cmdstat_{command}")))
            .collect();
        let total = |name: &str| {
            let values = scripts.iter().filter_map(|line| part(line, name));
            values
                .filter_map(|value| value.parse::<u64>().ok())
                .reduce(u64::saturating_add)
        };
        let percentiles = line("latency_percentiles_usec_evalsha").unwrap_or_default();
        Self {
            memory: number("used_memory"),
            memory_limit: number("maxmemory").filter(|bytes| *bytes > 0),
            evicted_keys: number("evicted_keys"),
            scripts: total("calls"),
            script_micros: total("usec"),
            script_percentiles: parts(percentiles)
                .filter_map(|(name, value)| {
                    let percent = name.strip_prefix('p')?;
                    Some((percent.to_owned(), value.parse().ok()?))
                })
                .collect(),
        }
    }
}

/// Parses `name=value,name=value`.
fn parts(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split(',').filter_map(|part| part.split_once('='))
}

fn part<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    parts(line).find_map(|(known, value)| (known == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_info_says_is_read() {
        let info = "# Memory\r\nused_memory:1000\r\nused_memory_human:1K\r\nmaxmemory:2000\r\n\
                    # Stats\r\nevicted_keys:3\r\n\
                    # Commandstats\r\ncmdstat_eval:calls=1,usec=7,usec_per_call=7.00\r\n\
                    cmdstat_evalsha:calls=2,usec=30,usec_per_call=15.00,rejected_calls=0\r\n\
                    # Latencystats\r\nlatency_percentiles_usec_evalsha:p50=14.015,p99=16.007,p99.9=x\r\n";
        let should = ServerStats {
            memory: Some(1_000),
            memory_limit: Some(2_000),
            evicted_keys: Some(3),
            scripts: Some(3),
            script_micros: Some(37),
            script_percentiles: vec![("50".to_owned(), 14.015), ("99".to_owned(), 16.007)],
        };
        assert_eq!(ServerStats::read(info), should);
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let nothing = ServerStats::default();
        assert_eq!(ServerStats::read(""), nothing);
        assert_eq!(
            ServerStats::read("maxmemory:0\r\nused_memory:many\r\n"),
            nothing
        );
    }
}
