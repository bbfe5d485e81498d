//! INFO: the state of the engine, with the sections and names of Redis.

use std::fmt::Write as _;

use bytes::Bytes;

use super::Command;
use crate::{
    REDIS_VERSION, Reply,
    command::{Flags, Keys, Outcome},
    store::DATABASES,
    world::Call,
};

pub(super) const SPECS: &[Command] = &[Command::new(
    "info",
    -1,
    Flags::LOADING.or(Flags::STALE),
    Keys::NONE,
    info,
)];

type Section = fn(&mut Call<'_>) -> String;

const SECTIONS: [(&str, Section); 9] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Commandstats", commandstats),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

fn info(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let wanted: Vec<Vec<u8>> = args[1..]
        .iter()
        .map(|arg| arg.to_ascii_lowercase())
        .collect();
    let asks_for = |words: &[&str]| {
        let is = |word: &Vec<u8>| words.iter().any(|known| known.as_bytes() == word);
        wanted.iter().any(is)
    };
    let every = asks_for(&["all", "everything"]);
    let usual = every || wanted.is_empty() || asks_for(&["default"]);
    let mut text = String::new();
    for (name, section) in SECTIONS {
        let known = if name == "Commandstats" { every } else { usual };
        if known || asks_for(&[&name.to_ascii_lowercase()]) {
            let separator = if text.is_empty() { "" } else { "\r\n" };
            let _ = write!(text, "{separator}# {name}\r\n{}", section(call));
        }
    }
    Ok(Reply::Verbatim(text))
}

fn server(call: &mut Call<'_>) -> String {
    let seconds = call.now_ms().saturating_sub(call.world.started_ms) / 1_000;
    format!(
        "redis_version:{REDIS_VERSION}\r\nmeshwork_version:{}\r\nredis_mode:standalone\r\n\
         os:{} {}\r\narch_bits:{}\r\nprocess_id:{}\r\ntcp_port:0\r\nuptime_in_seconds:{seconds}\r\n\
         uptime_in_days:{}\r\nexecutable:meshwork\r\nconfig_file:\r\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        usize::BITS,
        std::process::id(),
        seconds / (24 * 60 * 60),
    )
}

fn clients(call: &mut Call<'_>) -> String {
    let (connected, blocked) = (call.world.clients.len(), call.world.waiters.len());
    format!("connected_clients:{connected}\r\nblocked_clients:{blocked}\r\n")
}

fn memory(_: &mut Call<'_>) -> String {
    // Memory belongs to the process, which also has other parts than the engine.
    "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n".to_owned()
}

fn persistence(call: &mut Call<'_>) -> String {
    let journal = call.world.journal.as_ref();
    let enabled = u8::from(journal.is_some());
    let status = if call.world.trouble.is_some() {
        "err"
    } else {
        "ok"
    };
    let mut text = format!(
        "loading:0\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:{enabled}\r\n\
         aof_last_write_status:{status}\r\n"
    );
    for line in journal.map(|journal| journal.info()).unwrap_or_default() {
        let _ = write!(text, "{line}\r\n");
    }
    text
}

fn stats(call: &mut Call<'_>) -> String {
    let (done, pubsub) = (call.world.commands_done, &call.world.pubsub);
    let count = |scope| pubsub.of(scope).len();
    format!(
        "total_commands_processed:{done}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\n\
         evicted_keys:0\r\n",
        count(crate::world::Scope::Channel),
        count(crate::world::Scope::Pattern),
    )
}

/// Only commands that run scripts: nobody needs the others.
fn commandstats(call: &mut Call<'_>) -> String {
    let mut text = String::new();
    for (name, (calls, micros)) in &call.world.scripts_done {
        let each = *micros as f64 / (*calls).max(1) as f64;
        let _ = write!(
            text,
            "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2}\r\n"
        );
    }
    text
}

fn replication(_: &mut Call<'_>) -> String {
    "role:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n".to_owned()
}

fn cluster(_: &mut Call<'_>) -> String {
    "cluster_enabled:0\r\n".to_owned()
}

fn keyspace(call: &mut Call<'_>) -> String {
    let store = &call.world.store;
    let mut text = String::new();
    for db in (0..DATABASES).filter(|db| store.len(*db) > 0) {
        let (keys, expires) = (store.len(db), store.volatile(db));
        let _ = write!(text, "db{db}:keys={keys},expires={expires},avg_ttl=0\r\n");
    }
    text
}
