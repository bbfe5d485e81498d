//! Changes of claim.

use super::Change;

pub(super) const CLAIM: &[Change] = &[
    (
        "lease_not_written",
        "redis.call('ZADD', LEASES, unpack(leases))",
        "",
    ),
    (
        "deadline_now",
        "deadline = whole(now + tonumber(ARGV[a + 1]))",
        "deadline = whole(now)",
    ),
    (
        "deadline_late",
        "deadline = whole(now + tonumber(ARGV[a + 1]))",
        "deadline = whole(now + tonumber(ARGV[a + 1]) + 1)",
    ),
    (
        "attempt_not_counted",
        "(tonumber(is.mw_attempt or '') or 0) + 1",
        "tonumber(is.mw_attempt or '') or 0",
    ),
    (
        "attempts_forgotten",
        "(tonumber(is.mw_attempt or '') or 0) + 1",
        "1",
    ),
    (
        "attempt_not_written",
        "'mw_attempt', attempt, 'mw_started'",
        "'mw_started'",
    ),
    (
        "attempt_not_told",
        "queue, attempt, record",
        "queue, 1, record",
    ),
    ("token_not_written", "'mw_token', ask.token,", ""),
    ("worker_not_written", "'mw_worker', ask.worker, ", ""),
    (
        "queue_not_written",
        "'mw_queue', queue, 'mw_attempt'",
        "'mw_attempt'",
    ),
    (
        "feed_taken_for_the_queue",
        "'mw_queue', queue, 'mw_attempt'",
        "'mw_queue', KEYS[k + 1], 'mw_attempt'",
    ),
    (
        "status_not_written",
        "'status', 'started', 'updated_at', ask.at",
        "'updated_at', ask.at",
    ),
    (
        "change_not_dated",
        "'updated_at', ask.at, 'mw_token'",
        "'mw_token'",
    ),
    (
        "job_runs_beside_itself",
        "(status == 'started' and not redis.call('ZSCORE', LEASES, id))",
        "status == 'started'",
    ),
    (
        "abandoned_job_never_runs",
        "status == 'started' and not",
        "false and not",
    ),
    (
        "ended_job_runs_again",
        "if not free(is, id) then",
        "if not free(is, id) and not final(is.status) then",
    ),
    (
        "job_without_status_never_runs",
        "return status == nil or",
        "return false or",
    ),
    ("job_with_empty_status_never_runs", " or status == ''", ""),
    (
        "job_made_up",
        "#record == 0 or not takeable",
        "not takeable",
    ),
    (
        "dropped_not_counted",
        "not takeable(is, id, KEYS[k]) then\n    dropped = dropped + 1",
        "not takeable(is, id, KEYS[k]) then",
    ),
    (
        "a_list_like_a_job_ends_the_claim",
        "redis.pcall('HGETALL', key)",
        "redis.call('HGETALL', key)",
    ),
    (
        "a_key_like_a_queue_ends_the_claim",
        "redis.pcall('RPOP', KEYS[k],",
        "redis.call('RPOP', KEYS[k],",
    ),
    (
        "ids_taken_although_no_lease_can_be_given",
        "redis.call('ZCARD', LEASES)",
        "",
    ),
    ("record_not_told", "attempt, record}", "attempt, {}}"),
    (
        "more_than_wanted",
        "math.min(ask.want, g and g.left or MOST, MOST - looked)",
        "math.min(g and g.left or MOST, MOST - looked)",
    ),
    ("slots_not_counted", "ask.want = ask.want - 1", ""),
    (
        "bound_removed",
        "local MOST = 1000 -- ids",
        "local MOST = 1000000 -- ids",
    ),
    (
        "more_never_told",
        "(walked or looked >= MOST) and 1 or 0",
        "0",
    ),
    (
        "more_always_told",
        "(walked or looked >= MOST) and 1 or 0",
        "1",
    ),
    ("dropped_never_told", "return {dropped,", "return {0,"),
    (
        "waiting_job_runs",
        "is.mw_waiting or given[id]",
        "given[id]",
    ),
    ("claim_not_told", "event(id, 'claim', ask.worker)", ""),
];

