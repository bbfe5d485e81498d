//! Forms of the arguments of known commands, so that they return more than errors. A command without a form gets
//! arbitrary arguments.
//!
//! `%x` is a word of kind x (see [`super::words::word`]), `a|b` in brackets a choice, `[…]` an optional part, `{…}` a
//! part up to four times; any other text is literal.

use rand::{RngExt, rngs::StdRng};

use super::words;

const FORMS: &[(&str, &str)] = &[
    ("append", "%s %v"),
    ("auth", "[default] %v"),
    ("blmove", "%l %l (LEFT|RIGHT) (LEFT|RIGHT) (0|0.001|-1|abc)"),
    (
        "blmpop",
        "(0|0.001|-1|abc) (1 %l|2 %l %l|%n %l) (LEFT|RIGHT) [COUNT %n]",
    ),
    ("blpop", "%l {%l} (0|0|0.001|-1|abc)"),
    ("brpop", "%l {%l} (0|0|0.001|-1|abc)"),
    ("brpoplpush", "%l %l (0|0|0.001|-1)"),
    ("client|getname", ""),
    ("client|no-evict", "(ON|OFF|x)"),
    ("client|reply", "(ON|on)"),
    ("client|setname", "(name|a b|)"),
    (
        "command|getkeys",
        "(get %k|mset %k %v %k %v|ping x|nope x|set %k %v)",
    ),
    ("copy", "%k %k {(DB %D|REPLACE|%o)}"),
    ("decrby", "%s %N"),
    ("echo", "%v"),
    (
        "expire",
        "%k (%r|%r|%Q) [(NX|XX|GT|LT|NX XX|GT LT|NX GT|%o)]",
    ),
    ("expireat", "%k (%E|%E|%P|%N) [(NX|XX|GT|LT|XX GT|%o)]"),
    ("flushall", "[(ASYNC|SYNC|%o)]"),
    ("flushdb", "[(ASYNC|SYNC|%o)]"),
    (
        "getex",
        "%s [(EX %r|PX %R|EXAT %E|PXAT %M|EXAT %P|PERSIST|EX %Q|%o)]",
    ),
    ("getrange", "%s %i %i"),
    ("getset", "%s %v"),
    ("hdel", "%h %f {%f}"),
    (
        "hello",
        "[(2|3|4|x) [(SETNAME n|AUTH default x|AUTH a b|%o)]]",
    ),
    ("hincrby", "%h %f %N"),
    ("hincrbyfloat", "%h %f %d"),
    ("hmget", "%h %f {%f}"),
    ("hmset", "%h %f %v {%f %v}"),
    ("hscan", "%h 0 [(MATCH %p|COUNT %n|%o)]"),
    ("hset", "%h %f %v {%f %v}"),
    ("incrby", "%s %N"),
    ("incrbyfloat", "%s %d"),
    ("keys", "%p"),
    ("lindex", "%l %i"),
    ("linsert", "%l (BEFORE|AFTER|x) %v %v"),
    ("lmove", "%l %l (LEFT|RIGHT|x) (LEFT|RIGHT)"),
    (
        "lmpop",
        "(1 %l|2 %l %l|3 %l %l|%n %l) (LEFT|RIGHT|x) [COUNT %n]",
    ),
    ("lpop", "%l [%n]"),
    ("lpos", "%l %v {(RANK %i|COUNT %n|MAXLEN %n|%o)}"),
    ("lpush", "%l %v {%v}"),
    ("lpushx", "%l %v {%v}"),
    ("lrange", "%l %i %i"),
    ("lrem", "%l %i %v"),
    ("lset", "%l %i %v"),
    ("ltrim", "%l %i %i"),
    ("memory|usage", "%k [SAMPLES %n]"),
    ("mset", "%s %v {%s %v}"),
    ("msetnx", "%s %v {%s %v}"),
    ("pexpire", "%k (%R|%R|%Q) [(NX|XX|GT|LT|XX LT|%o)]"),
    ("pexpireat", "%k (%M|%M|%P|%N) [(NX|XX|GT|LT|%o)]"),
    ("ping", "[%v]"),
    ("psetex", "%s (%R|%Q) %v"),
    ("psubscribe", "%p {%c}"),
    ("publish", "%c %v"),
    ("pubsub|channels", "[%p]"),
    ("pubsub|numsub", "{%c}"),
    ("punsubscribe", "{%c}"),
    ("rename", "%k %k"),
    ("renamenx", "%k %k"),
    ("rpop", "%l [%n]"),
    ("rpush", "%l %v {%v}"),
    ("rpushx", "%l %v {%v}"),
    ("sadd", "%t %f {%f}"),
    ("scan", "0 {(MATCH %p|COUNT %n|TYPE %T|%o)}"),
    (
        "script|exists",
        "(e0e1f9fabfc9d4800c877a703b823ac0578ff8db|x) {%v}",
    ),
    ("script|flush", "[(SYNC|ASYNC|x)]"),
    ("select", "(0|0|1|2|%D|%N)"),
    (
        "set",
        "%s %v {(NX|XX|GET|KEEPTTL|EX %r|PX %R|EXAT %E|PXAT %M|PXAT %P|EX %Q|%o)}",
    ),
    ("setex", "%s (%r|%Q) %v"),
    ("setrange", "%s (0|1|5|20|-1|%n) %v"),
    ("smismember", "%t %f {%f}"),
    ("smove", "%t %t %f"),
    ("spop", "%t [%n]"),
    ("spublish", "%c %v"),
    ("srandmember", "%t [(%n|-3|-5)]"),
    ("srem", "%t %f {%f}"),
    ("sscan", "%t 0 [(MATCH %p|COUNT %n|%o)]"),
    ("ssubscribe", "%c {%c}"),
    ("subscribe", "%c {%c}"),
    ("wait", "0 (0|1|-1|x)"),
    ("watch", "%k {%k}"),
    ("xack", "%q %g %I {%I}"),
    (
        "xadd",
        "%q [NOMKSTREAM] [(MAXLEN|MAXLEN =|MAXLEN ~|MINID|MINID ~) (%n|%I) [LIMIT %n]] %a %f %v {%f %v}",
    ),
    (
        "xautoclaim",
        "%q %g %w %m (0|-|%I) [COUNT (1|2|%n)] [JUSTID]",
    ),
    (
        "xclaim",
        "%q %g %w %m %I {%I} [FORCE] {(IDLE %m|TIME 5|TIME %N|RETRYCOUNT %n|FORCE|JUSTID|JUSTID|LASTID %I)}",
    ),
    ("xdel", "%q %I {%I}"),
    (
        "xgroup|create",
        "%q %g ($|0|%I) [(MKSTREAM|MKSTREAM|ENTRIESREAD %n|MKSTREAM ENTRIESREAD 3|%o)]",
    ),
    ("xgroup|createconsumer", "%q %g %w"),
    ("xgroup|delconsumer", "%q %g %w"),
    ("xgroup|destroy", "%q %g"),
    ("xgroup|setid", "%q %g ($|0|%I) [(ENTRIESREAD %n|%o)]"),
    ("xinfo|consumers", "%q %g"),
    ("xinfo|groups", "%q"),
    ("xinfo|stream", "%q [(FULL|FULL COUNT %n|%o)]"),
    ("xpending", "%q %g [([IDLE %m] (-|%I) (+|%I) (10|%n) [%w])]"),
    ("xrange", "%q (-|%I) (+|%I) [COUNT %n]"),
    (
        "xread",
        "[COUNT %n] [BLOCK (0|0|1|-1|x)] STREAMS (%q ($|0|%I)|%q %q ($|0|%I) ($|%I)|%q)",
    ),
    (
        "xreadgroup",
        "GROUP %g %w [COUNT %n] [BLOCK (0|0|1)] [NOACK] STREAMS (%q >|%q >|%q 0|%q %q > >|%q %I|%q %q > 0)",
    ),
    ("xrevrange", "%q (+|%I) (-|%I) [COUNT %n]"),
    (
        "xsetid",
        "%q %I [(ENTRIESADDED %n|MAXDELETEDID %I|ENTRIESADDED 200 MAXDELETEDID %I|%o)]",
    ),
    (
        "xtrim",
        "%q (MAXLEN|MAXLEN =|MAXLEN ~|MINID|MINID =|MINID ~) (%n|100|%I) [LIMIT (%n|100|200)]",
    ),
    ("zadd", "%z {(NX|XX|GT|LT|CH|INCR)} %S %f {%S %f}"),
    ("zcount", "%z %b %b"),
    ("zincrby", "%z %d %f"),
    ("zlexcount", "%z %x %x"),
    ("zmscore", "%z %f {%f}"),
    ("zpopmax", "%z [%n]"),
    ("zpopmin", "%z [%n]"),
    (
        "zrange",
        "%z (%i %i|%b %b BYSCORE|%x %x BYLEX) [REV] [LIMIT %i %i] [WITHSCORES]",
    ),
    ("zrangebylex", "%z %x %x [LIMIT %i %i]"),
    ("zrangebyscore", "%z %b %b [WITHSCORES] [LIMIT %i %i]"),
    ("zremrangebylex", "%z %x %x"),
    ("zremrangebyrank", "%z %i %i"),
    ("zremrangebyscore", "%z %b %b"),
    ("zrevrange", "%z %i %i [WITHSCORES]"),
    ("zrevrangebylex", "%z %x %x [LIMIT %i %i]"),
    ("zrevrangebyscore", "%z %b %b [WITHSCORES] [LIMIT %i %i]"),
    ("zscan", "%z 0 [(MATCH %p|COUNT %n|%o)]"),
];

