//! The steps of a run, from a seed and the engine's own table of commands.

use std::collections::VecDeque;

use data_encoding::HEXLOWER;
use meshwork_embedded::CommandInfo;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sha1::{Digest, Sha1};

use super::{
    grammar, lua, same,
    step::{Arg, Step},
    words::{self, TIMED, once_in, one_of},
};

/// Number of sessions in a run; those with an odd number use RESP3 from the start.
pub(super) const SESSIONS: usize = 4;

/// Number of commands between two comparisons of all data.
const COMPARE_EVERY: u32 = 250;

/// Commands that are not tried, with the reason.
const LEFT_OUT: [(&str, &str); 9] = [
    ("bgrewriteaof", "the engine of the run has no log"),
    (
        "client|kill",
        "who is killed has no reply to compare; its own tests",
    ),
    ("client|setinfo", "younger than Redis 7.0"),
    ("client|no-touch", "younger than Redis 7.0"),
    (
        "client|unblock",
        "ids are the server's own: tried with those of the sessions",
    ),
    ("config|set", "the settings of the server are its own"),
    ("memory|usage", "an estimate: another one on each side"),
    ("quit", "the session would be gone; its own tests"),
    ("shutdown", "would end the run"),
];

/// Commands that are ten times less frequent, because they make the others meaningless for a while.
const SELDOM: [&str; 14] = [
    "flushall",
    "flushdb",
    "script|flush",
    "reset",
    "hello",
    "select",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "discard",
    "exec",
    "multi",
    "auth",
    "blmove",
];

pub(super) struct Generator {
    random: StdRng,
    commands: Vec<CommandInfo>,
    until_compare: u32,
    /// True for sessions that are between MULTI and EXEC, as far as the generator knows.
    in_multi: [bool; SESSIONS],
    /// Earlier scripts, for EVALSHA and for repeated runs.
    scripts: Vec<Vec<u8>>,
    /// Steps that come next, because they are unlikely one after the other by chance.
    planned: VecDeque<Step>,
}

/// Number of scripts that are kept.
const SCRIPTS_KEPT: usize = 20;

impl Generator {
    pub(super) fn new(seed: u64, commands: &[CommandInfo]) -> Self {
        let tried = |command: &&CommandInfo| {
            !command.container && LEFT_OUT.iter().all(|(name, _)| *name != command.name)
        };
        Self {
            random: StdRng::seed_from_u64(seed),
            commands: commands.iter().filter(tried).copied().collect(),
            until_compare: COMPARE_EVERY,
            in_multi: [false; SESSIONS],
            scripts: Vec::new(),
            planned: VecDeque::new(),
        }
    }

    pub(super) fn next(&mut self) -> Step {
        self.until_compare -= 1;
        if self.until_compare == 0 {
            self.until_compare = COMPARE_EVERY;
            return Step::CompareData;
        }
        if let Some(step) = self.planned.pop_front() {
            return step;
        }
        let session = self.random.random_range(0..SESSIONS);
        let args = match self.random.random_range(0..1000) {
            0..5 => self.unknown(),
            5..30 if !self.in_multi[session] => self.named("multi"),
            5..150 if self.in_multi[session] => self.named("exec"),
            150..170 if self.in_multi[session] => self.named("discard"),
            170..260 | 320..380 => self.script(),
            285..320 => {
                let blocking = self.commands.iter().filter(|command| command.blocking);
                let blocking: Vec<CommandInfo> = blocking.copied().collect();
                let at = self.random.random_range(0..blocking.len());
                self.call_of(blocking[at])
            }
            380..500 => self.of_streams(),
            500..505 => return self.wait_in_a_group(),
            // Leaves every state of the session, and restores its protocol.
            265..275 if session >= SESSIONS / 2 => self.named("reset"),
            265..285 if session % 2 == 1 => vec![b"HELLO".to_vec(), b"3".to_vec()],
            260..265 => {
                let target = self.random.random_range(0..SESSIONS);
                return self.unblock(session, target);
            }
            _ => self.command(),
        };
        match args[0].to_ascii_lowercase().as_slice() {
            b"multi" => self.in_multi[session] = true,
            b"exec" | b"discard" | b"reset" => self.in_multi[session] = false,
            _ => {}
        }
        Step::call(session, args)
    }

    /// Returns a command on streams, which chance would make too rare: entries, and groups that read them.
    fn of_streams(&mut self) -> Vec<Vec<u8>> {
        let often = [
            "xadd",
            "xadd",
            "xadd",
            "xdel",
            "xreadgroup",
            "xreadgroup",
            "xclaim",
            "xautoclaim",
            "xgroup|create",
            "xinfo|groups",
            "xinfo|stream",
        ];
        let often = once_in(&mut self.random, 2).then(|| one_of(&mut self.random, &often));
        let fits = |command: &&CommandInfo| match often {
            Some(name) => command.name == name,
            None => command.name.starts_with('x'),
        };
        let fitting: Vec<CommandInfo> = self.commands.iter().filter(fits).copied().collect();
        let at = self.random.random_range(0..fitting.len());
        self.call_of(fitting[at])
    }

