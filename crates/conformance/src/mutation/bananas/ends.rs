//! Changes of what ends jobs of Bananas, and of what brings them back.

use super::Change;

pub(super) const FINISH: &[Change] = &[
    (
        "value_before_not_forgotten",
        "  redis.pcall('HDEL', key, 'result', 'error')\n",
        "",
    ),
    (
        "value_not_written",
        "    if name then redis.call('HSET', key, name, value) end\n",
        "",
    ),
    (
        "result_without_end",
        "    redis.call('PEXPIRE', key, good and RESULT_FOR or FAILURE_FOR)\n",
        "",
    ),
    (
        "always_failed",
        "good and 'completed' or 'failed'",
        "'failed'",
    ),
    (
        "stays_as_long_as_a_failure",
        "good and RESULT_FOR or FAILURE_FOR",
        "FAILURE_FOR",
    ),
    (
        "end_not_dated",
        "'completed_at', at,\n    'duration_ms', duration)",
        "'duration_ms', duration)",
    ),
    (
        "end_dated_with_fractions",
        "string.sub(iso(now), 1, 19)",
        "string.sub(iso(now), 1, 23)",
    ),
    (
        "duration_not_written",
        ",\n    'duration_ms', duration)",
        ")",
    ),
    (
        "result_of_another_kind_ends_all",
        "local set = redis.pcall('HSET'",
        "local set = redis.call('HSET'",
    ),
    (
        "result_of_another_kind_gets_an_end",
        "if type(set) == 'number' then",
        "redis.call('PEXPIRE', key, 1)\n  if type(set) == 'number' then",
    ),
    (
        "token_not_checked",
        "if mark ~= token then",
        "if false then",
    ),
    (
        "digest_not_checked",
        "if digest(look(id)) ~= seen then",
        "if false then",
    ),
    (
        "the_next_without_an_id_is_done_too",
        "    ended = nil\n",
        "",
    ),
    (
        "a_job_without_an_id_never_ends",
        "if id ~= '' then return 'changed' end",
        "return 'changed'",
    ),
    (
        "lease_not_ended",
        "  redis.call('ZREM', LEASES, hold)\n",
        "",
    ),
    (
        "holder_not_forgotten",
        "  redis.call('HDEL', HELD, hold)\n",
        "",
    ),
    (
        "still_among_those_that_run",
        "  redis.pcall('LREM', PROCESSING, 1, id or hold)\n",
        "",
    ),
    (
        "anothers_place_removed_too",
        "redis.pcall('LREM', PROCESSING, 1, id or hold)",
        "redis.pcall('LREM', PROCESSING, 0, id or hold)",
    ),
    (
        "losses_not_forgotten",
        "  let_go(hold, list, id)\n  redis.call('DEL', LOST .. id)",
        "  let_go(hold, list, id)",
    ),
    (
        "slot_not_freed",
        "  if list then redis.pcall('ZREM', SLOTS .. route_of(list), hold) end\n",
        "",
    ),
    (
        "slots_of_another_kind_end_all",
        "redis.pcall('ZREM', SLOTS",
        "redis.call('ZREM', SLOTS",
    ),
    ("not_counted", "  count(list, 'finished', n)\n", ""),
    (
        "time_not_counted",
        "  count(list, 'run_ms', whole(ms_of[list]))\n",
        "",
    ),
    (
        "one_counted_for_each_list",
        "(ended_of[list] or 0) + 1",
        "1",
    ),
    (
        "time_of_the_last_counted",
        "(ms_of[list] or 0) + tonumber(took)",
        "tonumber(took)",
    ),
    (
        "only_the_first",
        "for k = 1, tonumber(ARGV[2]) do",
        "for k = 1, 1 do",
    ),
    (
        "the_next_begins_elsewhere",
        "  a = after\n",
        "  a = after - 1\n",
    ),
    (
        "record_not_written",
        "if ended then redis.call('SET', JOB .. id, ended, 'PX', COMPLETED_FOR) end",
        "",
    ),
    (
        "record_without_end",
        ", ended, 'PX', COMPLETED_FOR)",
        ", ended)",
    ),
    (
        "deleted_record_comes_back",
        "if times < 0 then return nil, a + 1 end",
        "if times < 0 then return '', a + 1 end",
    ),
    (
        "no_value_is_a_value",
        "if result == '' then tell(id, now, took) else",
        "if false then return else",
    ),
    (
        "time_is_anothers",
        "now + tonumber(ARGV[i])",
        "now + 1 + tonumber(ARGV[i])",
    ),
];

