//! Changes of finish and fail.

use super::Change;

pub(super) const FINISH: &[Change] = &[
    (
        "fence_not_checked",
        "if has.mw_token ~= ARGV[3] then return 'stale' end",
        "",
    ),
    (
        "status_not_checked",
        "if has.status ~= 'started' then return 'stale' end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has.status == 'finished' then return 'finished' end",
        "",
    ),
    (
        "repeated_report_written",
        "if has.status == 'finished' then return 'finished' end\nif has.status ~= 'started' then",
        "if has.status ~= 'started' and has.status ~= 'finished' then",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', LEASES, ARGV[2])",
        "",
    ),
    (
        "status_not_written",
        "KEYS[1], 'status', 'finished', 'output'",
        "KEYS[1], 'output'",
    ),
    ("output_not_written", ", 'output', ARGV[4],", ","),
    (
        "change_not_dated",
        ", 'output', ARGV[4], 'updated_at', iso(now))",
        ", 'output', ARGV[4])",
    ),
    (
        "old_error_kept",
        "'HDEL', KEYS[1], 'error', ",
        "'HDEL', KEYS[1], ",
    ),
    (
        "old_traceback_kept",
        "'mw_traceback', 'mw_stdout'",
        "'mw_stdout'",
    ),
    (
        "old_stdout_kept",
        "'mw_stdout', 'mw_stderr', 'mw_stop')",
        "'mw_stderr', 'mw_stop')",
    ),
    (
        "old_stderr_kept",
        "'mw_stdout', 'mw_stderr', 'mw_stop')",
        "'mw_stdout', 'mw_stop')",
    ),
    (
        "request_to_stop_kept",
        "'mw_stderr', 'mw_stop')",
        "'mw_stderr')",
    ),
    (
        "stdout_not_kept",
        "redis.call('HSET', KEYS[1], 'mw_stdout', ARGV[5])",
        "",
    ),
    (
        "stderr_not_kept",
        "redis.call('HSET', KEYS[1], 'mw_stderr', ARGV[6])",
        "",
    ),
    ("empty_stdout_kept", "if ARGV[5] ~= ''", "if true"),
    ("empty_stderr_kept", "if ARGV[6] ~= ''", "if true"),
    (
        "token_deleted",
        "'HDEL', KEYS[1], 'error',",
        "'HDEL', KEYS[1], 'mw_token', 'error',",
    ),
    (
        "its_end_not_told",
        "close(ARGV[2], KEYS[1], has, 'finished', ARGV[4], now, nil, has.mw_worker)",
        "",
    ),
    (
        "reply_only_to_us",
        "'mw_token', 'mw_reply', 'mw_legacy', 'mw_worker')\nif",
        "'mw_token', 'mw_reply', 'mw_legacy', 'mw_worker')\nhas.mw_reply = has.mw_reply or '0'\nif",
    ),
    (
        "who_did_it_not_told",
        "now, nil, has.mw_worker)\nreturn 'finished'",
        "now, nil)\nreturn 'finished'",
    ),
    (
        "dependants_told_of_a_failure",
        "has, 'finished', ARGV[4], now",
        "has, 'error', ARGV[4], now",
    ),
    (
        "answers_wrong",
        "has.mw_worker)\nreturn 'finished'",
        "has.mw_worker)\nreturn 'stale'",
    ),
];

