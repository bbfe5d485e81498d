//! Changes of turns and of what is set aside.

use super::Change;

/// Who has his turn.
pub(super) const KEYED: &[Change] = &[
    (
        "all_are_heads",
        "local free = weight(set, key) - redis.call('ZCARD', heads)",
        "local free = weight(set, key)",
    ),
    (
        "each_key_weighs_one",
        "return math.max(1, math.min(w, MOST_WEIGHT))",
        "return 1",
    ),
    (
        "weights_unbounded",
        "math.max(1, math.min(w, MOST_WEIGHT))",
        "math.max(1, w)",
    ),
    (
        "a_weight_may_be_none",
        "math.max(1, math.min(w, MOST_WEIGHT))",
        "math.min(w, MOST_WEIGHT)",
    ),
    (
        "set_aside_out_of_order",
        "tonumber(has.mw_seq or '') or 0, id)\n  redis.call('ZADD', HELD",
        "0 - (tonumber(has.mw_seq or '') or 0), id)\n  redis.call('ZADD', HELD",
    ),
    (
        "nobody_looks_after_what_is_set_aside",
        "  redis.call('ZADD', HELD, 'LT', whole(due), member(queue, key))\n",
        "",
    ),
    (
        "passes_what_is_set_aside",
        "redis.call('EXISTS', BACKLOG .. name) == 1 or turns",
        "turns",
    ),
    (
        "a_head_not_noted",
        "  redis.call('ZADD', HEADS .. name, tonumber(has.mw_seq or '') or 0, id)\n  return true",
        "  return true",
    ),
    (
        "turns_without_fairness",
        "if not (set and set.fair) then return true end",
        "",
    ),
];

/// What leaves its queue.
pub(super) const STRIKE: &[Change] = &[
    (
        "a_turn_lost_with_its_head",
        "forward('LPUSH', queue, has.mw_key, 1, settings(queue))",
        "",
    ),
    (
        "what_is_set_aside_stays_so",
        "  redis.call('ZREM', BACKLOG .. member(queue, has.mw_key), id)\n",
        "",
    ),
    (
        "a_turn_passed_on_that_was_none",
        "if redis.call('ZREM', HEADS .. member(queue, has.mw_key), id) == 1 then",
        "if true then",
    ),
];

/// What a run gives back.
pub(super) const UNLEASE: &[Change] = &[
    (
        "a_slot_kept",
        "  redis.pcall('ZREM', SLOTS .. base, id)\n",
        "",
    ),
    (
        "a_slot_of_its_key_kept",
        "redis.pcall('ZREM', SLOTS .. member(base, has.mw_key), id) ~= 1",
        "redis.call('ZCARD', SLOTS .. member(base, has.mw_key)) == 0",
    ),
    (
        "the_next_of_its_key_not_called",
        "if forward('RPUSH', base .. priority, has.mw_key, 1, settings(base)) > 0 then return end",
        "",
    ),
    (
        "the_next_of_its_key_comes_last",
        "forward('RPUSH', base .. priority",
        "forward('LPUSH', base .. priority",
    ),
    (
        "all_of_its_key_called",
        "has.mw_key, 1, settings(base)) > 0",
        "has.mw_key, 99, settings(base)) > 0",
    ),
    (
        "the_slot_noted_for_ever",
        "  redis.call('HDEL', key, 'mw_slot')\n",
        "",
    ),
    (
        "a_key_like_slots_ends_the_end",
        "redis.pcall('ZREM', SLOTS .. base, id)",
        "redis.call('ZREM', SLOTS .. base, id)",
    ),
];

