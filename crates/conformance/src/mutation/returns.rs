//! Changes of release, reclaim, orphan and leave.

use super::Change;

pub(super) const RELEASE: &[Change] = &[
    ("fence_not_checked", "has.mw_token ~= ARGV[3] or ", ""),
    (
        "status_not_checked",
        " or has.status ~= 'started' then",
        " then",
    ),
    ("lease_not_removed", "redis.call('ZREM', LEASES, id)", ""),
    (
        "attempt_counted",
        "math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)",
        "has.mw_attempt",
    ),
    (
        "attempts_below_none",
        "math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)",
        "(tonumber(has.mw_attempt or '') or 0) - 1",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', key, 'mw_token')",
        "",
    ),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', 'dispatched', 'updated_at'",
        "redis.call('HSET', key, 'updated_at'",
    ),
    (
        "change_not_dated",
        "'status', 'dispatched', 'updated_at', iso(now))\nevent",
        "'status', 'dispatched')\nevent",
    ),
    (
        "id_not_pushed",
        "deliver('RPUSH', id, key, has, has.mw_queue or KEYS[2], now)",
        "",
    ),
    (
        "requeued_to_the_wrong_end",
        "deliver('RPUSH', id, key, has, has.mw_queue or KEYS[2], now)",
        "deliver('LPUSH', id, key, has, has.mw_queue or KEYS[2], now)",
    ),
    (
        "stopped_job_runs_again",
        "if has.mw_stop then",
        "if false then",
    ),
    (
        "stopped_job_without_its_reason",
        "fault(id, key, has, has.mw_stop, now",
        "fault(id, key, has, 'stopped', now",
    ),
    ("not_told", "event(id, 'release', has.mw_worker)", ""),
    (
        "fallback_forgotten",
        "    mind(id, key, now)\n    return true",
        "    return true",
    ),
];

pub(super) const RECLAIM: &[Change] = &[
    (
        "living_worker_robbed",
        "LEASES, '-inf', whole(now)",
        "LEASES, '-inf', '+inf'",
    ),
    (
        "lease_ends_late",
        "LEASES, '-inf', whole(now)",
        "LEASES, '-inf', '(' .. whole(now)",
    ),
    ("lease_not_removed", "redis.call('ZREM', LEASES, id)", ""),
    (
        "status_not_checked",
        "if has.status == 'started' and has.mw_queue then",
        "if has.mw_queue then",
    ),
    (
        "job_without_queue_ends",
        "if has.status == 'started' and has.mw_queue then",
        "if has.status == 'started' then",
    ),
    (
        "list_like_a_job_ends_the_call",
        "redis.pcall('HMGET', key, ...)",
        "redis.call('HMGET', key, ...)",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', key, 'mw_token')",
        "",
    ),
    (
        "attempt_counted",
        "math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)",
        "has.mw_attempt",
    ),
    (
        "attempts_below_none",
        "math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)",
        "(tonumber(has.mw_attempt or '') or 0) - 1",
    ),
    (
        "lost_not_counted",
        "(tonumber(has.mw_lost or '') or 0) + 1",
        "tonumber(has.mw_lost or '') or 0",
    ),
    ("lost_not_written", "'mw_lost', lost, ", ""),
    (
        "change_not_dated",
        "'mw_lost', lost, 'updated_at', at)",
        "'mw_lost', lost)",
    ),
    (
        "poison_one_too_early",
        "elseif lost >= losses then",
        "elseif lost >= losses - 1 then",
    ),
    (
        "poison_one_too_late",
        "elseif lost >= losses then",
        "elseif lost > losses then",
    ),
    (
        "poison_never",
        "elseif lost >= losses then",
        "elseif false then",
    ),
    (
        "poison_without_a_reason",
        "fault(id, key, has, poison, now",
        "fault(id, key, has, '', now",
    ),
    (
        "poison_no_dead_letter",
        "poison, now, 'poison', '', true, 'lost')",
        "poison, now, nil, '', true, 'lost')",
    ),
    ("poison_not_told", "ended[#ended + 1] = id", ""),
    (
        "stopped_job_runs_again",
        "if has.mw_stop then",
        "if false then",
    ),
    (
        "stopped_job_without_its_reason",
        "fault(id, key, has, has.mw_stop, now",
        "fault(id, key, has, 'stopped', now",
    ),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', 'dispatched')",
        "",
    ),
    (
        "id_not_pushed",
        "if deliver('RPUSH', id, key, has, has.mw_queue, now, true) then",
        "if true then",
    ),
    (
        "requeued_to_the_wrong_end",
        "deliver('RPUSH', id, key",
        "deliver('LPUSH', id, key",
    ),
    ("requeued_not_told", "requeued[#requeued + 1] = id", ""),
    (
        "requeued_told_although_it_ended",
        "if requeued[#requeued] ~= id then ended",
        "if false then ended",
    ),
    (
        "bound_removed",
        "'LIMIT', 0, ARGV[2])",
        "'LIMIT', 0, 100000)",
    ),
    ("loss_not_told", "event(id, 'lost', has.mw_worker)", ""),
    (
        "dependants_not_left_to_settle",
        "  if later then owe(id, status == 'finished')",
        "  if later then",
    ),
];

