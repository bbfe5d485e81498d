//! Changes of finish, fail, cancel, retry and delete.

use super::Change;

pub(super) const FINISH: &[Change] = &[
    (
        "fence_not_checked",
        "if has[2] ~= ARGV[3] then return 'stale' end",
        "",
    ),
    (
        "status_not_checked",
        "if has[1] ~= 'started' then return 'stale' end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has[1] == 'finished' then return 'finished' end",
        "",
    ),
    (
        "repeated_report_written",
        "if has[1] == 'finished' then return 'finished' end\nif has[1] ~= 'started' then",
        "if has[1] ~= 'started' and has[1] ~= 'finished' then",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', KEYS[2], ARGV[2])",
        "",
    ),
    ("status_not_written", "'status', 'finished', ", ""),
    ("output_not_written", ", 'output', ARGV[4],", ","),
    (
        "change_not_dated",
        ",\n  'updated_at', iso(clock(ARGV[1])))",
        ")",
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
        "'mw_stdout', 'mw_stderr')",
        "'mw_stderr')",
    ),
    (
        "old_stderr_kept",
        "'mw_stdout', 'mw_stderr')",
        "'mw_stdout')",
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
        "reply_missing",
        "reply(has[3], KEYS[3], ARGV[4], ARGV[7])",
        "",
    ),
    ("reply_always", "reply(has[3],", "reply('1',"),
    ("reply_only_to_us", "reply(has[3],", "reply(has[3] or '0',"),
    (
        "answers_wrong",
        "reply(has[3], KEYS[3], ARGV[4], ARGV[7])\nreturn 'finished'",
        "reply(has[3], KEYS[3], ARGV[4], ARGV[7])\nreturn 'stale'",
    ),
];