    /// Returns a client that waits in a group without new entries, and plans commands that may end the wait.
    fn wait_in_a_group(&mut self) -> Step {
        let random = &mut self.random;
        let key = one_of(random, words::STREAMS);
        let ends = [
            "XGROUP DESTROY x g1",
            "DEL x",
            "SET x v",
            "RENAME x x2",
            "FLUSHDB",
            "XADD x 9000000000000-* f v",
            "XSETID x 9000000000000-500",
            "COPY x2 x REPLACE",
            "PEXPIREAT x 1",
        ];
        let last = one_of(random, &ends);
        let waiting = random.random_range(1..SESSIONS);
        let steps = [
            (0, "XGROUP CREATE x g1 $ MKSTREAM"),
            (0, "XGROUP SETID x g1 $"),
            (waiting, "XREADGROUP GROUP g1 w1 BLOCK 0 STREAMS x >"),
            (0, last),
        ];
        let word = |word: &str| if word == "x" { key } else { word }.as_bytes().to_vec();
        let steps =
            steps.map(|(session, line)| Step::call(session, line.split(' ').map(word).collect()));
        self.planned.extend(steps);
        self.planned.push_back(Step::CompareData);
        self.next()
    }

    fn named(&mut self, name: &str) -> Vec<Vec<u8>> {
        let extra = if once_in(&mut self.random, 50) {
            Some(b"x".to_vec())
        } else {
            None
        };
        std::iter::once(name.as_bytes().to_vec())
            .chain(extra)
            .collect()
    }

    fn unknown(&mut self) -> Vec<Vec<u8>> {
        let random = &mut self.random;
        let names = [
            "nope",
            "client",
            "CLIENT nope",
            "config nope",
            "script",
            "get|set",
            "",
        ];
        let name = one_of(random, &names);
        let mut args: Vec<Vec<u8>> = name
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        args.extend((0..random.random_range(0..4)).map(|_| words::any(&mut self.random)));
        args
    }

    fn unblock(&mut self, session: usize, target: usize) -> Step {
        let how: &[&str] = one_of(
            &mut self.random,
            &[&[][..], &["TIMEOUT"], &["ERROR"], &["x"]],
        );
        let mut args: Vec<Arg> = ["CLIENT", "UNBLOCK"]
            .iter()
            .map(|word| Arg::Bytes(word.as_bytes().to_vec()))
            .collect();
        args.push(Arg::ClientOf(target));
        args.extend(how.iter().map(|word| Arg::Bytes(word.as_bytes().to_vec())));
        Step::Call { session, args }
    }

    fn pick(&mut self) -> CommandInfo {
        loop {
            let at = self.random.random_range(0..self.commands.len());
            let command = self.commands[at];
            if !SELDOM.contains(&command.name) || once_in(&mut self.random, 10) {
                return command;
            }
        }
    }

    fn command(&mut self) -> Vec<Vec<u8>> {
        let command = self.pick();
        match command.name {
            "eval" | "eval_ro" | "evalsha" | "evalsha_ro" => self.script(),
            "script|load" => {
                let script = self.text();
                vec![b"script".to_vec(), b"LOAD".to_vec(), script]
            }
            _ => self.call_of(command),
        }
    }

    /// Returns a call of a command: by its form, or by its entry in the table.
    fn call_of(&mut self, command: CommandInfo) -> Vec<Vec<u8>> {
        let mut args = self.command_name(command.name);
        if command.name == "command|getkeys" {
            // Any word may be a command that only the server has.
            args.extend(grammar::arguments(command.name, &mut self.random).unwrap_or_default());
            return args;
        }
        let own = args.len();
        match grammar::arguments(command.name, &mut self.random) {
            Some(form) if !once_in(&mut self.random, 10) => args.extend(form),
            _ => self.by_table(command, &mut args),
        }
        match self.random.random_range(0..60) {
            0 if args.len() > own => drop(args.pop()),
            1 => args.push(words::any(&mut self.random)),
            2 if args.len() > own => {
                let at = self.random.random_range(own..args.len());
                args[at] = words::any(&mut self.random);
            }
            _ => {}
        }
        never_soon(command.name, &mut args);
        args
    }

    /// Returns the name, in lower, upper or mixed case.
    fn command_name(&mut self, name: &str) -> Vec<Vec<u8>> {
        let case = self.random.random_range(0..10);
        let spelled = |word: &str| match case {
            0 => word.to_uppercase(),
            1 => word[..1].to_uppercase() + &word[1..],
            _ => word.to_owned(),
        };
        name.split('|')
            .map(|word| spelled(word).into_bytes())
            .collect()
    }