pub(super) const RECLAIM_FEEDS: &[Change] = &[
    (
        "feeds_not_returned",
        "while queue and moved < MOST_MOVED",
        "while false and moved < MOST_MOVED",
    ),
    (
        "feeds_turned_round",
        "feed, queue, 'LEFT', 'RIGHT'",
        "feed, queue, 'RIGHT', 'RIGHT'",
    ),
    (
        "feeds_to_the_wrong_end",
        "feed, queue, 'LEFT', 'RIGHT'",
        "feed, queue, 'RIGHT', 'LEFT'",
    ),
    (
        "living_listener_robbed",
        "FEEDS, '-inf', whole(now)",
        "FEEDS, '-inf', '+inf'",
    ),
    (
        "death_noticed_late",
        "FEEDS, '-inf', whole(now)",
        "FEEDS, '-inf', '(' .. whole(now)",
    ),
    ("listener_never_forgotten", "if over and", "if false and"),
    ("listener_forgotten_at_once", "if over and", "if"),
    (
        "listener_forgotten_with_ids",
        " and redis.call('EXISTS', feed) == 0",
        "",
    ),
    (
        "bound_of_feeds_removed",
        "local MOST_MOVED = 1000",
        "local MOST_MOVED = 1000000",
    ),
    (
        "moved_not_told",
        "ended, unfeed(now",
        "ended, 0 * unfeed(now",
    ),
    (
        "a_key_like_a_queue_ends_the_call",
        "redis.pcall('LMOVE', feed",
        "redis.call('LMOVE', feed",
    ),
    (
        "a_key_like_a_queue_counts",
        " or id.err then break end -- a queue",
        " then break end -- a queue",
    ),
];

pub(super) const ORPHAN: &[Change] = &[
    (
        "lives_of_others_ended",
        "if dead[has.mw_worker or ''] then",
        "if true then",
    ),
    (
        "leases_not_ended",
        "redis.call('ZADD', LEASES, 'XX', 'LT', 'CH', whole(now), ARGV[i])",
        "0",
    ),
    ("ended_lease_put_off", "'XX', 'LT', 'CH'", "'XX', 'CH'"),
    (
        "entries_not_ended",
        "redis.call('ZADD', FEEDS, 'LT', whole(now), ARGV[i])",
        "",
    ),
    ("ended_entry_put_off", "FEEDS, 'LT', ", "FEEDS, "),
    (
        "one_worker_alone",
        "for i = 3, first - 1 do",
        "for i = 3, 3 do",
    ),
    ("leases_not_told", "return ended", "return 0"),
];

pub(super) const LEAVE: &[Change] = &[
    (
        "feeds_not_returned",
        "while moved < MOST do",
        "while false do",
    ),
    ("feeds_turned_round", "'LEFT', 'RIGHT'", "'RIGHT', 'RIGHT'"),
    (
        "feeds_to_the_wrong_end",
        "'LEFT', 'RIGHT'",
        "'RIGHT', 'LEFT'",
    ),
    (
        "listener_not_removed",
        "redis.call('ZREM', FEEDS, ARGV[1 + (k + 1) / 2])",
        "",
    ),
    ("wrong_listener_removed", "ARGV[1 + (k + 1) / 2]", "ARGV[2]"),
    (
        "all_listeners_removed",
        "redis.call('ZREM', FEEDS, ARGV[1 + (k + 1) / 2])",
        "redis.call('DEL', FEEDS)",
    ),
    ("bound_removed", "local MOST = 1000", "local MOST = 1000000"),
    ("more_never_told", "moved >= MOST and 1 or 0", "0"),
    ("moved_not_told", "return {moved,", "return {0,"),
    (
        "a_key_like_a_queue_ends_the_call",
        "redis.pcall('LMOVE'",
        "redis.call('LMOVE'",
    ),
    (
        "a_key_like_a_queue_counts",
        " or id.err then break end",
        " then break end",
    ),
];