pub(super) const FAIL: &[Change] = &[
    (
        "fence_not_checked",
        "if has[2] ~= ARGV[3] then return 'stale' end",
        "",
    ),
    (
        "status_not_checked",
        "if has[1] ~= 'started' then return 'stale' end",
        "",
    ),
    (
        "repeated_report_called_stale",
        "if has[1] == 'error' then return 'failed' end",
        "",
    ),
    (
        "repeated_report_written",
        "if has[1] == 'error' then return 'failed' end\nif has[1] ~= 'started' then",
        "if has[1] ~= 'started' and has[1] ~= 'error' then",
    ),
    (
        "one_retry_too_few",
        "(tonumber(has[4]) or 0) <= retries",
        "(tonumber(has[4]) or 0) < retries",
    ),
    (
        "one_retry_too_many",
        "(tonumber(has[4]) or 0) <= retries",
        "(tonumber(has[4]) or 0) <= retries + 1",
    ),
    (
        "retried_without_end",
        "(tonumber(has[4]) or 0) <= retries",
        "retries > 0",
    ),
    (
        "never_retried",
        "local again = ARGV[6] == '1' and",
        "local again = false and",
    ),
    ("retried_in_vain", "ARGV[6] == '1' and ", ""),
    (
        "retries_not_bounded",
        "math.min(tonumber(has[5] or '') or 0, tonumber(ARGV[10]))",
        "tonumber(has[5] or '') or 0",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', KEYS[2], ARGV[2])",
        "",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', KEYS[1], 'mw_token')",
        "",
    ),
    ("id_not_pushed", "redis.call('LPUSH', KEYS[3], ARGV[2])", ""),
    (
        "requeued_to_the_wrong_end",
        "redis.call('LPUSH', KEYS[3], ARGV[2])",
        "redis.call('RPUSH', KEYS[3], ARGV[2])",
    ),
    (
        "status_not_written",
        "'status', again and 'dispatched' or 'error', ",
        "",
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
    ("message_not_written", ", 'error', ARGV[4],", ","),
    (
        "change_not_dated",
        ",\n  'updated_at', iso(clock(ARGV[1])))",
        ")",
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
        "redis.call('HDEL', KEYS[1], 'mw_traceback', 'mw_stdout', 'mw_stderr')",
        "",
    ),
    (
        "reply_missing",
        "reply(has[3], KEYS[4], ARGV[4], ARGV[9])",
        "",
    ),
    ("reply_always", "reply(has[3],", "reply('1',"),
    (
        "reply_after_a_requeue",
        "return 'requeued'",
        "reply(has[3], KEYS[4], ARGV[4], ARGV[9])\n  return 'requeued'",
    ),
];

pub(super) const CANCEL: &[Change] = &[
    (
        "missing_job_made_up",
        "if not there(KEYS[1]) then return 'missing' end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.call('TYPE', key).ok == 'hash'",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "finished_job_stopped",
        "status == 'finished' or status == 'error'",
        "status == 'error'",
    ),
    (
        "stopped_job_stopped_again",
        "status == 'finished' or status == 'error'",
        "status == 'finished'",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', KEYS[2], ARGV[2])",
        "",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', KEYS[1], 'mw_token')",
        "",
    ),
    ("status_not_written", "'status', 'error', ", ""),
    ("reason_not_written", "'error', ARGV[3],", "'error', '',"),
    (
        "change_not_dated",
        ",\n  'updated_at', iso(clock(ARGV[1])))",
        ")",
    ),
    (
        "id_not_removed_from_the_queue",
        "if status ~= 'started' then unqueue(KEYS[3], ARGV[2]) end",
        "",
    ),
    (
        "long_queue_walked",
        "local LONGEST_WALK = 10000",
        "local LONGEST_WALK = 10000000",
    ),
    (
        "short_queue_not_walked",
        "local LONGEST_WALK = 10000",
        "local LONGEST_WALK = 0",
    ),
    (
        "reply_missing",
        "reply(record[2], KEYS[4], ARGV[3], ARGV[4])",
        "",
    ),
    ("reply_always", "reply(record[2],", "reply('1',"),
    ("answers_wrong", "return 'cancelled'", "return 'ended'"),
];

pub(super) const RETRY: &[Change] = &[
    (
        "missing_job_made_up",
        "if not there(KEYS[1]) then return 'missing' end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.call('TYPE', key).ok == 'hash'",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "running_job_queued",
        "if status ~= 'finished' and status ~= 'error' then",
        "if status == 'dispatched' then",
    ),
    (
        "waiting_job_queued",
        "if status ~= 'finished' and status ~= 'error' then",
        "if status == 'started' then",
    ),
    (
        "finished_job_left",
        "if status ~= 'finished' and status ~= 'error' then",
        "if status ~= 'error' then",
    ),
    (
        "failed_job_left",
        "if status ~= 'finished' and status ~= 'error' then",
        "if status ~= 'finished' then",
    ),
    ("id_not_pushed", "redis.call('LPUSH', KEYS[2], ARGV[2])", ""),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', KEYS[2], ARGV[2])",
        "redis.call('RPUSH', KEYS[2], ARGV[2])",
    ),
    ("old_reply_kept", "redis.call('DEL', KEYS[3])", ""),
    ("old_output_kept", "'output', 'error',", "'error',"),
    ("old_error_kept", "'output', 'error',", "'output',"),
    (
        "old_logs_kept",
        "'mw_traceback', 'mw_stdout', 'mw_stderr',",
        "",
    ),
    ("old_token_kept", "'mw_token', 'mw_attempt'", "'mw_attempt'"),
    (
        "old_attempts_kept",
        "'mw_attempt', 'mw_lost')",
        "'mw_lost')",
    ),
    (
        "old_losses_kept",
        "'mw_attempt', 'mw_lost')",
        "'mw_attempt')",
    ),
    ("status_not_written", "'status', 'dispatched', ", ""),
    (
        "change_not_dated",
        ", 'updated_at', iso(clock(ARGV[1])))",
        ")",
    ),
];

pub(super) const DELETE: &[Change] = &[
    (
        "missing_job_called_deleted",
        "if not there(KEYS[1]) then return 'missing' end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.call('TYPE', key).ok == 'hash'",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "running_job_deleted",
        "if lease and tonumber(lease) > clock(ARGV[1]) then",
        "if false then",
    ),
    (
        "job_of_a_dead_worker_left",
        "if lease and tonumber(lease) > clock(ARGV[1]) then",
        "if lease then",
    ),
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    (
        "lease_not_removed",
        "redis.call('ZREM', KEYS[2], ARGV[2])",
        "",
    ),
    (
        "id_not_removed_from_the_queue",
        "unqueue(KEYS[3], ARGV[2])",
        "",
    ),
    (
        "record_kept",
        "redis.call('DEL', KEYS[1], KEYS[4])",
        "redis.call('DEL', KEYS[4])",
    ),
    (
        "reply_kept",
        "redis.call('DEL', KEYS[1], KEYS[4])",
        "redis.call('DEL', KEYS[1])",
    ),
];
