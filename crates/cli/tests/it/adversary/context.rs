//! A hostile tenant: random plain writes by each ACL user of a context into all that he may write, beside two honest
//! contexts. Their data does not change, no job runs there in a wrong name, and the supervisor goes on serving them.
//!
//! `MESHWORK_ADVERSARY_STEPS=10000` is the long form; `MESHWORK_ADVERSARY_SEED` repeats a run.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use crate::common::{Ground, Running, json as of_line};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::say;
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use serde_json::{Value, json};

/// Steps of each user in a normal run: a few seconds.
const STEPS: u64 = 250;
/// Steps between two looks at the honest contexts.
const ROUND: u64 = 50;
/// Users who may write.
const USERS: [&str; 3] = ["admin", "executor", "runner"];

/// Random choices that a seed repeats (xorshift).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len())]
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Keys of the hostile context.
const KEYS: [&str; 40] = [
    "job:1:1",
    "job:2:1",
    "job:2:2",
    "job:2:3",
    "queue:osis",
    "queue:flow",
    "message:2:1",
    "message:1:7",
    "msg_out",
    "msg_out_coordinator",
    "msg_in",
    "msg_in:7",
    "runner:1",
    "flow:1",
    "mw:lease",
    "mw:feeds",
    "mw:feed:w {other}queue:osis",
    "mw:delayed",
    "mw:dead",
    "mw:ended",
    "mw:watch",
    "mw:starts",
    "mw:held",
    "mw:backlog:{other}queue:osis k",
    "mw:slots:{other}queue:osis k",
    "mw:settle",
    "mw:next:{own}job:2:1",
    "mw:config",
    "mw:alerts:{own}queue:osis",
    "mw:unique:osis:u",
    "mw:sent",
    "mw:open",
    "mw:outbound",
    "mw:letters",
    "mw:index:job",
    "mw:index:message",
    "mw:flows-due",
    "mw:lists",
    "mw:actors",
    "mw:gates",
];
/// Fields of records.
const FIELDS: [&str; 31] = [
    "status",
    "script",
    "script_type",
    "caller_id",
    "context_id",
    "timeout",
    "retries",
    "prerequisites",
    "dependends",
    "mw_queue",
    "mw_slot",
    "mw_key",
    "mw_with",
    "mw_fallback",
    "mw_lock",
    "mw_unique",
    "mw_batch",
    "mw_flow",
    "mw_from_node",
    "mw_node",
    "mw_waiting",
    "mw_run_at",
    "mw_start_by",
    "mw_alert",
    "mw_reply",
    "target_context",
    "message_type",
    "job",
    "mw_re",
    "mw_origin",
    "prefix",
];
/// Values, elements and members.
const VALUES: [&str; 24] = [
    "{other}job:1:1",
    "{other}queue:osis",
    "{other}mw:outbound",
    "{other}msg_out",
    "{other}message:1:1",
    "{other}context:8",
    "{own}job:2:1",
    "{own}job:2:2",
    "{own}message:2:1",
    "{own}queue:osis",
    "w {other}queue:osis",
    "{other}queue:osis k",
    "{other}p {other}queue:osis",
    "dispatched",
    "started",
    "finished",
    "error",
    "osis",
    "8",
    "1",
    "0",
    "garbage",
    "done u",
    "[{\"id\":1,\"caller_id\":1,\"script\":\"1\",\"script_type\":\"osis\"}]",
];
const COMMANDS: [&str; 9] = [
    "HSET", "HSET", "HSET", "LPUSH", "RPUSH", "ZADD", "SADD", "SET", "DEL",
];

pub(crate) struct Tenant<'a> {
    pub(crate) own: &'a str,
    pub(crate) other: &'a str,
}

impl Tenant<'_> {
    /// Sends a random command as a user. Returns true if the server accepts it.
    pub(crate) fn attacks(&self, user: &mut Plain, dice: &mut Dice) -> bool {
        let command = self.command(dice);
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        user.ask::<()>(&words).is_ok()
    }

    fn named(&self, text: &str) -> String {
        text.replace("{own}", self.own)
            .replace("{other}", self.other)
    }

    /// A random command of a plain client.
    fn command(&self, dice: &mut Dice) -> Vec<String> {
        let key = format!("{}{}", self.own, self.named(dice.of(&KEYS)));
        let mut value = || self.named(dice.of(&VALUES));
        let (one, other) = (value(), value());
        let command = dice.of(&COMMANDS);
        let rest = match command {
            "HSET" => vec![
                dice.of(&FIELDS).to_owned(),
                one,
                dice.of(&FIELDS).to_owned(),
                other,
            ],
            "ZADD" => vec![dice.of(&["0", "1", "9e15"]).to_owned(), one],
            "DEL" => Vec::new(),
            _ => vec![one],
        };
        [vec![command.to_owned(), key], rest].concat()
    }
}

