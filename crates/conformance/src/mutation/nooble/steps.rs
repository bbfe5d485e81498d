//! Changes of what lets an orchestrator go on where another one was.

use super::Change;

pub(super) const STEP: &[Change] = &[
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "not_sent_to_a_list",
        "redis.call('LPUSH', KEYS[2], message)",
        "",
    ),
    (
        "sent_as_the_next_one",
        "redis.call('LPUSH', KEYS[2], message)",
        "redis.call('RPUSH', KEYS[2], message)",
    ),
    (
        "not_sent_to_a_stream",
        "redis.call('XADD', KEYS[2], '*', 'data', message)",
        "redis.call('EXISTS', KEYS[2])",
    ),
    (
        "asked_once_for_all_times",
        "'asked ' .. ARGV[3], whole(now))",
        "'asked ' .. ARGV[3], redis.call('HGET', KEYS[1], 'asked ' .. ARGV[3]) or whole(now))",
    ),
    (
        "kept_for_ever",
        "  redis.call('PEXPIRE', KEYS[1], ARGV[6])\n",
        "",
    ),
    (
        "what_is_answered_is_asked",
        "if has[3] then return {'answered', has[1], 0, has[3]} end",
        "if has[3] and ARGV[5] == '-1' then return {'answered', has[1], 0, has[3]} end",
    ),
    (
        "every_look_asks",
        "if after < 0 or since < after then",
        "if false then",
    ),
    (
        "asked_again_at_once",
        "if after < 0 or since < after then",
        "if after < 0 then",
    ),
    (
        "never_asked_again",
        "if after < 0 or since < after then",
        "if true then",
    ),
    (
        "asked_in_other_words",
        "  send(has[1])\n",
        "  send(ARGV[4])\n",
    ),
    (
        "what_was_asked_is_not_told",
        "return {'waits', has[1], since, ''}",
        "return {'waits', ARGV[4], since, ''}",
    ),
    (
        "steps_without_end",
        "tonumber(has[4] or 0) >= tonumber(ARGV[7]) or ",
        "",
    ),
    (
        "bytes_without_end",
        " or tonumber(has[5] or 0) + #ARGV[4] > tonumber(ARGV[8])",
        "",
    ),
    (
        "steps_not_counted",
        "redis.call('HINCRBY', KEYS[1], 'steps', 1)\n",
        "",
    ),
    (
        "bytes_not_counted",
        "redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[4])\n",
        "redis.call('HINCRBY', KEYS[1], 'bytes', 0)\n",
    ),
    (
        "all_steps_are_one",
        "redis.call('HSET', KEYS[1], 'message ' .. ARGV[3], ARGV[4])",
        "redis.call('HSET', KEYS[1], 'message b', ARGV[4], 'message ' .. ARGV[3], ARGV[4], 'asked b', whole(now))",
    ),
];

pub(super) const KEEP_ANSWER: &[Change] = &[
    (
        "kept_for_nothing",
        "if not has[1] then return {'gone', ''} end",
        "",
    ),
    (
        "answers_without_end",
        "if not has[2] and tonumber(has[3]) + #ARGV[2] > tonumber(ARGV[4]) then return {'full', ''} end",
        "",
    ),
    (
        "what_is_kept_needs_room",
        "if not has[2] and tonumber(has[3])",
        "if tonumber(has[3])",
    ),
    (
        "the_last_answer_counts",
        "if not has[2] then",
        "if true then",
    ),
    (
        "told_what_came",
        "return {'kept', has[2] or ARGV[2]}",
        "return {'kept', ARGV[2]}",
    ),
    (
        "answers_not_counted",
        "redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[2])",
        "redis.call('HINCRBY', KEYS[1], 'bytes', 0)",
    ),
    (
        "not_kept_anew",
        "  redis.call('PEXPIRE', KEYS[1], ARGV[3])\n",
        "",
    ),
    ("the_list_stays", "redis.call('DEL', KEYS[2])\n", ""),
];
