//! Changes of control, present and log.

use super::Change;

pub(super) const CONTROL: &[Change] = &[
    (
        "others_runs_taken",
        "    if not held[id] then return expires(id) <= now end\n",
        "",
    ),
    ("told_twice", "    held[id] = 'told'\n", ""),
    ("not_told", "    taken[#taken + 1] = id\n", ""),
    (
        "lost_answer_not_told_again",
        "redis.call('HSETNX', key, 'mw_stop', 'stopped_by_request') == 1",
        "true",
    ),
    (
        "reason_written_over",
        "redis.call('HSETNX', key,",
        "redis.call('HSET', key,",
    ),
    (
        "stop_without_a_trace",
        "      event(id, 'stop', ARGV[2], 'stopped_by_request')\n",
        "",
    ),
    (
        "waiting_job_left",
        "    stop(id, key, has, 'stopped_by_request', queue, now, ARGV[2])\n",
        "",
    ),
    (
        "job_of_another_status_left",
        "elseif not final(has.status) and there(key) then",
        "elseif has.status == 'dispatched' then",
    ),
    (
        "ghost_stopped",
        "not final(has.status) and there(key)",
        "not final(has.status)",
    ),
    (
        "type_taken_as_it_is_written",
        "WORK .. string.lower(has.script_type or '')",
        "WORK .. (has.script_type or '')",
    ),
    ("old_list_left", "  unlock(has.mw_lock, id)\n", ""),
    (
        "delayed_job_comes_back",
        "  redis.pcall('ZREM', DELAYED, id)\n",
        "",
    ),
    (
        "request_expires_early",
        "return since + STOP_TTL",
        "return since + STOP_TTL - 1",
    ),
    (
        "request_never_expires",
        "return expires(id) <= now end",
        "return expires(id) < 0 end",
    ),
    (
        "request_of_the_future_kept",
        "if not since or since > now then",
        "if not since then",
    ),
    (
        "time_of_an_old_request_counts",
        "redis.call('ZREMRANGEBYSCORE', STOPS, '-inf', whole(now - 10 * STOP_TTL))",
        "",
    ),
    (
        "time_of_a_request_kept",
        "      redis.call('ZREM', STOPS, id)\n",
        "",
    ),
    (
        "requests_lost",
        "      redis.call('LPUSH', queue, id)\n",
        "",
    ),
    (
        "requests_not_taken_off",
        "if #ids > 0 then redis.call('LTRIM', queue, 0, -#ids - 1) end",
        "",
    ),
    (
        "another_kind_ends_the_call",
        "redis.pcall('LRANGE', queue",
        "redis.call('LRANGE', queue",
    ),
    (
        "turn_for_all",
        "if mine then redis.call('SET', TURN, whole(now + every)) end",
        "",
    ),
    (
        "turn_too_short",
        "redis.call('SET', TURN, whole(now + every))",
        "redis.call('SET', TURN, whole(now + every / 2))",
    ),
    (
        "turn_too_long",
        "redis.call('SET', TURN, whole(now + every))",
        "redis.call('SET', TURN, whole(now + 2 * every))",
    ),
    ("turn_of_the_future_kept", " or turn > now + 10 * every", ""),
    (
        "turn_taken_from_who_has_it",
        "turn > now + 10 * every",
        "turn >= now + every",
    ),
    (
        "turn_that_is_no_number_kept",
        "not (turn > now) or",
        "turn <= now or",
    ),
    (
        "migrations_not_told",
        "redis.call('HGET', CONFIG, 'migration:' .. ARGV[a]) or ''",
        "''",
    ),
    ("due_is_a_date", "whole(math.max(0, at - now))", "whole(at)"),
    (
        "nothing_is_due",
        "return at and whole(math.max(0, at - now)) or '-1'",
        "return '-1'",
    ),
];

pub(super) const PRESENT: &[Change] = &[
    ("second_one_let_in", "then return is end", "then end"),
    (
        "owner_not_known",
        "not string.find(is, ARGV[4], 1, true) and ",
        "",
    ),
    (
        "mark_taken_for_a_pattern",
        "string.find(is, ARGV[4], 1, true)",
        "string.find(is, ARGV[4])",
    ),
    (
        "the_gone_not_written_over",
        " and is ~= ARGV[5] then",
        " then",
    ),
    (
        "the_living_written_over",
        "is ~= ARGV[5] then",
        "ARGV[5] == '' then",
    ),
    ("departed_is_there", "  redis.call('DEL', KEYS[1])\n", ""),
    (
        "departed_is_known",
        "  redis.call('ZREM', ACTORS, KEYS[1])\n",
        "",
    ),
    ("there_for_ever", ", 'EX', ARGV[3])", ")"),
    (
        "not_known",
        "redis.call('ZADD', ACTORS, whole(ends), KEYS[1])",
        "",
    ),
    (
        "known_too_short",
        "redis.call('ZADD', ACTORS, whole(ends), KEYS[1])",
        "redis.call('ZADD', ACTORS, whole(now), KEYS[1])",
    ),
    (
        "ended_ones_known",
        "{{'-inf', whole(now)}, {'(' .. whole(ends), '+inf'}}",
        "{{'(' .. whole(ends), '+inf'}}",
    ),
    (
        "entries_of_the_future_known",
        "{{'-inf', whole(now)}, {'(' .. whole(ends), '+inf'}}",
        "{{'-inf', whole(now)}}",
    ),
];

pub(super) const LOG: &[Change] = &[
    ("fence_not_checked", "has.mw_token ~= ARGV[3] or ", ""),
    (
        "status_not_checked",
        " or has.status ~= 'started' then",
        " then",
    ),
    (
        "progress_not_written",
        "redis.call('HSET', KEYS[1], 'mw_progress', ARGV[4])",
        "",
    ),
    ("progress_blanked", "if ARGV[4] ~= '' then", "if true then"),
    ("log_without_end", "'MAXLEN', '~', ARGV[5], '*'", "'*'"),
    (
        "streams_mixed_up",
        "'*', ARGV[a], ARGV[a + 1])",
        "'*', 'stdout', ARGV[a + 1])",
    ),
    (
        "kept_for_ever",
        "if #ARGV > 6 then redis.call('PEXPIRE', LOG .. ARGV[2], ARGV[6]) end",
        "",
    ),
    (
        "kept_from_the_first_line_on",
        "redis.call('PEXPIRE', LOG .. ARGV[2], ARGV[6])",
        "redis.call('PEXPIRE', LOG .. ARGV[2], ARGV[6], 'NX')",
    ),
];
