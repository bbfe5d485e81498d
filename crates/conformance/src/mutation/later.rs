//! Changes of promote and settle, and of how ended jobs and their dependants are told.

use super::Change;

pub(super) const PROMOTE: &[Change] = &[
    (
        "promoted_early",
        "DELAYED, '-inf', whole(now)",
        "DELAYED, '-inf', '+inf'",
    ),
    (
        "promoted_late",
        "DELAYED, '-inf', whole(now)",
        "DELAYED, '-inf', '(' .. whole(now)",
    ),
    (
        "bound_removed",
        "'LIMIT', 0, most)\nfor",
        "'LIMIT', 0, 100000)\nfor",
    ),
    ("still_delayed", "redis.call('ZREM', DELAYED, id)", ""),
    (
        "status_not_checked",
        "if has.status == 'dispatched' and has.mw_queue then",
        "if has.mw_queue then",
    ),
    (
        "job_without_a_queue_ends",
        "if has.status == 'dispatched' and has.mw_queue then",
        "if has.status == 'dispatched' then",
    ),
    (
        "id_not_pushed",
        "deliver('LPUSH', id, key, has, has.mw_queue, now, true)",
        "",
    ),
    (
        "pushed_to_the_wrong_end",
        "deliver('LPUSH', id, key, has",
        "deliver('RPUSH', id, key, has",
    ),
    (
        "a_list_like_a_job_ends_the_call",
        "redis.pcall('HMGET', key, ...)",
        "redis.call('HMGET', key, ...)",
    ),
    (
        "a_key_like_a_queue_ends_the_call",
        "return type(redis.pcall(how, list, id)) == 'number'",
        "return type(redis.call(how, list, id)) == 'number'",
    ),
    (
        "number_not_told",
        "done({looked, soonest",
        "done({0, soonest",
    ),
    (
        "next_never_told",
        "return at and whole(math.max(0, at - now)) or '-1'",
        "return '-1'",
    ),
    (
        "next_told_as_a_time",
        "whole(math.max(0, at - now))",
        "whole(at)",
    ),
    (
        "next_in_the_past",
        "whole(math.max(0, at - now))",
        "whole(at - now)",
    ),
    (
        "fallback_forgotten",
        "    mind(id, key, now)\n    return true",
        "    return true",
    ),
];

pub(super) const SETTLE: &[Change] = &[
    (
        "nothing_told",
        "if final(status) then told = told + advance(id, status == 'finished', now, most - told + 1) end",
        "",
    ),
    (
        "all_told_of_a_failure",
        "advance(id, status == 'finished', now, most",
        "advance(id, false, now, most",
    ),
    (
        "all_told_of_a_result",
        "advance(id, status == 'finished', now, most",
        "advance(id, true, now, most",
    ),
    ("bound_removed", "now, most - told + 1)", "now, 1000000)"),
    ("told_not_counted", "told = told + advance(", "advance("),
    ("ends_not_counted", "  told = told + 1\n", ""),
    (
        "unfinished_job_told_of",
        "if final(status) then told",
        "if true then told",
    ),
    (
        "missing_job_not_told_of",
        "if not there(JOB .. id) then status = gone and 'finished' or 'error' end",
        "",
    ),
    (
        "gone_job_told_as_failed",
        "gone and 'finished' or 'error'",
        "'error'",
    ),
    (
        "more_never_told",
        "done({told, redis.call('EXISTS', SETTLE)})",
        "done({told, 0})",
    ),
    (
        "more_always_told",
        "if not id then return done({told, 0}) end",
        "if not id then return done({told, 1}) end",
    ),
];

pub(super) const ENDS: &[Change] = &[
    ("not_among_the_ended", "    keep(id, now)\n", ""),
    (
        "ended_at_no_time",
        "kept[#kept + 1] = whole(now)",
        "kept[#kept + 1] = 0",
    ),
    (
        "among_the_dead",
        "    keep(id, now)\n",
        "    redis.pcall('ZADD', DEAD, whole(now), id)\n",
    ),
    (
        "a_key_like_the_ended_ends_the_call",
        "redis.pcall('ZADD', ENDED",
        "redis.call('ZADD', ENDED",
    ),
    ("reply_forgotten", "  reply(has, id, payload)\n", ""),
    ("end_not_told", "  event(id, status, by, dead)\n", ""),
    (
        "dependants_not_told",
        "else advance(id, status == 'finished', now, MOST_TOLD) end",
        "end",
    ),
    (
        "all_dependants_in_one_call",
        "local MOST_TOLD = 100",
        "local MOST_TOLD = 1000000",
    ),
];