pub(super) const FAIL: &[Change] = &[
    (
        "value_before_not_forgotten",
        "  redis.pcall('HDEL', key, 'result', 'error')\n",
        "",
    ),
    (
        "value_not_written",
        "    if name then redis.call('HSET', key, name, value) end\n",
        "",
    ),
    (
        "always_completed",
        "good and 'completed' or 'failed'",
        "'completed'",
    ),
    (
        "stays_as_long_as_a_success",
        "good and RESULT_FOR or FAILURE_FOR",
        "RESULT_FOR",
    ),
    (
        "token_not_checked",
        "if token ~= ARGV[3] then",
        "if false then",
    ),
    (
        "digest_not_checked",
        "if digest(state, record) ~= ARGV[4] then",
        "if false then",
    ),
    (
        "the_next_without_an_id_is_written_over",
        "pause, failed, told = -1, nil, 'dead'",
        "pause, told = -1, 'dead'",
    ),
    (
        "the_next_without_an_id_runs_later",
        "pause, failed, told = -1, nil, 'dead'",
        "failed, told = record, 'dead'",
    ),
    (
        "dead_without_an_id_not_told",
        "pause, failed, told = -1, nil, 'dead'",
        "pause, failed = -1, nil",
    ),
    ("no_other_run", "if pause >= 0 then", "if false then"),
    (
        "does_not_wait",
        "  redis.call('ZADD', SCHEDULED, string.format('%.3f', (now + pause) / 1000), id)\n",
        "",
    ),
    ("waits_no_pause", "(now + pause) / 1000", "now / 1000"),
    (
        "waits_in_milliseconds",
        "(now + pause) / 1000",
        "now + pause",
    ),
    (
        "record_of_a_retry_not_written",
        "  redis.call('SET', JOB .. id, failed)\n",
        "",
    ),
    (
        "record_before_the_set",
        "  redis.call('ZADD', SCHEDULED",
        "  redis.call('SET', JOB .. id, failed)\n  redis.call('ZADD', SCHEDULED",
    ),
    (
        "not_among_the_dead",
        "  redis.pcall('LPUSH', DEAD, id)\n",
        "",
    ),
    (
        "dead_at_the_wrong_end",
        "redis.pcall('LPUSH', DEAD, id)",
        "redis.pcall('RPUSH', DEAD, id)",
    ),
    (
        "dead_of_another_kind_end_all",
        "redis.pcall('LPUSH', DEAD, id)",
        "redis.call('LPUSH', DEAD, id)",
    ),
    (
        "record_of_the_dead_not_written",
        "  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end\n",
        "",
    ),
    (
        "record_of_the_dead_without_end",
        ", record, 'PX', DEAD_FOR)",
        ", record)",
    ),
    (
        "losses_not_forgotten",
        "  redis.call('DEL', LOST .. id)\n",
        "",
    ),
    (
        "nobody_told",
        "tell(id, now, ARGV[5], 'error', ARGV[6])\n",
        "",
    ),
    (
        "lease_not_ended",
        "tell(id, now, ARGV[5], 'error', ARGV[6])\nlet_go(hold, list, id)",
        "tell(id, now, ARGV[5], 'error', ARGV[6])",
    ),
    (
        "slot_not_freed",
        "'error', ARGV[6])\nlet_go(hold, list, id)",
        "'error', ARGV[6])\nlet_go(hold, nil, id)",
    ),
    ("retry_not_counted", "  count(list, 'retried')\n", ""),
    ("failure_not_counted", "  count(list, 'failed')\n", ""),
    ("dead_not_counted", "  count(list, 'dead')\n", ""),
    ("time_not_counted", "count(list, 'run_ms', ARGV[5])\n", ""),
];

