//! A hostile tenant of the API beside a neighbour: random calls with each kind of key, socket and page, and random commands of
//! the ACL users of its context. It reads and changes nothing outside of its context, and the neighbour's audit trail stays
//! whole. The times of the neighbour's calls are printed, and not compared.
//!
//! `MESHWORK_ADVERSARY_STEPS=10000` is the long form; `MESHWORK_ADVERSARY_SEED` repeats the choices of a run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use meshwork::context::{Node, new_key};
use meshwork_model::actor_key::SecretKey;
use meshwork_server::api::HERO;
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::say;
use meshwork_test_servers::servers::RealServer;
use serde_json::{Map, Value, json};

use super::context::{Dice, Tenant, number};
use crate::api::rights::{key, tenants};
use crate::api::socket::open_at;
use crate::api::{Api, Server, bearer};
use crate::common::{Ground, wait};
use crate::ui::Browser;

/// Steps of each attacker in a normal run: a few seconds.
const STEPS: u64 = 60;
/// Calls of the neighbour before the attack.
const CALM: usize = 40;
/// Greatest number of them beside it: the audit trail keeps 10,000 entries.
const MOST: usize = 8_000;

/// Values of parameters: names of what is outside, of what is inside, and what is neither.
const VALUES: [&str; 28] = [
    "\"node-job\"",
    "\"node-queue\"",
    "\"node-schedule\"",
    "\"node-key\"",
    "\"{ctx:1}:job:1:1\"",
    "\"{ctx:1}:queue:osis\"",
    "\"{ctx:2}:job:2:1\"",
    "\"{ctx:01}:job:1:1\"",
    "\"1:1\"",
    "\"2:1\"",
    "\"1\"",
    "\"2\"",
    "\"osis\"",
    "\"python\"",
    "\"admin\"",
    "\"queued\"",
    "\"*\"",
    "\"\"",
    "\"\\u0000\"",
    "0",
    "1",
    "2",
    "4294967295",
    "-1",
    "true",
    "null",
    "[\"x\"]",
    "{\"id\":1,\"context_id\":1}",
];
/// Pages, with parameters that name what is outside.
const PAGES: [&str; 14] = [
    "/ui/",
    "/ui/jobs?state=delayed",
    "/ui/jobs?state=ended",
    "/ui/job?id=node-job",
    "/ui/job?id=1%3A1",
    "/ui/queues",
    "/ui/queue?queue=node-queue",
    "/ui/workers",
    "/ui/dead",
    "/ui/schedules",
    "/ui/flows",
    "/ui/flow?id=1",
    "/ui/batch?id=1",
    "/ui/confirm?method=job.delete&id=node-job",
];

/// The methods of the API and of Hero's names, with the names of their parameters.
struct Methods(Vec<(String, Vec<String>)>);

impl Methods {
    fn of(api: &Api, head: &str) -> Self {
        let document = api.rpc("rpc.discover", &json!({}), head)["result"].clone();
        let own = document["methods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|method| {
                let params = method["params"].as_array().unwrap().iter();
                let params = params.map(|param| param["name"].as_str().unwrap().to_owned());
                (
                    method["name"].as_str().unwrap().to_owned(),
                    params.collect(),
                )
            });
        let of_hero = ["job_id", "job", "script", "name", "params"].map(str::to_owned);
        let hero = HERO
            .iter()
            .map(|method| (method.name.to_owned(), of_hero.to_vec()));
        Self(own.chain(hero).collect())
    }

    /// A random call.
    fn call(&self, dice: &mut Dice) -> (&str, Value) {
        let (name, params) = &self.0[dice.next(self.0.len())];
        let mut given = Map::new();
        for param in params {
            let value = match param.as_str() {
                // A call that waits is one that does nothing else.
                "wait" => json!("1ms"),
                _ if dice.next(3) == 0 => continue,
                "script" | "flow" => {
                    json!(dice.of(&["1 + 1", "flow: x\njobs: {a: {run: x, context: 1}}"]))
                }
                "type" => json!("osis"),
                _ => serde_json::from_str(dice.of(&VALUES)).unwrap(),
            };
            given.insert(param.clone(), value);
        }
        (name, Value::Object(given))
    }
}

/// A way to attack, with the credential for it.
enum Attack {
    Calls(String),
    Socket(String),
    Login(SecretKey),
    Pages(String),
    /// The address of the store, as a user of the context.
    Plain(String),
}

/// Fails if an answer has something from outside of the context.
fn reads_nothing(name: &str, answer: &Value) {
    // Errors repeat what was sent, and the document has words alone. Own jobs may have any name as a tag.
    let result = answer["result"].to_string();
    let is_read = result.contains("not-ours") && name != "rpc.discover";
    let notice = answer["params"].to_string();
    let is_told = notice.contains("node-job") || notice.contains("{ctx:1}");
    assert!(!is_read && !is_told, "{name}: {answer}");
}