pub(super) const CLAIM_ORDER: &[Change] = &[
    (
        "id_not_removed_from_the_queue",
        "looked = looked + #ids\n",
        "looked = looked + #ids for _, id in ipairs(ids) do redis.call('RPUSH', KEYS[k], id) end\n",
    ),
    (
        "taken_from_the_wrong_end",
        "redis.pcall('RPOP', KEYS[k],",
        "redis.pcall('LPOP', KEYS[k],",
    ),
    (
        "only_the_first_queue",
        "for k = first, #KEYS, 3 do from_queue",
        "for k = first, first, 3 do from_queue",
    ),
    (
        "queues_in_the_wrong_order",
        "for k = first, #KEYS, 3 do from_queue",
        "for k = #KEYS - 2, first, -3 do from_queue",
    ),
    (
        "queue_told_wrong",
        "{id, queue, attempt",
        "{id, KEYS[1], attempt",
    ),
    (
        "feeds_not_looked_at",
        "for k = first, #KEYS, 3 do from_feed",
        "for k = first, 0, 3 do from_feed",
    ),
    (
        "feeds_after_the_queues",
        "if may then id = redis.call('RPOP', KEYS[k + 1])",
        "if false then id = nil",
    ),
    (
        "id_not_removed_from_the_feed",
        "id = redis.call('RPOP', KEYS[k + 1])",
        "id = redis.call('LINDEX', KEYS[k + 1], -1)",
    ),
    (
        "fed_from_the_wrong_end",
        "id = redis.call('RPOP', KEYS[k + 1])",
        "id = redis.call('LPOP', KEYS[k + 1])",
    ),
    (
        "surplus_not_returned",
        "else id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end",
        "end",
    ),
    (
        "surplus_thrown_away",
        "else id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end",
        "else id = redis.call('LPOP', KEYS[k + 1]) end",
    ),
    (
        "surplus_turned_round",
        "KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT'",
        "KEYS[k + 1], KEYS[k], 'RIGHT', 'RIGHT'",
    ),
    (
        "surplus_to_the_wrong_end",
        "KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT'",
        "KEYS[k + 1], KEYS[k], 'RIGHT', 'LEFT'",
    ),
    (
        "surplus_of_a_spoilt_queue_ends_the_claim",
        "redis.pcall('LMOVE', KEYS[k + 1]",
        "redis.call('LMOVE', KEYS[k + 1]",
    ),
    (
        "surplus_of_a_spoilt_queue_counts",
        " or id.err then break end\n    looked",
        " then break end\n    looked",
    ),
];

pub(super) const CLAIM_LOCKS: &[Change] = &[
    (
        "lock_ignored",
        "return is.status ~= 'started' and unlocked(is.mw_lock, id)",
        "return true",
    ),
    (
        "old_list_needs_itself",
        "if not is.mw_lock or is.mw_lock == list then",
        "if not is.mw_lock then",
    ),
    (
        "a_key_like_an_old_list_locks",
        "if type(length) ~= 'number' then return true end",
        "if type(length) ~= 'number' then return false end",
    ),
    (
        "a_key_like_an_old_list_ends_the_claim",
        "local length = redis.pcall('LLEN', list)\n  if type(length) ~= 'number' then",
        "local length = redis.call('LLEN', list)\n  if type(length) ~= 'number' then",
    ),
    (
        "other_end_not_searched",
        "return redis.call('LREM', list, 1, id) == 1",
        "return false",
    ),
    (
        "lock_taken_twice",
        "return redis.call('LREM', list, -1, id) == 1",
        "return true",
    ),
    (
        "walks_not_bounded",
        "walked = walked or length > 2 * NEAR",
        "walked = false",
    ),
    (
        "walks_for_feeds_not_bounded",
        "while looked < MOST and not walked do",
        "while looked < MOST do",
    ),
    (
        "walks_within_a_call_not_bounded",
        "if walked or looked > MOST then",
        "if looked > MOST then",
    ),
    (
        "rest_turned_round",
        "for j = #ids, i, -1 do",
        "for j = i, #ids do",
    ),
    (
        "rest_thrown_away",
        "redis.call('RPUSH', KEYS[k], ids[j])",
        "",
    ),
    ("short_walk_ends_the_call", "length > 2 * NEAR", "true"),
    (
        "lock_kept",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen')\n    redis.pcall('ZREM', WATCH, id)",
        "redis.pcall('ZREM', WATCH, id)",
    ),
    (
        "still_watched",
        "    redis.pcall('ZREM', WATCH, id)\n  end\n  -- A key",
        "  end\n  -- A key",
    ),
    (
        "still_watched_for_its_fallback",
        "if is.mw_lock or is.mw_fallback or is.mw_seen then",
        "if is.mw_lock or is.mw_seen then",
    ),
    (
        "fallback_forgotten",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen')\n    redis.pcall",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_fallback')\n    redis.pcall",
    ),
    (
        "no_list_is_old",
        "if legacy then redis.call('HSET', key, 'mw_legacy', '1') end",
        "",
    ),
    (
        "run_by_an_old_worker_and_ours",
        "return is.status ~= 'started' and unlocked",
        "return unlocked",
    ),
    (
        "all_lists_are_old",
        "if legacy then redis.call",
        "if true then redis.call",
    ),
    (
        "back_to_the_old_list",
        "legacy and home(is) or KEYS[k + 2]",
        "KEYS[k]",
    ),
    (
        "home_not_as_the_record_says",
        "legacy and home(is) or KEYS[k + 2]",
        "KEYS[k + 2]",
    ),
    (
        "home_of_its_type_only",
        "return has.mw_queue or (script_type",
        "return (script_type",
    ),
];
