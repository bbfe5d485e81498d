//! Changes of finish and fail.

use super::Change;

pub(super) const FINISH: &[Change] = &[
    (
        "fence_not_checked",
        "if has.mw_token ~= token then return false end",
        "",
    ),
    (
        "status_not_checked",
        "if has.status ~= 'started' then return false end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has.status == 'finished' then return true end",
        "",
    ),
    (
        "repeated_report_written",
        "if has.status == 'finished' then return true end\n  if has.status ~= 'started' then",
        "if has.status ~= 'started' and has.status ~= 'finished' then",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', LEASES, unpack(over))",
        "",
    ),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  if stdout",
        "redis.call('HSET', key, 'output', output, 'updated_at', at)\n  if stdout",
    ),
    (
        "output_not_written",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  if stdout",
        "redis.call('HSET', key, 'status', 'finished', 'updated_at', at)\n  if stdout",
    ),
    (
        "long_end_not_dated",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  if stdout",
        "redis.call('HSET', key, 'status', 'finished', 'output', output)\n  if stdout",
    ),
    ("old_error_kept", "'HDEL', key, 'error', ", "'HDEL', key, "),
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
        "redis.call('HSET', key, 'mw_stdout', stdout)",
        "",
    ),
    (
        "stderr_not_kept",
        "redis.call('HSET', key, 'mw_stderr', stderr)",
        "",
    ),
    ("empty_stdout_kept", "if stdout ~= ''", "if true"),
    ("empty_stderr_kept", "if stderr ~= ''", "if true"),
    (
        "token_deleted",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  over",
        "redis.call('HDEL', key, 'mw_token') redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  over",
    ),
    (
        "its_end_not_told",
        "close(id, key, has, 'finished', output, now, nil, has.mw_worker)",
        "",
    ),
    (
        "reply_only_to_us",
        "if has.mw_token ~= token then return false end",
        "has.mw_reply = has.mw_reply or '0' if has.mw_token ~= token then return false end",
    ),
    (
        "who_did_it_not_told",
        "output, now, nil, has.mw_worker)",
        "output, now, nil)",
    ),
    (
        "dependants_told_of_a_failure",
        "has, 'finished', output, now",
        "has, 'error', output, now",
    ),
    (
        "answers_wrong",
        "has.mw_worker)\n  return true",
        "has.mw_worker)\n  return false",
    ),
    (
        "status_of_a_plain_job_not_written",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  over",
        "redis.call('HSET', key, 'output', output, 'updated_at', at)\n  over",
    ),
    (
        "output_of_a_plain_job_not_written",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  over",
        "redis.call('HSET', key, 'status', 'finished', 'updated_at', at)\n  over",
    ),
    (
        "change_of_a_plain_job_not_dated",
        "redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)\n  over",
        "redis.call('HSET', key, 'status', 'finished', 'output', output)\n  over",
    ),
    (
        "fence_not_checked_of_a_plain_job",
        " or has[2] ~= token or",
        " or",
    ),
    (
        "status_of_a_plain_job_not_checked",
        "if has[1] ~= 'started' or has[2]",
        "if has[2]",
    ),
    (
        "earlier_failure_not_seen",
        " or has[3] or not has[4] or",
        " or not has[4] or",
    ),
    (
        "foreign_client_not_seen",
        " or has[3] or not has[4] or",
        " or has[3] or",
    ),
    (
        "stdout_of_a_plain_job_lost",
        " or stdout ~= '' or stderr ~= '' then",
        " or stderr ~= '' then",
    ),
    (
        "stderr_of_a_plain_job_lost",
        " or stdout ~= '' or stderr ~= '' then",
        " or stdout ~= '' then",
    ),
    (
        "reply_of_a_plain_job_missing",
        "if has[4] ~= '0' then reply({mw_reply = has[4]}, id, output) end",
        "",
    ),
    (
        "end_of_a_plain_job_not_told",
        "  event(id, 'finished', has[7])\n",
        "",
    ),
    (
        "those_that_wait_for_a_plain_job_not_told",
        "if #next_of > 0 and redis.call('EXISTS', unpack(next_of)) > 0 then",
        "if false then",
    ),
    (
        "end_of_a_plain_job_not_kept",
        "  keep(id, now)\n  count(has[5], 'finished')",
        "  count(has[5], 'finished')",
    ),
    (
        "end_of_a_plain_job_not_counted",
        "  count(has[5], 'finished')\n",
        "",
    ),
    (
        "run_of_a_plain_job_not_counted",
        "  ran(has[5], has[6], now)\n",
        "",
    ),
];

pub(super) const FAIL: &[Change] = &[
    (
        "fence_not_checked",
        "if has.mw_token ~= ARGV[3] then return done('stale') end",
        "",
    ),
    (
        "status_not_checked",
        "if has.status ~= 'started' then return done('stale') end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has.status == 'error' then return done('failed') end",
        "",
    ),
    (
        "repeated_report_written",
        "if has.status == 'error' then return done('failed') end\nif has.status ~= 'started' then",
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
        "redis.call('HDEL', key, 'mw_token')",
        "",
    ),
    (
        "id_not_pushed",
        "(put or deliver('LPUSH', id, key, has, queue, now))",
        "true",
    ),
    (
        "requeued_to_the_wrong_end",
        "deliver('LPUSH', id, key, has, queue, now)",
        "deliver('RPUSH', id, key, has, queue, now)",
    ),
    (
        "requeued_although_it_ended",
        "now)) and 'requeued' or 'failed'",
        "now)) and 'requeued' or 'requeued'",
    ),
    (
        "status_not_written",
        "'status', again and 'dispatched' or 'error', 'error'",
        "'error'",
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
    (
        "message_not_written",
        "'error', ARGV[4], 'updated_at', iso(now))",
        "'updated_at', iso(now))",
    ),
    (
        "long_end_not_dated",
        "'error', ARGV[4], 'updated_at', iso(now))",
        "'error', ARGV[4])",
    ),
    (
        "traceback_not_kept",
        "redis.call('HSET', key, 'mw_traceback', ARGV[5])",
        "",
    ),
    (
        "stdout_not_kept",
        "redis.call('HSET', key, 'mw_stdout', ARGV[7])",
        "",
    ),
    (
        "stderr_not_kept",
        "redis.call('HSET', key, 'mw_stderr', ARGV[8])",
        "",
    ),
    ("empty_fields_kept", "if ARGV[5] ~= ''", "if true"),
    (
        "old_run_kept",
        "redis.call('HDEL', key, 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_stop')",
        "redis.call('HDEL', key, 'mw_stop')",
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
        "(put or deliver('LPUSH', id, key, has, queue, now))",
        "(deliver('LPUSH', id, key, has, queue, now) or put)",
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
        "close(id, key, has, 'error', ARGV[4], now, dead, has.mw_worker)",
        "",
    ),
    (
        "never_a_dead_letter",
        "ARGV[4], now, dead, has.mw_worker)",
        "ARGV[4], now, nil, has.mw_worker)",
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
        "ARGV[4], now, dead, has.mw_worker)",
        "ARGV[4], now, dead)",
    ),
];