/// Makes random calls. Returns the number of those that were not refused.
fn attack(api: &Api, methods: &Methods, attack: &Attack, (steps, mut dice): (u64, Dice)) -> u64 {
    match attack {
        Attack::Calls(head) => answered(steps, || {
            let (name, params) = methods.call(&mut dice);
            (name, api.rpc(name, &params, head))
        }),
        Attack::Socket(head) => {
            let mut socket = open_at(api, "rpc", head).ok().unwrap();
            answered(steps, || {
                let (name, params) = match dice.next(8) {
                    0 => ("subscribe", topic(&mut dice)),
                    _ => methods.call(&mut dice),
                };
                let answer = socket.call(name, &params);
                for notice in socket.noticed() {
                    reads_nothing("a notification", &notice);
                }
                (name, answer)
            })
        }
        Attack::Login(secret) => {
            let path = secret.public().to_string();
            let mut socket = open_at(api, &path, "").ok().unwrap();
            socket.log_in(secret);
            answered(steps, || {
                let (name, params) = methods.call(&mut dice);
                (name, socket.call(name, &params))
            })
        }
        Attack::Pages(key) => {
            let browser = Browser::sign_in(api, key);
            (0..steps).filter(|_| shows(&browser, &mut dice)).count() as u64
        }
        Attack::Plain(url) => {
            let mut plain = Plain::connect(url).unwrap();
            let (own, other) = ("{ctx:2}:", "{ctx:1}:");
            let tenant = Tenant { own, other };
            let tried = (0..steps).filter(|_| tenant.attacks(&mut plain, &mut dice));
            tried.count() as u64
        }
    }
}

/// Makes calls, and looks at the answers. Returns the number of results.
fn answered<'a>(steps: u64, mut call: impl FnMut() -> (&'a str, Value)) -> u64 {
    let mut results = 0;
    for _ in 0..steps {
        let (name, answer) = call();
        reads_nothing(name, &answer);
        results += u64::from(answer.get("result").is_some());
    }
    results
}

/// Parameters of a subscription.
fn topic(dice: &mut Dice) -> Value {
    let topics = [
        "events",
        "job:node-job",
        "queue:osis",
        "log:1:1",
        "log:{ctx:1}:job:1:1",
    ];
    json!({"topic": dice.of(&topics), "context": dice.of(&[1, 2]), "from": "0"})
}

/// Reads a page. Returns false if it was refused.
fn shows(browser: &Browser, dice: &mut Dice) -> bool {
    let (page, context) = (dice.of(&PAGES), dice.of(&["", "context=1", "context=2"]));
    let sign = if page.contains('?') { '&' } else { '?' };
    let came = browser.get(&format!("{page}{sign}{context}"));
    let body = &came.body;
    assert!(!body.contains("not-ours"), "{page} {context}: {body}");
    came.status == 200
}

/// The neighbour: one call that creates a job, and one that reads it. Returns how long both took.
fn neighbour(api: &Api, head: &str, number: usize) -> Duration {
    let began = Instant::now();
    let number = 100 + number;
    let job = json!({"type": "osis", "script": "not-ours", "tags": ["not-ours"], "id": number.to_string(), "delay": "1h"});
    let made = api.rpc("job.create", &job, head);
    assert!(made["result"]["id"].is_string(), "{made}");
    let read = api.rpc("job.get", &json!({"id": number.to_string()}), head);
    assert_eq!(read["result"]["status"], "dispatched", "{read}");
    began.elapsed()
}

fn p95(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() * 95 / 100]
}

/// Records of the node, which nobody changes.
fn node_records(plain: &mut Plain) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = plain.ask(&["KEYS", "*"]).unwrap();
    let is_kept = |key: &String| {
        let kinds = [
            "hero:job:",
            "actor:",
            "mw:actors",
            "mw:contexts",
            "hero:q:schedule",
            "hero:q:config",
            "hero:q:delayed",
        ];
        kinds.iter().any(|kind| key.starts_with(kind))
    };
    let kept = keys.into_iter().filter(is_kept);
    kept.map(|key| {
        let value = plain.ask(&["DUMP", &key]).unwrap();
        (key, value)
    })
    .collect()
}

