//! Costs of a run: processor time on both sides, commands, bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::BenchError;
use meshwork_test_servers::servers::RealServer;

/// Cost of one job. The embedded engine has no counters of a server, and its processor time is that of this program.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    /// Number of commands that the server ran, including those inside of scripts.
    pub commands: Option<f64>,
    /// Processor time of the server, in µs.
    pub server_us: Option<f64>,
    /// Processor time of this program, in µs: client and worker.
    pub client_us: f64,
    /// Number of bytes that the server read.
    pub bytes_in: Option<f64>,
    /// Number of bytes that the server sent.
    pub bytes_out: Option<f64>,
    /// Number of bytes added to the append-only file.
    pub aof_bytes: f64,
    /// Number of calls by command, and their time on the server in µs. Commands inside of scripts count twice:
    /// themselves and in the script.
    pub by_command: BTreeMap<String, (f64, f64)>,
}

/// Values of the counters at one moment.
#[derive(Debug, Default)]
pub(super) struct Reading {
    own: Duration,
    server: Option<ServerReading>,
    aof: f64,
}

#[derive(Debug, Default)]
struct ServerReading {
    seconds: f64,
    bytes_in: f64,
    bytes_out: f64,
    memory: f64,
    commands: BTreeMap<String, (f64, f64)>,
    moved: f64,
    rejected: f64,
}

impl Reading {
    /// Reads the counters of a server.
    pub(super) fn of_server(server: &RealServer) -> Result<Self, BenchError> {
        let info: String = server.say(&["INFO", "everything"])?;
        let lines: BTreeMap<&str, &str> = info
            .lines()
            .filter_map(|line| line.split_once(':'))
            .collect();
        let number = |name: &str| {
            let value = lines.get(name).and_then(|value| value.parse().ok());
            value.unwrap_or(0.0)
        };
        let commands = lines.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("cmdstat_")?;
            // The measurement itself calls INFO.
            (name != "info").then(|| (name.to_owned(), (part(value, "calls"), part(value, "usec"))))
        });
        let statistics = |prefix, name| {
            let of = lines.iter().filter(move |(key, _)| key.starts_with(prefix));
            of.map(move |(_, value)| part(value, name)).sum::<f64>()
        };
        Ok(Self {
            aof: number("aof_current_size"),
            server: Some(ServerReading {
                seconds: number("used_cpu_user") + number("used_cpu_sys"),
                bytes_in: number("total_net_input_bytes"),
                bytes_out: number("total_net_output_bytes"),
                memory: number("used_memory"),
                commands: commands.collect(),
                moved: statistics("errorstat_MOVED", "count"),
                rejected: statistics("cmdstat_", "rejected_calls"),
            }),
            own: own(),
        })
    }

    /// Reads the counters of a data directory with the embedded engine.
    pub(super) fn of_directory(path: &Path) -> Self {
        let sizes = fs::read_dir(path).into_iter().flatten().flatten();
        let sizes = sizes.filter_map(|entry| entry.metadata().ok());
        Self {
            aof: sizes.map(|data| data.len() as f64).sum(),
            server: None,
            own: own(),
        }
    }

    /// Returns the bytes in the server's memory.
    pub(super) fn memory(&self) -> f64 {
        self.server.as_ref().map_or(0.0, |server| server.memory)
    }

    /// Returns the number of calls since `before` whose slot is on another node of a cluster, and of all calls that the
    /// server has refused before their execution.
    pub(super) fn refused_since(&self, before: &Self) -> [f64; 2] {
        let both = before.server.as_ref().zip(self.server.as_ref());
        both.map_or([0.0; 2], |(from, to)| {
            [to.moved - from.moved, to.rejected - from.rejected]
        })
    }

    /// Returns the difference to `before`, divided by `jobs`.
    pub(super) fn since(&self, before: &Self, jobs: usize) -> Cost {
        let each = |from: f64, to: f64| (to - from) / jobs as f64;
        let both = before.server.as_ref().zip(self.server.as_ref());
        let of = |get: fn(&ServerReading) -> f64| both.map(|(from, to)| each(get(from), get(to)));
        let mut by_command = BTreeMap::new();
        if let Some((from, to)) = both {
            for (name, (calls, micros)) in &to.commands {
                let (calls_before, micros_before) =
                    from.commands.get(name).copied().unwrap_or_default();
                let added = (each(calls_before, *calls), each(micros_before, *micros));
                if added.0 > 0.0 {
                    by_command.insert(name.clone(), added);
                }
            }
        }
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        Cost {
            commands: both.map(|_| by_command.values().map(|(calls, _)| calls).sum()),
            server_us: of(|reading| reading.seconds).map(|seconds| seconds * 1e6),
            client_us: each(micros(before.own), micros(self.own)),
            bytes_in: of(|reading| reading.bytes_in),
            bytes_out: of(|reading| reading.bytes_out),
            aof_bytes: each(before.aof, self.aof),
            by_command,
        }
    }
}

/// Returns the processor time of this process so far.
fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns one number of `calls=1,usec=2,…`.
fn part(value: &str, name: &str) -> f64 {
    let parts = value.split(',').filter_map(|part| part.split_once('='));
    let mut named = parts.filter(|(own, _)| *own == name);
    named
        .next()
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0.0)
}

/// Returns the system's load average over the last minute.
pub(super) fn load() -> f64 {
    let said = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = said.split(' ').next().and_then(|first| first.parse().ok());
    first.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshwork_test_servers::servers::RealCluster;

    #[tokio::test]
    async fn a_call_for_another_node_is_counted() {
        let test = "a_call_for_another_node_is_counted";
        let cluster = RealCluster::start_masters_for(test, RealServer::redis(), 2).await;
        let Some(cluster) = cluster else {
            return; // reported as skipped
        };
        let (owner, _) = cluster.owner("a key");
        let read = |at: usize| Reading::of_server(&cluster.nodes()[at]).unwrap();
        let before = [read(0), read(1)];
        for node in cluster.nodes() {
            let _ = node.say::<Option<String>>(&["GET", "a key"]);
        }
        for (at, before) in before.iter().enumerate() {
            let refused = if at == owner { 0.0 } else { 1.0 };
            assert_eq!(read(at).refused_since(before), [refused; 2], "{at}");
        }
    }
}
