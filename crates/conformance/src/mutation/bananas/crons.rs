//! Changes of what keeps cron schedules of Bananas' jobs and runs their slots.

use super::Change;

pub(super) const CRONS: &[Change] = &[
    ("unbounded", "math.min(#all, 2 * MOST)", "#all"),
    (
        "state_of_another_kind_ends_all",
        "redis.pcall('HMGET', SCHEDULE",
        "redis.call('HMGET', SCHEDULE",
    ),
    ("next_slot_not_told", "state[1] or ''", "''"),
    ("last_run_not_told", "state[2] or ''", "''"),
    ("runs_not_told", "state[3] or ''", "''"),
    ("time_not_told", "{whole(now), found}", "{'0', found}"),
];

pub(super) const CRON: &[Change] = &[
    (
        "taken_for_granted",
        "if there and ARGV[5] ~= '1' then return 'exists' end\n",
        "",
    ),
    (
        "unbounded",
        "if not there and redis.call('HLEN', CRONS) >= MOST then return 'full' end\n",
        "",
    ),
    (
        "full_is_not_replaced",
        "if not there and redis.call('HLEN'",
        "if redis.call('HLEN'",
    ),
    (
        "no_next_slot",
        "redis.call('HSET', SCHEDULE .. name, 'next_run', ARGV[4])\n",
        "",
    ),
    (
        "state_of_another_kind_is_passed_over",
        "redis.call('HSET', SCHEDULE .. name",
        "redis.pcall('HSET', SCHEDULE .. name",
    ),
    ("not_kept", "redis.call('HSET', CRONS, name, kept)\n", ""),
    (
        "replaced_not_told",
        "return there and 'replaced' or 'kept'",
        "return 'kept'",
    ),
    ("not_forgotten", "  redis.call('HDEL', CRONS, name)\n", ""),
    (
        "missing_not_told",
        "return there and 'forgotten' or 'missing'",
        "return 'forgotten'",
    ),
];

pub(super) const FIRE: &[Change] = &[
    ("job_not_counted", "count(KEYS[1], 'created')\n", ""),
    (
        "another_schedule_is_run",
        "if redis.call('HGET', CRONS, ARGV[2]) ~= ARGV[3] then return 'changed' end\n",
        "",
    ),
    (
        "a_slot_runs_twice",
        "if (redis.pcall('HGET', state, 'next_run') or '') ~= ARGV[4] then return 'changed' end\n",
        "",
    ),
    (
        "nothing_known_is_changed",
        "(redis.pcall('HGET', state, 'next_run') or '')",
        "redis.pcall('HGET', state, 'next_run')",
    ),
    (
        "state_of_another_kind_ends_all",
        "redis.pcall('HGET', state",
        "redis.call('HGET', state",
    ),
    (
        "list_not_looked_at_first",
        "redis.call('LLEN', KEYS[1])",
        "",
    ),
    ("lock_of_theirs_is_taken", "'NX', 'PX'", "'PX'"),
    ("lock_without_end", ", 'NX', 'PX', ARGV[7])", ", 'NX')"),
    (
        "not_counted",
        "redis.pcall('HINCRBY', state, 'run_count', 1)\n",
        "",
    ),
    (
        "count_that_is_none_ends_all",
        "redis.pcall('HINCRBY', state",
        "redis.call('HINCRBY', state",
    ),
    (
        "old_error_stays",
        "redis.call('HDEL', state, 'last_error')\n",
        "",
    ),
    ("last_run_not_said", "'last_run', at, ", ""),
    ("success_not_said", ", 'last_success', at", ""),
    ("not_moved_on", "'next_run', ARGV[5], ", ""),
    (
        "no_record",
        "redis.call('SET', JOB .. ARGV[8], (drafted(9, now)))\n",
        "",
    ),
    (
        "pushed_as_the_next",
        "redis.call('LPUSH', KEYS[1], ARGV[8])",
        "redis.call('RPUSH', KEYS[1], ARGV[8])",
    ),
    ("not_pushed", "redis.call('LPUSH', KEYS[1], ARGV[8])\n", ""),
];
