//! Commands that change a context, killed after any of their calls of the server: an entry of the audit trail stands
//! whenever something has changed.

use std::collections::BTreeMap;
use std::path::Path;

use meshwork_test_servers::halting::{Halt, Halting};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::RealServer;

use super::audit::{CALLS, COMMANDS, prepare};
use crate::common::{Ground, Running, eventually, wait};

/// More commands by the command line, in context 7: flow 1 asks, flow 2 has ended, flow `deployed` is deployed, and message
/// 1:1 was not delivered.
const MORE: [&str; 13] = [
    "flow submit f.yaml --context 7",
    "flow cancel 1 --context 7",
    "flow approve 1 --context 7",
    "flow reject 1 ask --context 7",
    "flow retry 2 --from one --detach --context 7",
    "flow delete 2 --context 7",
    "flow deploy f.yaml --context 7",
    "flow undeploy deployed --context 7",
    "message send 7 hi --context 7",
    "message cancel 1:1 --context 7",
    "message delete 1:1 --context 7",
    "runner register --type osis --context 7",
    "context grant 7 reader 1",
];

/// Changes that find nothing to change.
const IDLE: [&str; 2] = ["resume", "queue.resume"];

const FLOW: &str = "
flow: deployed
jobs:
  one: {script: '1', type: osis}
  ask: {approve: 'Go on?', needs: one}
";
const FAILS: &str = "
flow: failed
jobs:
  one: {script: 'throw 1', type: osis}
";

/// Copies all keys from one database to another.
const COPY: &str = "
for _, key in ipairs(redis.call('KEYS', '*')) do
  redis.call('COPY', key, key, 'DB', ARGV[1])
end";

/// Returns the digests of all values, apart from audit trails, and the number of entries of these.
const STATE: &str = "
local found, entries = {}, 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  -- A number that was drawn is no change.
  if string.find(key, ':mw:id:', 1, true) then
  elseif string.find(key, 'audit', 1, true) and redis.call('TYPE', key).ok == 'stream' then
    entries = entries + redis.call('XLEN', key)
  else
    table.insert(found, {key, redis.sha1hex(redis.call('DUMP', key))})
  end
end
return {found, entries}";

type Values = BTreeMap<Vec<u8>, String>;

/// The store: database 0, with a copy in database 1.
struct Store {
    server: RealServer,
    plain: Plain,
    copy: Plain,
}

impl Store {
    fn keep(&mut self) {
        self.plain.ask::<()>(&["EVAL", COPY, "0", "1"]).unwrap();
    }

    fn restore(&mut self) {
        self.plain.ask::<()>(&["FLUSHDB"]).unwrap();
        self.copy.ask::<()>(&["EVAL", COPY, "0", "0"]).unwrap();
    }

    fn state(&mut self) -> (Values, u64) {
        let (values, entries): (Vec<(Vec<u8>, String)>, u64) =
            self.plain.ask(&["EVAL", STATE, "0"]).unwrap();
        (values.into_iter().collect(), entries)
    }

    /// Waits until the server has done all that was sent: its only clients are these two.
    fn settle(&mut self) {
        eventually("the other clients are gone", || {
            let clients: String = self.plain.ask(&["CLIENT", "LIST"]).unwrap();
            (clients.lines().count() == 2).then_some(())
        });
    }

    /// Runs a command, and kills it after so many calls. Returns false if it has ended before.
    fn killed(&mut self, words: &[&str], calls: usize, files: &Path) -> bool {
        let server = ([127, 0, 0, 1], self.server.port()).into();
        let proxy = wait(Halting::to(server)).unwrap();
        proxy.halt(Halt::After(calls));
        let far = Ground::url(format!("redis://{}", proxy.at()));
        let mut command = far.command(words);
        command.current_dir(files);
        let running = Running::start(command);
        eventually("the command is held up, or ends", || {
            (proxy.is_halted() || has_ended(running.pid())).then_some(())
        });
        let is_halted = proxy.is_halted();
        running.kill();
        drop(proxy);
        self.settle();
        is_halted
    }
}

fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

/// All kills of one command, or every fifteenth of them: the first one is that after `first` calls. Returns their number.
fn kills(
    store: &mut Store,
    words: &[&str],
    first: usize,
    (files, ignored): (&Path, &Values),
) -> usize {
    let step = match std::env::var("MESHWORK_KILLS").as_deref() {
        Ok("all") => 1,
        _ => 15,
    };
    let mut calls = if step == 1 { 1 } else { first % step + 1 };
    let mut kills = 0;
    loop {
        store.restore();
        let (before, entries) = store.state();
        let goes_on = store.killed(words, calls, files);
        let (after, more) = store.state();
        let differs =
            |key: &&Vec<u8>| before.get(*key) != after.get(*key) && !ignored.contains_key(*key);
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(differs).collect();
        let names: Vec<_> = changed
            .iter()
            .map(|key| key.escape_ascii().to_string())
            .collect();
        assert!(
            names.is_empty() || more > entries,
            "{words:?}, killed after {calls} calls, changed {names:?} without an entry"
        );
        if !goes_on {
            let is_idle = words.iter().any(|word| IDLE.contains(word));
            assert!(is_idle || !names.is_empty(), "{words:?} changed nothing");
            return kills;
        }
        (calls, kills) = (calls + step, kills + 1);
    }
}

#[test]
fn a_killed_command_has_an_entry_for_what_it_has_changed() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = &Ground::url(server.url());
    prepare(ground);
    ground.file("f.yaml", FLOW);
    ground.file("fails.yaml", FAILS);
    ground.file("a.rhai", "1");
    let run = |words: &str| {
        let words: Vec<_> = words.split(' ').collect();
        ground.run(&words)
    };
    run("flow submit f.yaml --context 7").ok();
    run("flow submit fails.yaml --context 7").ok();
    run("flow deploy f.yaml --context 7").ok();
    let worker = ground.worker(&["--context", "7", "--type", "osis"]);
    run("flow status 2 --wait --context 7").exits(1);
    eventually("flow 1 asks", || {
        let view = run("flow status 1 --context 7 --json").ok().json();
        view["jobs"][1]["question"].is_string().then_some(())
    });
    worker.stop();
    run("job enqueue a.rhai --context 7").ok();
    run("message send 7 hello --context 7").ok();
    let plain = Plain::connect(&server.url()).unwrap();
    let copy = Plain::connect(&server.url_of(1)).unwrap();
    let mut store = Store {
        server,
        plain,
        copy,
    };
    store.settle();
    store.keep();
    // Keys that commands change which only read.
    let (before, _) = store.state();
    for words in [
        "job list",
        "dead list",
        "queue list",
        "flow list",
        "message list",
    ] {
        run(&format!("{words} --context 7")).ok();
    }
    let (after, _) = store.state();
    let ignored: Values = after
        .into_iter()
        .filter(|(key, value)| before.get(key) != Some(value))
        .collect();
    let files = ground.path(".");
    let key = ground.path(".config/meshwork/actor.key");
    let key = ["--actor-key", key.to_str().unwrap()];
    let in_context = COMMANDS
        .iter()
        .map(|command| format!("{command} --context 7"));
    let commands: Vec<_> = in_context.chain(MORE.map(str::to_owned)).collect();
    let mut total = 0;
    for (at, command) in commands.iter().enumerate() {
        let words: Vec<_> = command.split(' ').chain(key).collect();
        total += kills(&mut store, &words, at, (&files, &ignored));
    }
    for (at, (method, params)) in CALLS.iter().enumerate() {
        let params = format!("{{{params}, \"context\": 7}}");
        let words = [&["rpc", method, &params][..], &key].concat();
        total += kills(&mut store, &words, at, (&files, &ignored));
    }
    println!("{total} kills");
    assert!(total >= 50, "{total}");
}