/// Greatest number of repetitions of a part in braces.
const REPEAT_MAX: u32 = 4;

/// Returns arguments by the form of a command, if it has one.
pub(super) fn arguments(name: &str, random: &mut StdRng) -> Option<Vec<Vec<u8>>> {
    let form = FORMS.iter().find(|(known, _)| *known == name)?.1;
    let mut args = Vec::new();
    expand(form, random, &mut args);
    Some(args)
}

fn expand(form: &str, random: &mut StdRng, args: &mut Vec<Vec<u8>>) {
    let mut rest = form;
    while let Some(first) = rest.chars().next() {
        match first {
            ' ' => rest = &rest[1..],
            '(' | '[' | '{' => {
                let (inner, after) = bracketed(rest);
                rest = after;
                let times = match first {
                    '(' => 1,
                    '[' => random.random_range(0..2),
                    _ => random.random_range(0..REPEAT_MAX),
                };
                for _ in 0..times {
                    let choices = alternatives(inner);
                    let choice = choices[random.random_range(0..choices.len())];
                    if choice.contains(['%', '(', '[', '{']) || is_words(choice) {
                        expand(choice, random, args);
                    } else {
                        args.push(choice.as_bytes().to_vec());
                    }
                }
            }
            '%' => {
                let kind = rest.chars().nth(1).unwrap_or('v');
                args.push(words::word(random, kind));
                rest = &rest[1 + kind.len_utf8()..];
            }
            _ => {
                let end = rest.find(' ').unwrap_or(rest.len());
                args.push(rest.as_bytes()[..end].to_vec());
                rest = &rest[end..];
            }
        }
    }
}

/// Returns whether an alternative is several options (`NX XX`) and not one argument with a space.
fn is_words(choice: &str) -> bool {
    choice.contains(' ') && choice.chars().all(|c| c.is_ascii_uppercase() || c == ' ')
        || ["AUTH ", "SETNAME ", "ping ", "nope "]
            .iter()
            .any(|head| choice.starts_with(head))
}

/// Splits `form` into the content of the brackets at its start and the rest.
fn bracketed(form: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, c) in form.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&form[1..at], &form[at + 1..]);
        }
    }
    panic!("a form with an open bracket: {form}");
}

fn alternatives(inner: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut start = 0;
    let mut found = Vec::new();
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '|' if depth == 0 => {
                found.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&inner[start..]);
    found
}