pub(super) const OWE: &[Change] = &[
    (
        "rest_owed_as_failed",
        "then owe(id, finished) end",
        "then owe(id, false) end",
    ),
    (
        "a_key_like_the_owed_ends_the_call",
        "redis.pcall('LPUSH', SETTLE,",
        "redis.call('LPUSH', SETTLE,",
    ),
];

/// Of a result.
pub(super) const ADVANCE: &[Change] = &[
    (
        "a_key_like_a_list_of_dependants_ends_the_call",
        "redis.pcall('LPOP', NEXT",
        "redis.call('LPOP', NEXT",
    ),
    (
        "told_of_nothing",
        "if has.status == 'dispatched' and from then",
        "if false then",
    ),
    (
        "ready_although_others_are_open",
        "      elseif string.find(left, '\"', 1, true) then\n        redis.call('HSET', key, 'mw_waiting', left)\n",
        "",
    ),
    (
        "what_is_open_not_written",
        "redis.call('HSET', key, 'mw_waiting', left)",
        "",
    ),
    (
        "still_waiting",
        "redis.call('HDEL', key, 'mw_waiting', 'mw_expires')\n        redis",
        "redis",
    ),
    (
        "change_not_dated",
        "redis.call('HSET', key, 'updated_at', iso(now))",
        "",
    ),
    (
        "still_watched",
        "        redis.pcall('ZREM', WATCH, child)\n",
        "",
    ),
    ("not_told", "event(child, 'ready', id)", ""),
    (
        "not_queued",
        "local _, stands = deliver('LPUSH', child, key, has, has.mw_queue, now, true)",
        "local stands = true",
    ),
    (
        "queued_first",
        "deliver('LPUSH', child, key",
        "deliver('RPUSH', child, key",
    ),
    (
        "not_on_the_old_list",
        "double(child, key, has.mw_queue, has.script_type, worker_of(has), now)",
        "",
    ),
    (
        "rest_forgotten",
        "  if redis.call('EXISTS', NEXT .. id) == 1 then owe(id, finished) end\n",
        "",
    ),
];

/// Of a failure, and of what cannot be queued.
pub(super) const ADVANCE_FAILED: &[Change] = &[
    (
        "others_told",
        "if has.status == 'dispatched' and from then",
        "if has.status == 'dispatched' and has.mw_waiting then from = from or 1 to = to or 0",
    ),
    (
        "failure_ignored",
        "if not finished and has.mw_on_failure ~= 'continue' then",
        "if false then",
    ),
    (
        "failure_always_matters",
        "if not finished and has.mw_on_failure ~= 'continue' then",
        "if not finished then",
    ),
    (
        "dead_letter_for_another",
        "' did not finish', now, nil, id, true,",
        "' did not finish', now, 'failed', id, true,",
    ),
    (
        "which_failed_not_told",
        "' did not finish', now, nil, id, true,",
        "' did not finish', now, nil, '', true,",
    ),
    (
        "still_waiting",
        "redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token'",
        "redis.call('HDEL', key, 'mw_token'",
    ),
    (
        "still_watched",
        "  unwatch(id)\n  redis.call('HDEL', key, 'mw_waiting'",
        "  redis.call('HDEL', key, 'mw_waiting'",
    ),
    (
        "its_own_dependants_not_told",
        "if later then owe(id, status == 'finished')",
        "if later then",
    ),
    (
        "no_dead_letter",
        "    redis.call('HSET', key, 'mw_dead', dead)\n",
        "",
    ),
    (
        "a_key_like_a_queue_ends_the_call",
        "return type(redis.pcall(how, list, id)) == 'number'",
        "return type(redis.call(how, list, id)) == 'number'",
    ),
    (
        "a_spoilt_queue_is_no_end",
        "  fault(id, key, has, why, now, 'queue', '', later, 'queue')\n",
        "",
    ),
    (
        "a_spoilt_queue_is_no_reason",
        "why, now, 'queue', '', later,",
        "why, now, nil, '', later,",
    ),
    (
        "fallback_forgotten",
        "    mind(id, key, now)\n    return true",
        "    return true",
    ),
    (
        "nobody_looks_after_it",
        "  if redis.call('HEXISTS', key, 'mw_fallback') == 0 then return end\n",
        "  if true then return end\n",
    ),
    (
        "everybody_looked_after",
        "  if redis.call('HEXISTS', key, 'mw_fallback') == 0 then return end\n",
        "",
    ),
    (
        "looked_after_at_once",
        "whole(now + LOOK_EVERY)",
        "whole(now)",
    ),
];