pub(super) const FAIL: &[Change] = &[
    (
        "fence_not_checked",
        "if has.mw_token ~= ARGV[3] then return 'stale' end",
        "",
    ),
    (
        "status_not_checked",
        "if has.status ~= 'started' then return 'stale' end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has.status == 'error' then return 'failed' end",
        "",
    ),
    (
        "repeated_report_written",
        "if has.status == 'error' then return 'failed' end\nif has.status ~= 'started' then",
        "if has.status ~= 'started' and has.status ~= 'error' then",
    ),
    (
        "one_retry_too_few",
        "(tonumber(has.mw_attempt or '') or 0) <= retries",
        "(tonumber(has.mw_attempt or '') or 0) < retries",
    ),
    (
        "one_retry_too_many",
        "(tonumber(has.mw_attempt or '') or 0) <= retries",
        "(tonumber(has.mw_attempt or '') or 0) <= retries + 1",
    ),
    (
        "retried_without_end",
        "(tonumber(has.mw_attempt or '') or 0) <= retries",
        "retries > 0",
    ),
    (
        "never_retried",
        "local again = ARGV[6] == '1' and",
        "local again = false and",
    ),
    ("retried_in_vain", "ARGV[6] == '1' and ", ""),
    (
        "retried_although_stopped",
        " <= retries and not has.mw_stop",
        " <= retries",
    ),
    (
        "retries_not_bounded",
        "math.min(tonumber(has.retries or '') or 0, tonumber(ARGV[9]))",
        "tonumber(has.retries or '') or 0",
    ),
    ("lease_not_removed", "redis.call('ZREM', LEASES, id)", ""),
    (
        "token_not_deleted",
        "redis.call('HDEL', KEYS[1], 'mw_token')",
        "",
    ),
    (
        "id_not_pushed",
        "(put or deliver('LPUSH', id, KEYS[1], has, has.mw_queue or KEYS[2], now))",
        "true",
    ),
    (
        "requeued_to_the_wrong_end",
        "deliver('LPUSH', id, KEYS[1]",
        "deliver('RPUSH', id, KEYS[1]",
    ),
    (
        "requeued_although_it_ended",
        "KEYS[2], now)) and 'requeued' or 'failed'",
        "KEYS[2], now)) and 'requeued' or 'requeued'",
    ),
    (
        "status_not_written",
        "'HSET', KEYS[1], 'status', again and 'dispatched' or 'error', 'error'",
        "'HSET', KEYS[1], 'error'",
    ),
    (
        "requeued_job_in_error",
        "again and 'dispatched' or 'error'",
        "'error'",
    ),
    (
        "ended_job_dispatched",
        "again and 'dispatched' or 'error'",
        "'dispatched'",
    ),
    ("message_not_written", ", 'error', ARGV[4],\n", ",\n"),
    (
        "change_not_dated",
        ", 'error', ARGV[4],\n  'updated_at', iso(now))",
        ", 'error', ARGV[4])",
    ),
    (
        "traceback_not_kept",
        "redis.call('HSET', KEYS[1], 'mw_traceback', ARGV[5])",
        "",
    ),
    (
        "stdout_not_kept",
        "redis.call('HSET', KEYS[1], 'mw_stdout', ARGV[7])",
        "",
    ),
    (
        "stderr_not_kept",
        "redis.call('HSET', KEYS[1], 'mw_stderr', ARGV[8])",
        "",
    ),
    ("empty_fields_kept", "if ARGV[5] ~= ''", "if true"),
    (
        "old_run_kept",
        "redis.call('HDEL', KEYS[1], 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_stop')",
        "redis.call('HDEL', KEYS[1], 'mw_stop')",
    ),
    (
        "request_to_stop_kept",
        "'mw_stdout', 'mw_stderr', 'mw_stop')",
        "'mw_stdout', 'mw_stderr')",
    ),
    (
        "delay_ignored",
        "local put = delay > 0 and",
        "local put = false and",
    ),
    (
        "delayed_for_nothing",
        "local put = delay > 0 and",
        "local put =",
    ),
    (
        "delayed_and_queued",
        "(put or deliver('LPUSH', id, KEYS[1], has, has.mw_queue or KEYS[2], now))",
        "(deliver('LPUSH', id, KEYS[1], has, KEYS[2], now) or put)",
    ),
    (
        "due_at_once",
        "redis.pcall('ZADD', DELAYED, whole(now + delay), id)",
        "redis.pcall('ZADD', DELAYED, whole(now), id)",
    ),
    (
        "a_key_like_the_delayed_loses_it",
        "type(redis.pcall('ZADD', DELAYED, whole(now + delay), id)) == 'number'",
        "redis.pcall('ZADD', DELAYED, whole(now + delay), id)",
    ),
    (
        "its_end_not_told",
        "close(id, KEYS[1], has, 'error', ARGV[4], now, dead, has.mw_worker)",
        "",
    ),
    (
        "never_a_dead_letter",
        "now, dead, has.mw_worker)\nreturn 'failed'",
        "now, nil, has.mw_worker)\nreturn 'failed'",
    ),
    (
        "reason_always_the_same",
        "not has.mw_stop and ARGV[11] or nil",
        "not has.mw_stop and 'failed' or nil",
    ),
    (
        "stopped_job_a_dead_letter",
        "local dead = ARGV[11] ~= '' and not has.mw_stop and",
        "local dead = ARGV[11] ~= '' and",
    ),
    (
        "stopped_run_a_dead_letter",
        "local dead = ARGV[11] ~= '' and",
        "local dead =",
    ),
    (
        "reply_after_a_requeue",
        "  event(id, 'retry',",
        "  reply(has, id, ARGV[4])\n  event(id, 'retry',",
    ),
    (
        "who_did_it_not_told",
        "now, dead, has.mw_worker)\nreturn 'failed'",
        "now, dead)\nreturn 'failed'",
    ),
];
