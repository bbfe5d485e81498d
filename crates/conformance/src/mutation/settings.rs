//! Changes of configure and run_now.

use super::Change;

/// What is set.
pub(super) const CONFIGURE: &[Change] = &[
    (
        "nothing_changed",
        "if n > 0 then change(base, 4, n) end",
        "",
    ),
    ("the_others_forgotten", "do put(name, value) end", "do end"),
    (
        "not_written",
        "redis.call('HSET', CONFIG, 'queue:' .. base, table.concat(kept, ' '))",
        "",
    ),
    (
        "what_is_taken_away_kept",
        "if value_of[name] ~= '' then kept",
        "if true then kept",
    ),
    (
        "a_field_left_where_nothing_is_set",
        "else redis.call('HDEL', CONFIG, 'queue:' .. base) end",
        "end",
    ),
    ("only_the_first_setting", "    a = a + 2\n", ""),
    (
        "a_weight_among_the_others",
        "if not key then put(name, value)",
        "if true then put(name, value)",
    ),
    (
        "a_weight_not_taken_away",
        "elseif value == '' then",
        "elseif false then",
    ),
    (
        "one_weight_for_all_keys",
        "else redis.call('HSET', CONFIG, 'weight:' .. base .. ' ' .. key, value) end",
        "else redis.call('HSET', CONFIG, 'weight:' .. base, value) end",
    ),
    (
        "another_rate_goes_on_where_the_last_one_was",
        "if name == 'rate' then redis.call('DEL', RATES .. base) end",
        "",
    ),
    (
        "any_setting_begins_the_rate_anew",
        "if name == 'rate' then redis",
        "if true then redis",
    ),
];

/// Who takes a slot.
pub(super) const SEAT: &[Change] = &[
    (
        "what_runs_takes_none",
        "leases, over = walk(LEASES, a, seat)",
        "",
    ),
    (
        "looked_for_where_nothing_is_set",
        "if set and (set.concurrency or set.key_concurrency) then",
        "if true then",
    ),
    (
        "what_does_not_run_takes_one",
        "if has.status ~= 'started' or not",
        "if not",
    ),
    (
        "a_job_that_names_no_queue_ends_the_call",
        "'started' or not has.mw_queue or",
        "'started' or",
    ),
    (
        "those_of_other_queues_take_one",
        "not has.mw_queue or base_of(has.mw_queue) ~= base then return end",
        "not has.mw_queue then return end",
    ),
    (
        "those_of_other_priorities_take_none",
        "base_of(has.mw_queue) ~= base then return end",
        "has.mw_queue ~= base then return end",
    ),
    (
        "none_of_the_queue",
        "took = redis.call('ZADD', SLOTS .. base, 'NX', whole(now), id)",
        "",
    ),
    (
        "one_of_the_queue_where_only_keys_are_limited",
        "if set.concurrency then took",
        "if true then took",
    ),
    (
        "none_of_the_key",
        "took = took + redis.call('ZADD', SLOTS .. member(base, has.mw_key), 'NX', whole(now), id)",
        "",
    ),
    (
        "one_without_a_key_ends_the_call",
        "if set.key_concurrency and has.mw_key then",
        "if set.key_concurrency then",
    ),
    (
        "taken_anew",
        "SLOTS .. base, 'NX', whole(now), id)",
        "SLOTS .. base, whole(now), id)",
    ),
    (
        "the_keys_taken_anew",
        "has.mw_key), 'NX', whole(now), id)",
        "has.mw_key), whole(now), id)",
    ),
    (
        "told_that_it_took_one_again",
        "  if took == 0 then return end\n",
        "",
    ),
    (
        "its_record_does_not_know_which",
        "'mw_slot', base, 'mw_with', '1')",
        "'mw_with', '1')",
    ),
    (
        "its_record_does_not_tell_of_it",
        "'mw_slot', base, 'mw_with', '1')",
        "'mw_slot', base)",
    ),
    ("not_told", "  seated = seated + 1\n", ""),
];

/// How all are walked through, and who is looked at again.
pub(super) const WALK: &[Change] = &[
    (
        "one_step_and_no_more",
        "if #found < 2 * PAGE then return '', 0 end",
        "if true then return '', 0 end",
    ),
    (
        "one_passed_over_in_each_step",
        "last == from and same + skip or same",
        "last == from and same + skip + 1 or same + 1",
    ),
    (
        "what_moved_is_passed_over",
        "if found[i + 1] == last and not moved then",
        "if found[i + 1] == last then",
    ),
    (
        "what_is_set_aside_stays_there",
        "return redis.call('ZADD', HELD, 'LT', 'CH', whole(now), name) == 1",
        "return false",
    ),
    (
        "what_is_overdue_put_off",
        "HELD, 'LT', 'CH', whole(now)",
        "HELD, 'CH', whole(now)",
    ),
    (
        "the_keys_of_other_queues_looked_at",
        "if not queue or base_of(queue) ~= base then return false end",
        "if not queue then return false end",
    ),
    (
        "nobody_told_that_keys_are_looked_at",
        "  freed = freed + 1\n",
        "",
    ),
    ("nobody_woken", "if freed > 0 then wake() end", ""),
    (
        "woken_for_nothing",
        "if freed > 0 then wake() end",
        "wake()",
    ),
];

pub(super) const RUN_NOW: &[Change] = &[
    (
        "a_list_taken_for_a_job",
        "if not there(KEYS[1]) then return done('missing') end",
        "",
    ),
    (
        "an_ended_job_called_ready",
        "if final(has.status) then return done('ended') end",
        "",
    ),
    (
        "a_run_called_ready",
        "if has.status == 'started' then return done('running') end",
        "",
    ),
    (
        "its_time_kept",
        "if due and due > now then\n  redis",
        "if false then\n  redis",
    ),
    (
        "one_that_is_due_put_off",
        "if due and due > now then\n  redis",
        "if due then\n  redis",
    ),
    (
        "its_time_not_written",
        "  redis.call('HSET', key, 'mw_run_at', whole(now))\n",
        "",
    ),
    ("delayed_once_more", "  has.mw_run_at = whole(now)\n", ""),
    (
        "one_that_waits_for_others_called_ready",
        "if has.mw_waiting then return done('waiting') end",
        "",
    ),
    (
        "in_its_queue_twice",
        "if redis.call('ZREM', DELAYED, id) == 0 then return done('ready') end",
        "redis.call('ZREM', DELAYED, id)",
    ),
    (
        "delayed_and_queued",
        "redis.call('ZREM', DELAYED, id) == 0",
        "not redis.call('ZSCORE', DELAYED, id)",
    ),
    (
        "change_not_dated",
        "done('ready') end\nredis.call('HSET', key, 'updated_at', iso(now))",
        "done('ready') end",
    ),
    ("not_told", "event(id, 'run_now', ARGV[2])\n", ""),
    (
        "who_asked_not_told",
        "event(id, 'run_now', ARGV[2])",
        "event(id, 'run_now')",
    ),
    (
        "nowhere_any_more",
        "deliver('LPUSH', id, key, has, has.mw_queue or KEYS[2], now)",
        "",
    ),
    (
        "before_all_others",
        "deliver('LPUSH', id, key, has, has.mw_queue or",
        "deliver('RPUSH', id, key, has, has.mw_queue or",
    ),
    (
        "lost_where_its_record_names_no_queue",
        "has, has.mw_queue or KEYS[2], now)",
        "has, has.mw_queue, now)",
    ),
];