/// Data of an honest context that must not change: its records of ended jobs, and its members.
fn snapshot(
    plain: &mut Plain,
    prefix: &str,
    context: &str,
    jobs: &[String],
) -> BTreeMap<String, BTreeMap<String, String>> {
    let record = format!("{prefix}context:{context}");
    let keys = jobs.iter().chain([&record]);
    keys.map(|key| (key.clone(), plain.ask(&["HGETALL", key]).unwrap()))
        .collect()
}

/// Runs a job in each honest context. Returns their keys, and how long it took.
fn serve(ground: &Ground) -> (Vec<String>, Duration) {
    let began = Instant::now();
    let mut jobs = Vec::new();
    for context in ["8", "9"] {
        let enqueue = ["job", "enqueue", "sum.rhai", "--context", context];
        let id = ground.run(&enqueue).ok().stdout.trim().to_owned();
        let wait = ["job", "wait", &id, "--context", context, "--timeout", "60"];
        ground.run(&wait).ok();
        jobs.push(id);
    }
    (jobs, began.elapsed())
}

fn honest_contexts_are_served(server: ServerOptions, layout: &str) {
    let Some(server) = server.start() else { return };
    let ground = Ground::url(server.url());
    ground.file("sum.rhai", "1 + 2");
    for context in ["7", "8", "9"] {
        let create = ["context", "create", "--id", context, "--layout", layout];
        ground.run(&create).ok();
        let refuse = ["context", "set", context, "--unsigned", "refuse"];
        ground.run(&refuse).ok();
    }
    let prefix = |context: &str| match layout {
        "db" => String::new(),
        _ => format!("{{ctx:{context}}}:"),
    };
    let database = |context: u32| if layout == "db" { context } else { 0 };
    let login = |user: &str| {
        let acl = ["context", "acl", "7", user, "--json"];
        let made: Value = ground.run(&acl).ok().json();
        let [name, password] =
            ["user", "password"].map(|field| made[field].as_str().unwrap().to_owned());
        let to = format!("redis://{name}:{password}@");
        Plain::connect(&server.url_of(database(7)).replacen("redis://", &to, 1)).unwrap()
    };
    let mut users = USERS.map(login);
    // It works for the hostile context too, with the rights of the node.
    let mut supervisor: Running = ground.start(&["supervisor", "--worker", "osis", "--json"]);
    assert_eq!(of_line(&supervisor.line())["contexts"], json!([7, 8, 9]));

    let (first, usual) = serve(&ground);
    let mut honest =
        [8, 9].map(|context| Plain::connect(&server.url_of(database(context))).unwrap());
    let look = |honest: &mut [Plain; 2], jobs: &[String]| {
        let mut both = honest.iter_mut().zip(["8", "9"]).zip(jobs);
        let [one, other] = [both.next(), both.next()].map(|next| {
            let ((plain, context), job) = next.unwrap();
            snapshot(plain, &prefix(context), context, std::slice::from_ref(job))
        });
        (one, other)
    };
    let before = look(&mut honest, &first);
    let seed = number("MESHWORK_ADVERSARY_SEED").unwrap_or(0x5eed);
    let steps = number("MESHWORK_ADVERSARY_STEPS").unwrap_or(STEPS);
    say(format!("seed {seed}, {steps} steps, {layout}"));
    let (mut dice, mut slowest) = (Dice(seed.max(1)), Duration::ZERO);
    let (own, other) = (prefix("7"), prefix("8"));
    let tenant = Tenant {
        own: &own,
        other: &other,
    };
    let (mut done, mut refused) = (0_u64, 0_u64);
    for step in 0..steps {
        for user in &mut users {
            let accepted = tenant.attacks(user, &mut dice);
            done += u64::from(accepted);
            refused += u64::from(!accepted);
        }
        if step % ROUND == ROUND - 1 {
            slowest = slowest.max(serve(&ground).1);
            assert_eq!(
                look(&mut honest, &first),
                before,
                "after step {step} of seed {seed}"
            );
        }
    }
    say(format!(
        "{done} writes, {refused} refused; usual {usual:?}, slowest {slowest:?}"
    ));
    assert!(done > steps / 4, "only {done} writes");

    for (plain, context) in honest.iter_mut().zip(["8", "9"]) {
        jobs_are_own(plain, &prefix(context), 1 + steps / ROUND);
    }
    supervisor.stop();
}

/// Checks that each job of an honest context is one that [`serve`] enqueued, by the actor who did.
fn jobs_are_own(plain: &mut Plain, prefix: &str, many: u64) {
    let index = format!("{prefix}mw:index:job");
    let jobs: Vec<String> = plain.ask(&["ZRANGE", &index, "0", "-1"]).unwrap();
    assert_eq!(jobs.len() as u64, many, "{index}");
    let own = format!("{prefix}job:1:");
    assert!(jobs.iter().all(|job| job.starts_with(&own)), "{jobs:?}");
}

#[test]
fn honest_contexts_after_a_prefix_on_redis() {
    honest_contexts_are_served(RealServer::redis(), "prefix");
}

#[test]
fn honest_contexts_on_valkey_in_both_layouts() {
    honest_contexts_are_served(RealServer::valkey(), "db");
    honest_contexts_are_served(RealServer::valkey(), "prefix");
}