    fn by_table(&mut self, command: CommandInfo, args: &mut Vec<Vec<u8>>) {
        let need = usize::try_from(command.arity.unsigned_abs()).unwrap_or(1);
        let more = if command.arity < 0 {
            self.random.random_range(0..3)
        } else {
            0
        };
        let (first, last, step) = command.keys;
        let len = i32::try_from(need + more).unwrap_or(1);
        let last = if last < 0 { len + last } else { last };
        for at in args.len()..need + more {
            let at = i32::try_from(at).unwrap_or(0);
            let is_key = first > 0 && at >= first && at <= last && (at - first) % step.max(1) == 0;
            args.push(match is_key {
                true => words::key(&mut self.random, 'k'),
                false => words::any(&mut self.random),
            });
        }
    }

    /// Returns a new script, or an earlier one.
    fn text(&mut self) -> Vec<u8> {
        if !self.scripts.is_empty() && once_in(&mut self.random, 3) {
            let at = self.random.random_range(0..self.scripts.len());
            return self.scripts[at].clone();
        }
        let calls: Vec<_> = (0..self.random.random_range(0..4))
            .map(|_| self.call_in_script())
            .collect();
        let script = lua::script(&mut self.random, &calls);
        if self.scripts.len() == SCRIPTS_KEPT {
            self.scripts.remove(0);
        }
        self.scripts.push(script.clone());
        script
    }

    /// Returns a call whose reply is the same on both sides to the last byte, because a script's use of it cannot be
    /// normalized.
    fn call_in_script(&mut self) -> Vec<Vec<u8>> {
        loop {
            let command = self.pick();
            let refused = command.noscript && !once_in(&mut self.random, 10);
            let whole = !command.name.contains('|') || command.name.starts_with("xgroup|");
            if !refused && !same::is_inexact(command.name) && whole {
                let mut call = self.call_of(command);
                if command.name == "xadd" {
                    settle_ids(&mut call);
                }
                return call;
            }
        }
    }

    fn script(&mut self) -> Vec<Vec<u8>> {
        let by_sha = once_in(&mut self.random, 3);
        let read_only = once_in(&mut self.random, 5);
        let name = match (by_sha, read_only) {
            (false, false) => "eval",
            (false, true) => "EVAL_RO",
            (true, false) => "EVALSHA",
            (true, true) => "evalsha_ro",
        };
        let sent = self.scripts.len();
        let body = match by_sha {
            true if sent > 0 && !once_in(&mut self.random, 20) => {
                let script = &self.scripts[self.random.random_range(0..sent)];
                HEXLOWER.encode(&Sha1::digest(script)).into_bytes()
            }
            true => words::any(&mut self.random),
            false => self.text(),
        };
        let mut args = vec![name.as_bytes().to_vec(), body];
        args.extend(lua::keys_and_argv(&mut self.random));
        args
    }
}

/// Replaces ids of XADD that come from the clock, which differ by side.
pub(super) fn settle_ids(args: &mut [Vec<u8>]) {
    for arg in args.iter_mut().filter(|arg| arg[..] == *b"*") {
        *arg = format!("{}-*", words::LATE_MS).into_bytes();
    }
}

/// Relative times below this, in seconds or milliseconds, may be over within a run.
const SOON: f64 = 90_000.0;

/// Greatest time to wait, in milliseconds.
const WAITED_MS: f64 = 10.0;

/// Milliseconds from now beyond any clock: such a wait is over at once.
const BEYOND_TIME: f64 = 9e18;

/// Replaces short times, except those of `0.00…` seconds, which are waited for.
fn never_soon(name: &str, args: &mut [Vec<u8>]) {
    if !TIMED.contains(&name) {
        return;
    }
    let of_stream = name.starts_with('x');
    for at in 1..args.len() {
        let text = String::from_utf8_lossy(&args[at]);
        let number: Option<f64> = text.trim().parse().ok();
        let soon = number.is_some_and(|n| n > 0.0 && n < SOON) && !text.starts_with("0.00");
        // Most of the numbers there are not times.
        let before = args[at - 1].to_ascii_lowercase();
        let is_time = match (of_stream, before.as_slice()) {
            (false, _) => true,
            (true, b"block") => number.is_some_and(|n| n > WAITED_MS),
            (true, b"idle") => true,
            _ => at == 4 && name.ends_with("claim"),
        };
        if soon && is_time {
            args[at] = b"0".to_vec();
        }
    }
}

/// Returns whether a blocked call ends soon by itself.
pub(super) fn ends_soon(args: &[Vec<u8>]) -> bool {
    let name = same::command_name(args);
    if name.starts_with("xread") {
        let is_block = |arg: &Vec<u8>| arg.eq_ignore_ascii_case(b"block");
        let timeout = args
            .iter()
            .position(is_block)
            .and_then(|at| args.get(at + 1));
        let text = timeout.map(|timeout| String::from_utf8_lossy(timeout));
        let ms: Option<f64> = text.and_then(|text| text.parse().ok());
        return ms.is_some_and(|ms| ms > 0.0 && (ms <= WAITED_MS || ms > BEYOND_TIME));
    }
    let timeout = if name == "blmpop" {
        args.get(1)
    } else {
        args.last()
    };
    timeout.is_some_and(|timeout| timeout.starts_with(b"0.0"))
}