pub(super) const DUE: &[Change] = &[
    (
        "everything_is_due",
        "SCHEDULED, '-inf', at",
        "SCHEDULED, '-inf', '+inf'",
    ),
    (
        "whole_seconds_only",
        "string.format('%.3f', now / 1000)",
        "string.format('%.0f', now / 1000)",
    ),
    ("unbounded", "'LIMIT', 0, ARGV[2]", "'LIMIT', 0, 0"),
    (
        "the_next_is_not_told",
        "next[2] and whole(",
        "next[9] and whole(",
    ),
    (
        "the_next_is_one_that_is_due",
        "'(' .. at, '+inf'",
        "'-inf', '+inf'",
    ),
    (
        "next_in_seconds",
        "tonumber(next[2]) * 1000 - now",
        "tonumber(next[2]) - now / 1000",
    ),
];

pub(super) const PROMOTE: &[Change] = &[
    ("record_not_looked_at", " and digest(look(id)) == seen", ""),
    (
        "not_pushed",
        "type(redis.pcall('LPUSH', KEYS[k], id)) == 'number'",
        "true",
    ),
    (
        "pushed_as_the_next",
        "redis.pcall('LPUSH', KEYS[k], id)",
        "redis.pcall('RPUSH', KEYS[k], id)",
    ),
    (
        "time_not_checked",
        "redis.call('ZSCORE', SCHEDULED, id) == time and",
        "",
    ),
    (
        "no_list_ends_all",
        "type(redis.pcall('LPUSH', KEYS[k], id))",
        "type(redis.call('LPUSH', KEYS[k], id))",
    ),
    (
        "record_written_without_a_push",
        "if there and record then",
        "if record then",
    ),
    (
        "record_not_written",
        "    if there and record then redis.call('SET', JOB .. id, record) end\n",
        "",
    ),
    ("still_waits", "    redis.call('ZREM', SCHEDULED, id)\n", ""),
    ("not_told", "    done[#done + 1] = k\n", ""),
    (
        "nobody_is_told_of_the_dead",
        "    tell(id, now, 0, 'error', why)\n",
        "",
    ),
    ("not_buried", "    bury(id, record, KEYS[k])\n", ""),
    ("dead_not_counted", "  count(list, 'dead')\n", ""),
];

pub(super) const STRAYS: &[Change] = &[
    (
        "without_an_id_too",
        "if id ~= '' and not here",
        "if not here",
    ),
    (
        "what_ours_run_too",
        "redis.call('HEXISTS', HELD, id) == 0",
        "true",
    ),
    (
        "not_noted",
        "redis.call('ZADD', SEEN, whole(now), id)",
        "redis.call('EXISTS', SEEN)",
    ),
    ("found_at_once", "since + age <= now", "true"),
    ("never_found", "since + age <= now", "false"),
    (
        "not_forgotten",
        "if not here[id] then redis.call('ZREM', SEEN, id) end",
        "",
    ),
    ("forgotten_at_once", "if not here[id] then", "if true then"),
];

pub(super) const ADOPT: &[Change] = &[
    (
        "what_ours_run_too",
        " or redis.call('HEXISTS', HELD, id) == 1",
        "",
    ),
    (
        "age_not_checked",
        "not since or since + tonumber(ARGV[3]) > now or",
        "not since or",
    ),
    ("not_pushed", "redis.call('RPUSH', KEYS[1], id)\n", ""),
    (
        "as_the_last",
        "redis.call('RPUSH', KEYS[1], id)",
        "redis.call('LPUSH', KEYS[1], id)",
    ),
    (
        "still_among_those_that_run",
        "redis.call('LREM', PROCESSING, -1, id) == 0",
        "false",
    ),
    ("still_noted", "redis.call('ZREM', SEEN, id)\n", ""),
    (
        "list_not_looked_at_first",
        "redis.call('LLEN', KEYS[1])",
        "",
    ),
    ("not_told", "return 1", "return 0"),
];
