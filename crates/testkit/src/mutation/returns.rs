//! Changes of release, reclaim and leave.

use super::Change;

pub(super) const RELEASE: &[Change] = &[
    ("fence_not_checked", "has[2] ~= ARGV[3] or ", ""),
    ("status_not_checked", " or has[1] ~= 'started'", ""),
    (
        "lease_not_removed",
        "redis.call('ZREM', KEYS[2], ARGV[2])",
        "",
    ),
    (
        "attempt_counted",
        "redis.call('HINCRBY', KEYS[1], 'mw_attempt', -1)",
        "",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', KEYS[1], 'mw_token')",
        "",
    ),
    ("status_not_written", "'status', 'dispatched', ", ""),
    (
        "change_not_dated",
        ", 'updated_at', iso(clock(ARGV[1])))",
        ")",
    ),
    ("id_not_pushed", "redis.call('RPUSH', KEYS[3], ARGV[2])", ""),
    (
        "requeued_to_the_wrong_end",
        "redis.call('RPUSH', KEYS[3], ARGV[2])",
        "redis.call('LPUSH', KEYS[3], ARGV[2])",
    ),
];

pub(super) const RECLAIM: &[Change] = &[
    (
        "living_worker_robbed",
        "KEYS[1], '-inf', whole(now)",
        "KEYS[1], '-inf', '+inf'",
    ),
    (
        "lease_ends_late",
        "KEYS[1], '-inf', whole(now)",
        "KEYS[1], '-inf', '(' .. whole(now)",
    ),
    ("lease_not_removed", "redis.call('ZREM', KEYS[1], id)", ""),
    (
        "status_not_checked",
        "has[1] == 'started' and has[2]",
        "has[2]",
    ),
    (
        "job_without_queue_ends_the_call",
        "has[1] == 'started' and has[2]",
        "has[1] == 'started'",
    ),
    (
        "list_like_a_job_ends_the_call",
        "redis.pcall('HMGET', key",
        "redis.call('HMGET', key",
    ),
    (
        "token_not_deleted",
        "redis.call('HDEL', key, 'mw_token')",
        "",
    ),
    (
        "attempt_counted",
        "redis.call('HINCRBY', key, 'mw_attempt', -1)",
        "",
    ),
    (
        "lost_not_counted",
        "(tonumber(has[3]) or 0) + 1",
        "tonumber(has[3]) or 0",
    ),
    ("lost_not_written", "'mw_lost', lost, ", ""),
    ("change_not_dated", ", 'updated_at', at)", ")"),
    (
        "poison_one_too_early",
        "if lost > losses then",
        "if lost >= losses then",
    ),
    (
        "poison_one_too_late",
        "if lost > losses then",
        "if lost > losses + 1 then",
    ),
    ("poison_never", "if lost > losses then", "if false then"),
    (
        "poison_not_in_error",
        "'status', 'error', 'error', message",
        "'error', message",
    ),
    (
        "poison_without_a_reason",
        "'status', 'error', 'error', message",
        "'status', 'error'",
    ),
    (
        "poison_without_a_reply",
        "reply(has[4], ARGV[5] .. id, message, ARGV[7])",
        "",
    ),
    ("poison_replies_always", "reply(has[4],", "reply('1',"),
    ("poison_not_told", "ended[#ended + 1] = id", ""),
    (
        "status_not_written",
        "redis.call('HSET', key, 'status', 'dispatched')",
        "",
    ),
    ("id_not_pushed", "redis.call('RPUSH', has[2], id)", ""),
    (
        "requeued_to_the_wrong_end",
        "redis.call('RPUSH', has[2], id)",
        "redis.call('LPUSH', has[2], id)",
    ),
    ("requeued_not_told", "requeued[#requeued + 1] = id", ""),
    ("bound_removed", "'LIMIT', 0, most)", "'LIMIT', 0, 100000)"),
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
        "KEYS[2], '-inf', whole(now)",
        "KEYS[2], '-inf', '+inf'",
    ),
    (
        "death_noticed_late",
        "KEYS[2], '-inf', whole(now)",
        "KEYS[2], '-inf', '(' .. whole(now)",
    ),
    ("listener_never_forgotten", "if over and", "if false and"),
    ("listener_forgotten_at_once", "if over and", "if"),
    (
        "listener_forgotten_with_ids",
        " and redis.call('EXISTS', feed) == 0",
        "",
    ),
    (
        "bound_removed",
        "local MOST_MOVED = 1000",
        "local MOST_MOVED = 1000000",
    ),
    (
        "moved_not_told",
        "return {requeued, ended, moved}",
        "return {requeued, ended, 0}",
    ),
];

pub(super) const LEAVE: &[Change] = &[
    (
        "feeds_not_returned",
        "while moved < MOST and redis.call",
        "while false and redis.call",
    ),
    ("feeds_turned_round", "'LEFT', 'RIGHT'", "'RIGHT', 'RIGHT'"),
    (
        "feeds_to_the_wrong_end",
        "'LEFT', 'RIGHT'",
        "'RIGHT', 'LEFT'",
    ),
    (
        "listener_not_removed",
        "redis.call('ZREM', KEYS[1], ARGV[k / 2])",
        "",
    ),
    ("wrong_listener_removed", "ARGV[k / 2]", "ARGV[1]"),
    (
        "all_listeners_removed",
        "redis.call('ZREM', KEYS[1], ARGV[k / 2])",
        "redis.call('DEL', KEYS[1])",
    ),
    ("bound_removed", "local MOST = 1000", "local MOST = 1000000"),
    ("more_never_told", "moved >= MOST and 1 or 0", "0"),
    ("moved_not_told", "return {moved,", "return {0,"),
];