/// What is looked at again.
pub(super) const RECHECK: &[Change] = &[
    (
        "nobody_looks_again",
        "if looked < most then looked = looked + recheck(now, most - looked) end",
        "",
    ),
    (
        "a_key_without_a_slot_called",
        "if n <= 0 then return 0, pause end -- the next end of a run brings the next",
        "n = math.max(n, 1)",
    ),
    (
        "looked_at_in_vain",
        "if left > 0 and state then wait = math.max(wait, state.each or 0) end",
        "",
    ),
    (
        "a_rate_ignored",
        "n, pause = math.min(n, left), math.max(1, math",
        "n, pause = n, math.max(1, math",
    ),
    (
        "turns_ignored",
        "n, pause = math.min(n, free), math.max(pause, LOOK_EVERY)",
        "pause = math.max(pause, LOOK_EVERY)",
    ),
    (
        "lost_heads_not_found",
        "if free <= 0 then free = lost(queue, member(queue, key)) end",
        "",
    ),
    (
        "heads_taken_for_lost",
        "if not redis.call('LPOS', queue, id) then",
        "if true then",
    ),
    ("newest_first", "how == 'RPUSH' and moved + 1 - i or i", "i"),
    (
        "all_at_once",
        "local MOST_AT_ONCE = 100",
        "local MOST_AT_ONCE = 100000",
    ),
    (
        "looked_at_for_ever",
        "redis.call('ZADD', HELD, whole(now + pause), name)\n    else redis.call('ZREM', HELD, name) end",
        "redis.call('ZADD', HELD, whole(now + pause), name)\n    else redis.call('ZADD', HELD, whole(now + LOOK_EVERY), name) end",
    ),
    (
        "only_retries_are_waited_for",
        "for _, set in ipairs({DELAYED, HELD, SCHEDULES}) do",
        "for _, set in ipairs({DELAYED, SCHEDULES}) do",
    ),
    (
        "the_later_one_told",
        "at < first) then at = first",
        "at > first) then at = first",
    ),
    (
        "into_a_key_that_is_no_list",
        "if most < 1 or type(redis.pcall('LLEN', queue)) ~= 'number' then return 0 end",
        "if most < 1 then return 0 end",
    ),
    (
        "promoted_without_a_date",
        "    redis.call('HSET', key, 'updated_at', at) -- since when it is ready\n",
        "",
    ),
];

/// A stop that gives back.
pub(super) const CANCEL: &[Change] = &[
    (
        "a_slot_kept_by_force",
        "unlease(id, KEYS[1], has)\nstop",
        "redis.call('ZREM', LEASES, id)\nstop",
    ),
    (
        "a_turn_lost",
        "  if has.mw_with then strike(has.mw_queue, id, more(key, has)) end\n  count",
        "  count",
    ),
];

/// A deletion that gives back.
pub(super) const DELETE: &[Change] = &[
    (
        "a_slot_kept",
        "unlease(id, KEYS[1], has)\n",
        "more(KEYS[1], has)\n",
    ),
    (
        "a_turn_lost",
        "strike(has.mw_queue or KEYS[2], id, has)\n",
        "",
    ),
    ("a_name_kept", "unclaim(id, has)\nunqueue", "unqueue"),
];

/// A loss that gives back.
pub(super) const RECLAIM: &[Change] = &[(
    "a_slot_kept",
    "  unlease(id, key, has)\n",
    "  redis.call('ZREM', LEASES, id)\n",
)];

/// A release that gives back.
pub(super) const RELEASE: &[Change] = &[(
    "a_slot_kept",
    "unlease(id, key, has)\nredis",
    "redis.call('ZREM', LEASES, id)\nredis",
)];

/// A failure that gives back.
pub(super) const FAIL: &[Change] = &[
    (
        "a_slot_kept",
        "unlease(id, key, has)\nredis",
        "redis.call('ZREM', LEASES, id)\nredis",
    ),
    (
        "its_kind_not_counted",
        "count(queue, 'error:' .. ARGV[12])",
        "",
    ),
    ("a_retry_not_counted", "count(queue, 'retried')", ""),
    (
        "its_time_not_counted",
        "ran(has.mw_queue, has.mw_started, now)\nif again",
        "if again",
    ),
];