/// The attackers, each with its name, and the header of the neighbour's key. The tenant of context 2 has two actors: keys of
/// the first are for the context alone, the second one has roles there and nowhere else.
fn people(ground: &Ground, redis: &RealServer) -> (Vec<(&'static str, Attack)>, String) {
    let secret = new_key();
    let actor = wait(Node::of(&ground.broker()).trust(secret.public(), None)).unwrap();
    let second = actor.id.to_string();
    let grant = ["context", "grant", "2", "admin", &second];
    ground
        .run(&[&grant[..], &["--key", "tenant.key"]].concat())
        .ok();
    let made = |name: &str, words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        key(ground, name, &words)
    };
    let next = made("not-ours-neighbour", "--scope admin --context 1 --actor 1");
    let bound = made("bound", "--scope admin --context 2 --actor 2");
    let viewer = bearer(&made("viewer", "--context 2 --actor 2"));
    let wide = made("wide", &format!("--scope admin --actor {second}"));
    let user = |name: &str| {
        let acl = ["context", "acl", "2", name, "--json", "--key", "tenant.key"];
        let made = ground.run(&acl).ok().json();
        let [name, password] = ["user", "password"].map(|field| made[field].as_str().unwrap());
        let to = format!("redis://{name}:{password}@");
        Attack::Plain(redis.url().replacen("redis://", &to, 1))
    };
    let (of_bound, of_wide) = (bearer(&bound), bearer(&wide));
    let attacks = vec![
        ("key of the context", Attack::Calls(of_bound.clone())),
        ("viewer of the context", Attack::Calls(viewer)),
        ("key of the actor", Attack::Calls(of_wide.clone())),
        ("socket of the context", Attack::Socket(of_bound)),
        ("socket of the actor", Attack::Socket(of_wide)),
        ("login of the actor", Attack::Login(secret)),
        ("pages of the context", Attack::Pages(bound)),
        ("pages of the actor", Attack::Pages(wide)),
        ("ACL user admin", user("admin")),
        ("ACL user executor", user("executor")),
        ("ACL user runner", user("runner")),
    ];
    (attacks, bearer(&next))
}

#[test]
fn a_hostile_tenant_of_the_api_harms_no_neighbour() {
    let Some(redis) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(redis.url());
    tenants(&ground);
    let (attacks, next) = people(&ground, &redis);
    let server = Server::start(&ground, &[]);
    let methods = Methods::of(&server, &next);
    let mut plain = Plain::connect(&redis.url()).unwrap();
    let before = node_records(&mut plain);
    assert!(before.len() > 5, "{:?}", before.keys());

    let calm = (0..CALM).map(|at| neighbour(&server, &next, at));
    let mut calm: Vec<_> = calm.collect();
    let seed = number("MESHWORK_ADVERSARY_SEED").unwrap_or(0x5eed).max(1);
    let steps = number("MESHWORK_ADVERSARY_STEPS").unwrap_or(STEPS);
    say(format!("seed {seed}, {steps} steps of each attacker"));
    let (ended, mut beside) = (AtomicUsize::new(0), Vec::new());
    thread::scope(|scope| {
        for (at, (name, way)) in attacks.iter().enumerate() {
            let (api, methods, ended) = (&server.api, &methods, &ended);
            scope.spawn(move || {
                let dice = Dice(seed + at as u64);
                let attack = || attack(api, methods, way, (steps, dice));
                // Counted after a failure too, so that the neighbour does not go on for ever.
                let done = catch_unwind(AssertUnwindSafe(attack));
                ended.fetch_add(1, Ordering::SeqCst);
                let accepted = done.unwrap_or_else(|panic| resume_unwind(panic));
                say(format!("{name}: {accepted} of {steps} accepted"));
            });
        }
        while ended.load(Ordering::SeqCst) < attacks.len() && beside.len() < MOST {
            beside.push(neighbour(&server, &next, CALM + beside.len()));
        }
    });
    let many = beside.len();
    let (calm, beside) = (p95(&mut calm), p95(&mut beside));
    say(format!(
        "neighbour: p95 {calm:?} before the attack, {beside:?} beside it, of {many} calls"
    ));
    assert_eq!(node_records(&mut plain), before);
    neighbour_is_whole(&ground, &mut plain, CALM + many);
    server.stop();
}

/// The neighbour has its jobs and no others, and an entry for each in its trail, behind those of its context.
fn neighbour_is_whole(ground: &Ground, plain: &mut Plain, many: usize) {
    let jobs: Vec<String> = plain
        .ask(&["ZRANGE", "{ctx:1}:mw:index:job", "0", "-1"])
        .unwrap();
    assert_eq!(jobs.len(), many + 1);
    for job in &jobs {
        let record: Vec<String> = plain
            .ask(&["HMGET", job, "status", "caller_id", "script"])
            .unwrap();
        assert_eq!(
            (record[0].as_str(), record[1].as_str()),
            ("dispatched", "1"),
            "{job}"
        );
        assert!(record[2].contains("not-ours"), "{job}");
    }
    let file = ["context", "audit", "1", "--to", "trail.jsonl"];
    ground.run(&file).ok();
    let trail = std::fs::read_to_string(ground.path("trail.jsonl")).unwrap();
    let entries: Vec<Value> = trail.lines().map(crate::common::json).collect();
    let of = |what: &str| entries.iter().filter(|entry| entry["what"] == what).count();
    assert_eq!(
        (of("create"), of("grant"), of("enqueue job")),
        (1, 1, many + 1),
        "{trail}"
    );
    assert_eq!(entries.len(), many + 3, "{trail}");
}
