//! Changes of enqueue and renew.

use super::Change;

pub(super) const ENQUEUE: &[Change] = &[
    (
        "existing_job_overwritten",
        "redis.call('EXISTS', key) == 1",
        "false",
    ),
    ("id_not_pushed", "redis.call('LPUSH', queue, id)", ""),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', queue, id)",
        "redis.call('RPUSH', queue, id)",
    ),
    (
        "stored_although_not_queued",
        "redis.call('LPUSH', queue, id)",
        "redis.pcall('LPUSH', queue, id)",
    ),
    (
        "pushed_to_the_first_queue",
        "redis.call('LPUSH', queue, id)",
        "redis.call('LPUSH', KEYS[2], id)",
    ),
    (
        "status_wrong",
        "    written('dispatched')\n    double",
        "    written('started')\n    double",
    ),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', status, 'created_at'",
        "redis.call('HSET', key, 'created_at'",
    ),
    ("creation_not_dated", "'created_at', at, ", ""),
    ("change_not_dated", "'updated_at', at,\n", "\n"),
    (
        "last_field_lost",
        "unpack(ARGV, from, from + n - 1)",
        "unpack(ARGV, from, from + n - 3)",
    ),
    (
        "answers_that_it_was_new",
        "return 'exists'",
        "return 'stored'",
    ),
    (
        "answers_that_it_was_there",
        "return 'stored'",
        "return 'exists'",
    ),
    (
        "not_told",
        "    event(id, 'enqueue', ARGV[2], script_type)\n",
        "",
    ),
    (
        "type_not_told",
        "'enqueue', ARGV[2], script_type",
        "'enqueue', ARGV[2]",
    ),
    (
        "who_asked_not_told",
        "'enqueue', ARGV[2], script_type",
        "'enqueue', '', script_type",
    ),
    (
        "only_the_first_job_of_a_call",
        "a = from + strings",
        "a = 3",
    ),
];

pub(super) const ENQUEUE_LIMITS: &[Change] = &[
    ("limit_ignored", "if full(queue) then return 'full' end", ""),
    ("limit_one_too_many", ">= limits[queue]", "> limits[queue]"),
    ("own_limit_ignored", "set[own] or set.limit", "set.limit"),
    (
        "default_limit_ignored",
        "set[own] or set.limit or ''",
        "set[own] or ''",
    ),
    (
        "default_comes_first",
        "set[own] or set.limit",
        "set.limit or set[own]",
    ),
    (
        "limit_of_another_queue",
        "if limits[queue] == nil then",
        "if next(limits) == nil then",
    ),
    (
        "a_key_like_the_settings_ends_the_call",
        "redis.pcall('HMGET', key, ...)",
        "redis.call('HMGET', key, ...)",
    ),
    (
        "full_before_it_is_there",
        "  if redis.call('EXISTS', key) == 1 then return 'exists' end\n",
        "  if full(queue) then return 'full' end\n  if redis.call('EXISTS', key) == 1 then return 'exists' end\n",
    ),
];

pub(super) const ENQUEUE_FALLBACK: &[Change] = &[
    ("always_away", "redis.call('EXISTS', presence) == 0", "true"),
    ("never_away", "redis.call('EXISTS', presence) == 0", "false"),
    (
        "fallback_not_taken",
        "if away then queue = fallback end",
        "",
    ),
    (
        "fallback_not_noted",
        "redis.call('HSET', key, 'mw_fallback', presence .. ' ' .. fallback)",
        "",
    ),
    (
        "fallback_without_its_queue",
        "if presence ~= '' then redis.call('HSET', key, 'mw_queue', queue) end",
        "",
    ),
    (
        "queue_noted_only_with_the_fallback",
        "if presence ~= '' then redis.call('HSET', key, 'mw_queue', queue) end",
        "if presence ~= '' and not away then redis.call('HSET', key, 'mw_queue', queue) end",
    ),
    (
        "fallback_noted_although_taken",
        "if presence ~= '' and not away then",
        "if presence ~= '' then",
    ),
    (
        "fallback_noted_without_its_queue",
        "'mw_fallback', presence .. ' ' .. fallback",
        "'mw_fallback', presence",
    ),
    (
        "nobody_looks",
        "    mind(id, key, now)\n  end\n  return 'stored'",
        "  end\n  return 'stored'",
    ),
];

pub(super) const RENEW: &[Change] = &[
    ("fence_not_checked", "has.mw_token == token and ", ""),
    ("status_not_checked", "has.status == 'started' and ", ""),
    ("lease_made_up", " and redis.call('ZSCORE', LEASES, id)", ""),
    (
        "lease_not_extended",
        "redis.call('ZADD', LEASES, deadline, id)",
        "",
    ),
    (
        "deadline_now",
        "whole(now + tonumber(ARGV[2]))",
        "whole(now)",
    ),
    (
        "deadline_that_of_the_listener",
        "whole(now + tonumber(ARGV[2]))",
        "whole(now + tonumber(ARGV[3]))",
    ),
    (
        "listener_not_registered",
        "redis.call('ZADD', FEEDS, alive, ARGV[i])",
        "",
    ),
    (
        "listener_as_short_as_a_lease",
        "whole(now + tonumber(ARGV[3]))",
        "whole(now + tonumber(ARGV[2]))",
    ),
    (
        "only_the_first_queue_listened_to",
        "for i = 5, 4 + entries do",
        "for i = 5, 5 do",
    ),
    ("lost_job_not_told", "gone[#gone + 1] = id", ""),
    ("only_the_first_job_renewed", "a = a + 2", "a = a + 0"),
    (
        "stop_not_told",
        "if has.mw_stop then stops[#stops + 1] = id end",
        "",
    ),
    ("stop_told_of_all", "if has.mw_stop then", "if true then"),
    (
        "stopped_job_told_as_gone",
        "stops[#stops + 1] = id",
        "gone[#gone + 1] = id",
    ),
    (
        "a_list_like_a_job_ends_the_call",
        "redis.pcall('HMGET', key, ...)",
        "redis.call('HMGET', key, ...)",
    ),
    (
        "listeners_before_leases",
        "local gone, stops, a",
        "for i = 5, 4 + entries do redis.call('ZADD', FEEDS, alive, ARGV[i]) end\nlocal gone, stops, a",
    ),
];
