//! Changes of what becomes of dead letters of Bananas.

use super::Change;

pub(super) const REPLAY: &[Change] = &[
    (
        "no_dead_letter_needed",
        "if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end\n",
        "",
    ),
    (
        "record_not_compared",
        "if digest(state, record) ~= ARGV[3] then",
        "if false then",
    ),
    (
        "what_it_is_now_not_told",
        "return {'changed', state, record}",
        "return {'changed', 'missing', ''}",
    ),
    (
        "as_the_next",
        "redis.call('LPUSH', KEYS[1], id)",
        "redis.call('RPUSH', KEYS[1], id)",
    ),
    ("not_pushed", "redis.call('LPUSH', KEYS[1], id)\n", ""),
    (
        "pushed_to_no_list",
        "redis.call('LPUSH', KEYS[1], id)",
        "redis.pcall('LPUSH', KEYS[1], id)",
    ),
    (
        "record_not_written",
        "redis.call('SET', JOB .. id, (drafted(4, now)))\n",
        "",
    ),
    (
        "record_still_ends",
        "(drafted(4, now)))",
        "(drafted(4, now)), 'KEEPTTL')",
    ),
    (
        "still_a_dead_letter",
        "redis.call('LREM', DEAD, 0, id)\n",
        "",
    ),
    (
        "one_of_two_stays",
        "redis.call('LREM', DEAD, 0, id)",
        "redis.call('LREM', DEAD, 1, id)",
    ),
    ("result_stays", "redis.call('DEL', RESULT .. id)\n", ""),
];

pub(super) const FORGET: &[Change] = &[
    (
        "no_dead_letter_needed",
        "if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end\n",
        "",
    ),
    (
        "record_not_compared",
        "if digest(state, record) ~= ARGV[3] then",
        "if false then",
    ),
    (
        "what_it_is_now_not_told",
        "return {'changed', state, record}",
        "return {'changed', 'missing', ''}",
    ),
    (
        "one_that_runs_again_too",
        "if ARGV[3] ~= '' then",
        "if true then",
    ),
    (
        "record_stays",
        "'DEL', JOB .. id, RESULT .. id",
        "'DEL', RESULT .. id",
    ),
    (
        "result_stays",
        "'DEL', JOB .. id, RESULT .. id",
        "'DEL', JOB .. id",
    ),
    (
        "still_a_dead_letter",
        "redis.call('LREM', DEAD, 0, id)\n",
        "",
    ),
    (
        "one_of_two_stays",
        "redis.call('LREM', DEAD, 0, id)",
        "redis.call('LREM', DEAD, 1, id)",
    ),
];
