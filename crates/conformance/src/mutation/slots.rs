//! Changes of what limits queues and keys.

use super::Change;

/// How a queue is set.
pub(super) const SETTINGS: &[Change] = &[
    (
        "settings_of_each_priority",
        "return string.match(queue, '^(.*):prio:%d+$') or queue",
        "return queue",
    ),
    (
        "no_setting_read",
        "if type(text) == 'string' then",
        "if false then",
    ),
    (
        "a_limit_that_is_no_number_ends_the_call",
        "        set[name] = tonumber(set[name] or '')\n",
        "",
    ),
];

/// How many start in a while.
pub(super) const RATES: &[Change] = &[
    (
        "a_rate_that_is_none_is_one",
        " or n < 1 or ms < 1 then",
        " then",
    ),
    (
        "a_rate_of_no_kind_is_one",
        "if (kind ~= 'window' and kind ~= 'bucket') or n < 1",
        "if not kind or n < 1",
    ),
    (
        "a_window_never_ends",
        "or now >= at + ms then used, at",
        "then used, at",
    ),
    (
        "a_window_ends_late",
        "or now >= at + ms then",
        "or now > at + ms then",
    ),
    (
        "a_window_ends_early",
        "or now >= at + ms then",
        "or now >= at + ms - 1 then",
    ),
    (
        "a_window_moves_with_each_start",
        "{used = used, at = at, ms",
        "{used = used, at = now, ms",
    ),
    (
        "a_window_of_the_future_holds",
        "not at or now < at or",
        "not at or",
    ),
    (
        "a_window_lets_one_more_start",
        "return math.max(0, n - used), at",
        "return math.max(0, n + 1 - used), at",
    ),
    (
        "the_wait_for_a_window_is_its_length",
        "n - used), at + ms - now,",
        "n - used), ms,",
    ),
    (
        "a_bucket_never_fills_again",
        "math.max(0, now - at) * n / ms",
        "0",
    ),
    (
        "a_bucket_fills_with_the_clock_set_back",
        "used - math.max(0, now - at) * n / ms",
        "used - math.abs(now - at) * n / ms",
    ),
    (
        "a_bucket_overflows",
        "used = at and math.max(0, used",
        "used = at and (used",
    ),
    (
        "a_bucket_holds_one_more",
        "local left = math.floor(burst",
        "local left = math.floor(1 + burst",
    ),
    (
        "a_bucket_holds_what_it_lets_through",
        "burst = tonumber(burst) or n",
        "burst = n",
    ),
    (
        "a_bucket_lets_parts_through",
        "math.floor(burst - used + 1e-9)",
        "math.ceil(burst - used - 1e-9)",
    ),
    (
        "the_wait_for_a_bucket_is_too_short",
        "math.ceil((used - burst + 1) * ms / n - 1e-6)",
        "math.ceil((used - burst + 1) * ms / n - 1e-6) - 1",
    ),
    (
        "starts_not_counted",
        "state.used = state.used + n",
        "state.used = state.used",
    ),
    (
        "starts_forgotten",
        "redis.call('SET', RATES .. name,",
        "redis.call('SET', RATES .. name .. 'x',",
    ),
];

/// How many run at once.
pub(super) const SLOTS: &[Change] = &[
    (
        "one_more_runs",
        "local left = limit - held",
        "local left = limit - held + 1",
    ),
    (
        "a_key_like_slots_ends_the_call",
        "redis.pcall('ZCARD', slots)",
        "redis.call('ZCARD', slots)",
    ),
    (
        "leaks_not_found",
        "    if not redis.call('ZSCORE', LEASES, id) then\n      redis.call('ZREM', slots, id)",
        "    if false then\n      redis.call('ZREM', slots, id)",
    ),
    (
        "runs_taken_for_leaks",
        "    if not redis.call('ZSCORE', LEASES, id) then\n      redis.call('ZREM', slots, id)",
        "    if true then\n      redis.call('ZREM', slots, id)",
    ),
    (
        "leaks_found_but_kept",
        "      redis.call('ZREM', slots, id)\n",
        "",
    ),
];

