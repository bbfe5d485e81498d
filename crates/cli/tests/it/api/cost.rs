//! The cost of a call does not grow with the store.

use std::collections::BTreeMap;

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;
use meshwork_test_servers::servers::RealServer;
use serde_json::json;

use super::Server;
use crate::common::Ground;

/// Stored jobs of the smaller store, and by default of the larger one.
const FEW: usize = 1000;
const MANY: usize = 20_000;
/// Calls whose commands are counted together, so that what the supervisor does beside them counts little.
const CALLS: usize = 40;
/// Commands of the supervisor's own rounds that may fall into one count.
const BESIDE: u64 = 60;

/// Copies the record of job `first` to the jobs from number ARGV[3] to ARGV[4], with an entry in each list.
const COPY: &str = "
local record = redis.call('HGETALL', KEYS[1])
for number = ARGV[3], ARGV[4] do
  local id = 'copy-' .. string.format('%d', number)
  redis.call('HSET', ARGV[1] .. id, unpack(record))
  redis.call('HSET', ARGV[1] .. id, 'id', id)
  redis.call('LPUSH', ARGV[2], id)
  for at = 2, #KEYS do redis.call('ZADD', KEYS[at], 32503680000000 + number, id) end
end";

pub(crate) fn fill(server: &RealServer, keys: &JobKeys, from: usize, to: usize) {
    let (first, last) = (from.to_string(), to.to_string());
    let (prefix, queue) = (
        keys.job_prefix(),
        format!("{}type:osis", keys.work_prefix()),
    );
    let indexes = [keys.delayed(), keys.ended(), keys.dead()];
    let record = format!("{prefix}first");
    let names: Vec<&str> = std::iter::once(&record)
        .chain(&indexes)
        .map(|it| &**it)
        .collect();
    let count = names.len().to_string();
    let words: Vec<&str> = ["EVAL", COPY, &count].into_iter().chain(names).collect();
    server
        .say::<()>(&[&words[..], &[&prefix, &queue, &first, &last]].concat())
        .unwrap();
}

/// Returns the calls of each command since the counters were reset.
pub(crate) fn commands(server: &RealServer) -> BTreeMap<String, u64> {
    let stats: String = server.say(&["INFO", "commandstats"]).unwrap();
    let one = |line: &str| {
        let (name, counts) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), counts.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(one).collect()
}

/// Returns the number of commands of each call.
fn counts(server: &RealServer, api: &Server) -> BTreeMap<&'static str, u64> {
    let new = json!({"type": "osis", "script": "1", "delay": "1h"});
    let calls = [
        ("POST", "/v1/jobs"),
        ("GET", "/v1/jobs/copy-7"),
        ("GET", "/v1/jobs/copy-7/why"),
        ("GET", "/v1/jobs?state=queued&queue=osis&limit=20"),
        ("GET", "/v1/jobs?state=delayed&limit=20"),
        ("GET", "/v1/jobs?state=ended&limit=20"),
        ("GET", "/v1/jobs?state=dead&limit=20"),
        ("GET", "/v1/jobs?limit=20"),
        ("GET", "/v1/dead?limit=20"),
        ("GET", "/v1/schedules"),
        ("GET", "/v1/system"),
    ];
    let mut counts = BTreeMap::new();
    for (verb, path) in calls {
        server.say::<()>(&["CONFIG", "RESETSTAT"]).unwrap();
        for _ in 0..CALLS {
            let (status, answer) = api.rest(verb, path, &new);
            assert!(status < 300, "{path}: {answer}");
        }
        let all = commands(server);
        assert_eq!(all.get("keys"), None, "{path}");
        counts.insert(path, all.values().sum());
    }
    counts
}

#[test]
fn calls_cost_the_same_in_a_large_store() {
    let Some(server) = RealServer::redis().start_for("the cost of the API") else {
        return;
    };
    let many = std::env::var("MESHWORK_API_STORE").map_or(MANY, |it| it.parse().unwrap());
    let (ground, keys) = (
        Ground::url(server.url()),
        JobKeys::new(Namespace::default()),
    );
    let api = Server::open(&ground);
    let (status, _) = api.rest(
        "POST",
        "/v1/jobs",
        &json!({"type": "osis", "script": "1", "id": "first"}),
    );
    assert_eq!(status, 201);
    fill(&server, &keys, 1, FEW);
    let few = counts(&server, &api);
    for from in (FEW + 1..many).step_by(FEW) {
        fill(&server, &keys, from, from + FEW - 1);
    }
    for (path, count) in counts(&server, &api) {
        println!("{path}: {} and {count} commands", few[path]);
        assert!(
            count <= few[path] + few[path] / 10 + BESIDE,
            "{path}: {} and {count}",
            few[path]
        );
    }
    api.stop();
}
