//! Changes of what limits routes of Bananas, and of what counts their jobs.

use super::Change;

/// How routes are limited, and what is counted of them.
pub(super) const CLAIM: &[Change] = &[
    (
        "limits_ignored",
        "gate_of[k] = gate(route_of(KEYS[k]), now)",
        "gate_of[k] = nil",
    ),
    (
        "a_route_that_is_full_is_taken_from",
        "want > 0 and (not g or g.left > 0) and",
        "want > 0 and",
    ),
    ("a_gate_for_each_list", "  gates[set.base] = g\n", ""),
    (
        "no_slot_taken",
        "  redis.pcall('ZADD', SLOTS .. route_of(KEYS[k]), whole(now), hold)\n",
        "",
    ),
    (
        "a_slot_of_the_list",
        "SLOTS .. route_of(KEYS[k])",
        "SLOTS .. KEYS[k]",
    ),
    (
        "slots_of_another_kind_end_all",
        "redis.pcall('ZADD', SLOTS",
        "redis.call('ZADD', SLOTS",
    ),
    (
        "what_starts_is_not_counted_in_the_call",
        "g.left, g.spent = g.left - 1, g.spent + 1",
        "g.spent = g.spent + 1",
    ),
    (
        "starts_not_counted_for_the_rate",
        "g.left, g.spent = g.left - 1, g.spent + 1",
        "g.left = g.left - 1",
    ),
    (
        "nobody_told_that_it_is_full",
        "gate_of[k] and shut(gate_of[k], now) or 0",
        "0",
    ),
    (
        "the_wrong_list_is_told",
        "held[#held + 1] = (k + 1) / 2",
        "held[#held + 1] = k + 1",
    ),
    (
        "a_list_without_a_route_is_of_none",
        "#ROUTED + 1) or 'default'",
        "#ROUTED + 1) or ''",
    ),
    (
        "starts_not_counted",
        "  if started[k] then count(KEYS[k], 'started', started[k]) end\n",
        "",
    ),
    (
        "one_start_counted_for_each_call",
        "started[k] = (started[k] or 0) + 1",
        "started[k] = 1",
    ),
    (
        "counts_of_another_kind_end_all",
        "redis.pcall('HINCRBY', STATS",
        "redis.call('HINCRBY', STATS",
    ),
];

pub(super) const CONFIGURE: &[Change] = &[
    (
        "the_others_forgotten",
        "redis.call('HGET', CONFIG, 'queue:' .. base) or ''",
        "''",
    ),
    (
        "not_written",
        "redis.call('HSET', CONFIG, 'queue:' .. base, table.concat(kept, ' '))",
        "redis.call('EXISTS', CONFIG)",
    ),
    (
        "another_rate_goes_on_where_the_last_one_was",
        "redis.call('DEL', RATES .. base)",
        "redis.call('EXISTS', RATES .. base)",
    ),
    (
        "what_is_taken_away_kept",
        "if value_of[name] ~= '' then",
        "if true then",
    ),
    (
        "a_field_left_where_nothing_is_set",
        "redis.call('HDEL', CONFIG, 'queue:' .. base)",
        "redis.call('HSET', CONFIG, 'queue:' .. base, '')",
    ),
    (
        "only_the_first_limit",
        "change(ARGV[2], 4, tonumber(ARGV[3]))",
        "change(ARGV[2], 4, 1)",
    ),
];