/// What a queue lets start.
pub(super) const GATE: &[Change] = &[
    (
        "a_pause_ignored",
        "if set.paused == '1' then g.left = 0 end",
        "",
    ),
    (
        "paused_whatever_it_says",
        "if set.paused == '1' then",
        "if set.paused then",
    ),
    (
        "no_limit_at_once",
        "if set.concurrency and g.left > 0 then",
        "if false then",
    ),
    (
        "no_rate",
        "if set.rate and g.left > 0 then",
        "if false then",
    ),
    (
        "the_rate_alone_counts",
        "g.left = math.min(g.left, left)",
        "g.left = left",
    ),
    ("a_gate_for_each_list", "  gates[set.base] = g\n", ""),
    (
        "ids_taken_although_none_can_be_set_aside",
        "if set.fair or set.key_concurrency or set.key_rate then redis.call('ZCARD', HELD) end",
        "",
    ),
    (
        "no_limit_of_a_key",
        "if key and set.key_concurrency then\n    left",
        "if false then\n    left",
    ),
    (
        "a_key_has_one_more",
        "if left <= 0 then return set_aside(",
        "if left < 0 then return set_aside(",
    ),
    ("no_rate_of_a_key", "if may < 1 then", "if false then"),
    (
        "a_keys_starts_not_counted",
        "    spend(name, state, 1)\n",
        "",
    ),
    (
        "a_keys_rate_is_the_queues",
        "allowance(set.key_rate, name, now)\n    if may",
        "allowance(set.key_rate, set.base, now)\n    if may",
    ),
    (
        "a_job_over_its_rate_is_looked_at_late",
        "set_aside(queue, key, id, is, now + wait)",
        "set_aside(queue, key, id, is, now + LOOK_EVERY)",
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
        "a_turn_not_passed_on",
        "if key and set.fair and left > 1 then forward(",
        "if false then forward(",
    ),
    (
        "a_turn_passed_on_without_a_slot",
        "if key and set.fair and left > 1 then",
        "if key and set.fair then",
    ),
    (
        "a_head_counts_for_ever",
        "redis.call('ZREM', HEADS .. member(queue, key), id) end\n  local left",
        "end\n  local left",
    ),
    (
        "no_slot_taken",
        "if set.concurrency then redis.pcall('ZADD', SLOTS .. set.base, whole(now), id) end",
        "",
    ),
    (
        "no_slot_of_its_key_taken",
        "if key and set.key_concurrency then redis.pcall('ZADD', SLOTS .. name, whole(now), id) end",
        "",
    ),
    (
        "a_slot_that_cannot_be_taken_ends_the_claim",
        "if set.concurrency then redis.pcall('ZADD'",
        "if set.concurrency then redis.call('ZADD'",
    ),
    (
        "its_slot_not_noted",
        "return {'mw_slot', set.base, 'mw_with', '1'}",
        "return {'mw_with', '1'}",
    ),
    (
        "that_it_has_a_slot_not_noted",
        "{'mw_slot', set.base, 'mw_with', '1'}",
        "{'mw_slot', set.base}",
    ),
    (
        "never_told_to_wait",
        "if g.left > 0 then return 0 end",
        "if true then return 0 end",
    ),
    (
        "a_free_rate_asked_for_at_once",
        "return left > 0 and RECHECK or math.max",
        "return math.max",
    ),
    (
        "the_wait_for_a_rate_not_told",
        "return g.wait or RECHECK end",
        "return RECHECK end",
    ),
];

/// What a claim adds.
pub(super) const CLAIM: &[Change] = &[
    (
        "lease_of_a_slot_not_written",
        "if slot then return redis.call('ZADD', LEASES, ask.deadline, id) end",
        "if slot then return end",
    ),
    ("set_aside_and_run", "if slot == false then return end", ""),
    (
        "a_closed_queue_is_taken_from",
        "while ask.want > 0 and (not g or g.left > 0) and looked",
        "while ask.want > 0 and looked",
    ),
    (
        "more_popped_than_the_limit_leaves",
        "math.min(ask.want, g and g.left or MOST,",
        "math.min(ask.want, MOST,",
    ),
    (
        "a_closed_queues_ids_stay_with_the_worker",
        "local may, id = ask.want > 0 and (not g or g.left > 0)",
        "local may, id = ask.want > 0",
    ),
    (
        "gates_looked_at_too_late",
        "gates[k] = gate(ask.homes[k] or list(k), ask.now)",
        "gates[k] = nil",
    ),
    (
        "the_queue_of_an_old_list_is_not_asked",
        "gate(ask.homes[k] or list(k), ask.now)",
        "gate(list(k), ask.now)",
    ),
    (
        "held_not_told",
        "    if ms > 0 then\n",
        "    if false then\n",
    ),
    (
        "held_by_the_wrong_place",
        "held[#held + 1] = k\n",
        "held[#held + 1] = k + 1\n",
    ),
    (
        "twice_in_one_call",
        "is.mw_waiting or given[id] or",
        "is.mw_waiting or",
    ),
    ("its_start_not_noted", "'mw_started', ask.since, ", ""),
    (
        "starts_not_counted_in_figures",
        "count(queue, 'started')",
        "",
    ),
];
