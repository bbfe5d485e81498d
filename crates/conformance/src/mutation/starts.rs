//! Changes of enqueue and renew.

use super::Change;

pub(super) const ENQUEUE: &[Change] = &[
    (
        "existing_job_overwritten",
        "redis.call('EXISTS', key) == 1",
        "false",
    ),
    (
        "id_not_pushed",
        "redis.call('LPUSH', queue, unpack(ids))",
        "",
    ),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', queue, unpack(ids))",
        "redis.call('RPUSH', queue, unpack(ids))",
    ),
    (
        "stored_although_not_queued",
        "if type(length) ~= 'number' then return nil, length end",
        "if type(length) ~= 'number' then length = 0 end",
    ),
    (
        "pushed_to_the_first_queue",
        "redis.call('LPUSH', queue, unpack(ids))",
        "redis.call('LPUSH', KEYS[2], unpack(ids))",
    ),
    (
        "status_wrong",
        "put(key, id, script_type, open and 'dispatched' or 'error', at, from)",
        "put(key, id, script_type, open and 'started' or 'error', at, from)",
    ),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', status, 'created_at'",
        "redis.call('HSET', key, 'created_at'",
    ),
    ("creation_not_dated", "'created_at', at, ", ""),
    (
        "change_not_dated",
        "'created_at', at, 'updated_at', at, 'id'",
        "'created_at', at, 'id'",
    ),
    (
        "last_field_lost",
        "unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))",
        "unpack(ARGV, from + VALUES + 1, from + VALUES - 2 + tonumber(ARGV[from + VALUES])))",
    ),
    (
        "answers_that_it_was_new",
        "return 'exists'",
        "return 'stored'",
    ),
    (
        "answers_that_it_was_there",
        "  event(id, 'enqueue', who, script_type)\n  return 'stored'",
        "  event(id, 'enqueue', who, script_type)\n  return 'exists'",
    ),
    (
        "not_told",
        "  event(id, 'enqueue', who, script_type)\n  return",
        "  return",
    ),
    (
        "type_not_told",
        "event(id, 'enqueue', who, script_type)\n  return",
        "event(id, 'enqueue', who)\n  return",
    ),
    (
        "who_asked_not_told",
        "event(id, 'enqueue', who, script_type)\n  return",
        "event(id, 'enqueue', '', script_type)\n  return",
    ),
    ("only_the_first_job_of_a_call", "a = behind", "a = 3"),
    (
        "status_wrong_of_a_plain_job",
        "put(key, id, script_type, 'dispatched', at, from)",
        "put(key, id, script_type, 'started', at, from)",
    ),
    (
        "plain_job_not_queued",
        "  ids[#ids + 1] = id\n  count(",
        "  count(",
    ),
    (
        "not_told_where_it_wishes",
        "  event(id, 'enqueue', who, script_type)\n  if not open",
        "  if not open",
    ),
    (
        "who_asked_not_told_where_it_wishes",
        "event(id, 'enqueue', who, script_type)\n  if not open",
        "event(id, 'enqueue', '', script_type)\n  if not open",
    ),
    ("wishes_ignored", "if o or set then", "if set then"),
    ("settings_ignored", "if o or set then", "if o then"),
    (
        "values_swapped",
        "'caller_id', ARGV[from], 'worker_id', ARGV[from + 1]",
        "'caller_id', ARGV[from + 1], 'worker_id', ARGV[from]",
    ),
    (
        "answers_that_it_was_there_where_it_wishes",
        "  end\n  return 'stored'",
        "  end\n  return 'exists'",
    ),
];

pub(super) const ENQUEUE_LIMITS: &[Change] = &[
    (
        "limit_ignored",
        "return left <= 0 and 'full'",
        "return false",
    ),
    ("limit_one_too_many", "return left <= 0", "return left < 0"),
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
        "return limit_of[queue] -",
        "return (limit_of[KEYS[2]] or limit_of[queue]) -",
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
    (
        "always_away",
        "redis.call('EXISTS', o.presence) == 0",
        "true",
    ),
    (
        "never_away",
        "redis.call('EXISTS', o.presence) == 0",
        "false",
    ),
    (
        "fallback_not_taken",
        "if away then queue = o.fallback end",
        "",
    ),
    (
        "fallback_not_noted",
        "redis.call('HSET', key, 'mw_fallback', o.presence .. ' ' .. o.fallback)",
        "",
    ),
    (
        "fallback_without_its_queue",
        "if o.presence then redis.call('HSET', key, 'mw_queue', queue) end",
        "",
    ),
    (
        "queue_noted_only_with_the_fallback",
        "if o.presence then redis.call('HSET', key, 'mw_queue', queue) end",
        "if o.presence and not away then redis.call('HSET', key, 'mw_queue', queue) end",
    ),
    (
        "fallback_noted_although_taken",
        "if o.presence and not away then",
        "if o.presence then",
    ),
    (
        "fallback_noted_without_its_queue",
        "o.presence .. ' ' .. o.fallback",
        "o.presence",
    ),
    (
        "nobody_looks",
        "if o.presence then mind(id, key, now) end",
        "",
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
