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
        "hand_out(id, queue, attempt, record)\nend\n\n-- What",
        "hand_out(id, queue, 1, record)\nend\n\n-- What",
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
        "and is.status ~= 'dispatched' then",
        "and is.status ~= 'dispatched' and is.status ~= 'started' then",
    ),
    (
        "abandoned_job_never_runs",
        "  if is.status ~= 'started' or (is.mw_lock",
        "  if true or (is.mw_lock",
    ),
    (
        "ended_job_runs_again",
        "and is.status ~= 'dispatched' then",
        "and is.status ~= 'dispatched' and not final(is.status) then",
    ),
    (
        "job_with_empty_status_never_runs",
        "  if is.status ~= '' and is.status ~= 'dispatched'",
        "  if is.status ~= 'dispatched'",
    ),
    (
        "job_made_up",
        "  if not is.status then\n",
        "  is.status = is.status or ''\n  if false then\n",
    ),
    (
        "dropped_not_counted",
        "useless(id, key, is, list(k), queue, legacy) then\n    dropped = dropped + 1",
        "useless(id, key, is, list(k), queue, legacy) then",
    ),
    (
        "a_list_like_a_job_ends_the_claim",
        "redis.pcall('HGETALL', key)",
        "redis.call('HGETALL', key)",
    ),
    (
        "a_key_like_a_queue_ends_the_claim",
        "redis.pcall('RPOP', list(k),",
        "redis.call('RPOP', list(k),",
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
        "if is.mw_waiting or given[id]",
        "if given[id]",
    ),
    ("claim_not_told", "event(id, 'claim', ask.worker)", ""),
    (
        "a_key_like_a_queue_among_others_ends_the_claim",
        "redis.pcall('LMPOP'",
        "redis.call('LMPOP'",
    ),
    (
        "lists_behind_a_key_like_a_queue_are_not_looked_at",
        "if popped.err then return false end",
        "if popped.err then return true end",
    ),
    (
        "a_plain_list_like_a_job_ends_the_claim",
        "redis.pcall('HLEN', key)",
        "redis.call('HLEN', key)",
    ),
    (
        "a_plain_job_runs_beside_itself",
        "  if record[1] ~= 'dispatched' then return end\n",
        "",
    ),
    (
        "other_fields_taken_for_ours",
        "    if not record[i] then return end\n",
        "",
    ),
    (
        "wishes_not_seen",
        "~= PLAIN then return end",
        "< PLAIN then return end",
    ),
    (
        "values_told_as_another_order",
        "'status', 'created_at', 'updated_at', 'id', 'script_type', 'caller_id',\n    'worker_id'",
        "'status', 'created_at', 'updated_at', 'id', 'script_type', 'worker_id',\n    'caller_id'",
    ),
    (
        "more_than_wanted_of_all",
        "call[n + 3] = math.min(ask.want, MOST - looked)",
        "call[n + 3] = MOST - looked",
    ),
    (
        "earlier_failure_not_marked",
        "return is.error or is.mw_stop or is.mw_lost or attempt ~= 1 end",
        "return false end",
    ),
];

pub(super) const CLAIM_ORDER: &[Change] = &[
    (
        "id_not_removed_from_the_queue",
        "looked = looked + #ids\n",
        "looked = looked + #ids for _, id in ipairs(ids) do redis.call('RPUSH', KEYS[k], id) end\n",
    ),
    (
        "taken_from_the_wrong_end",
        "'RIGHT', 'COUNT'",
        "'LEFT', 'COUNT'",
    ),
    (
        "only_the_first_queue",
        "sweep(first + n, #KEYS - ask.lists)",
        "sweep(first + n, 1)",
    ),
    (
        "queues_in_the_wrong_order",
        "for k = 1, n do from_queue(k, gates[k]) end",
        "for k = n, 1, -1 do from_queue(k, gates[k]) end",
    ),
    (
        "queue_told_wrong",
        "{id, queue, attempt",
        "{id, KEYS[1], attempt",
    ),
    (
        "feeds_not_looked_at",
        "for i, k in ipairs(ask.places) do from_feed",
        "for i, k in ipairs({}) do from_feed",
    ),
    ("feeds_after_the_queues", "and sweep(first, n, places)", ""),
    (
        "feed_of_another_list",
        "consider(popped[2], popped[1], places and places[k] or k)",
        "consider(popped[2], popped[1], k)",
    ),
    (
        "feed_back_to_another_list",
        "from_feed(KEYS[ask.feeds + i], k, gates[k])",
        "from_feed(KEYS[ask.feeds + i], i, gates[i])",
    ),
    (
        "id_not_removed_from_the_feed",
        "id = redis.call('RPOP', feed)",
        "id = redis.call('LINDEX', feed, -1)",
    ),
    (
        "fed_from_the_wrong_end",
        "id = redis.call('RPOP', feed)",
        "id = redis.call('LPOP', feed)",
    ),
    (
        "surplus_not_returned",
        "else id = redis.pcall('LMOVE', feed, list(k), 'LEFT', 'RIGHT') end",
        "end",
    ),
    (
        "surplus_thrown_away",
        "else id = redis.pcall('LMOVE', feed, list(k), 'LEFT', 'RIGHT') end",
        "else id = redis.call('LPOP', feed) end",
    ),
    (
        "surplus_turned_round",
        "feed, list(k), 'LEFT', 'RIGHT'",
        "feed, list(k), 'RIGHT', 'RIGHT'",
    ),
    (
        "surplus_to_the_wrong_end",
        "feed, list(k), 'LEFT', 'RIGHT'",
        "feed, list(k), 'RIGHT', 'LEFT'",
    ),
    (
        "surplus_of_a_spoilt_queue_ends_the_claim",
        "redis.pcall('LMOVE', feed",
        "redis.call('LMOVE', feed",
    ),
    (
        "surplus_of_a_spoilt_queue_counts",
        "if not id or id.err then break end",
        "if not id then break end",
    ),
    (
        "taken_from_the_wrong_end_of_a_gated_queue",
        "redis.pcall('RPOP', list(k),",
        "redis.pcall('LPOP', list(k),",
    ),
    (
        "only_the_first_gated_queue",
        "for k = 1, n do from_queue(k, gates[k]) end",
        "from_queue(1, gates[1])",
    ),
    (
        "surplus_not_looked_for",
        "local back = free and ask.want == 0 and n > 0",
        "local back = false",
    ),
    ("fed_for_another_queue", "places and places[k] or k", "k"),
];

pub(super) const CLAIM_LOCKS: &[Change] = &[
    (
        "lock_ignored",
        "return not is.mw_lock or is.mw_lock == list or unlocked(is.mw_lock, id)",
        "return true",
    ),
    (
        "old_list_needs_itself",
        "return not is.mw_lock or is.mw_lock == list or",
        "return not is.mw_lock or",
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
        "walks_within_a_call_not_bounded",
        "if walked or looked > MOST then",
        "if looked > MOST then",
    ),
    (
        "rest_turned_round",
        "for j = #ids, i, -1 do",
        "for j = i, #ids do",
    ),
    ("rest_thrown_away", "redis.call('RPUSH', from, ids[j])", ""),
    ("short_walk_ends_the_call", "length > 2 * NEAR", "true"),
    (
        "lock_kept",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen')\n    unwatch(id)",
        "unwatch(id)",
    ),
    (
        "still_watched",
        "    unwatch(id)\n  end\n  -- A key",
        "  end\n  -- A key",
    ),
    (
        "still_watched_for_its_fallback",
        "if is.mw_lock or is.mw_fallback or is.mw_seen or not is.mw_reply then",
        "if is.mw_lock or is.mw_seen then",
    ),
    (
        "fallback_forgotten",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen')\n    unwatch",
        "redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_fallback')\n    unwatch",
    ),
    (
        "no_list_is_old",
        "if legacy then redis.call('HSET', key, 'mw_legacy', '1') end",
        "",
    ),
    (
        "run_by_another_worker_and_ours",
        "  if is.status ~= 'started' or (is.mw_lock",
        "  is.status = is.status == 'started' and 'dispatched' or is.status\n  if true or (is.mw_lock",
    ),
    (
        "locked_job_deferred",
        " or (is.mw_lock and is.mw_lock ~= list) then return false end",
        " then return false end",
    ),
    (
        "leased_job_deferred",
        "  if redis.call('ZSCORE', LEASES, id) then return false end\n  -- Where",
        "  -- Where",
    ),
    (
        "deferred_and_forgotten",
        "redis.pcall('ZADD', WATCH, 'NX', whole(ask.now), id)",
        "1",
    ),
    (
        "deferred_where_nobody_looks",
        "    is.status = 'dispatched'\n    return false",
        "    return true",
    ),
    (
        "deferred_since_the_last_push",
        "redis.call('HSETNX', key, 'mw_seen', whole(ask.now)",
        "redis.call('HSET', key, 'mw_seen', whole(ask.now)",
    ),
    (
        "deferred_and_going_nowhere",
        "  redis.call('HSETNX', key, 'mw_queue', queue)\n",
        "",
    ),
    (
        "deferred_and_answered_elsewhere",
        "  if legacy and not is.mw_reply then redis.call('HSET', key, 'mw_legacy', '1') end\n",
        "",
    ),
    (
        "deferred_and_not_told",
        "  event(id, 'defer', '', 'another worker may run it')\n",
        "",
    ),
    (
        "left_on_the_old_list",
        "found = redis.call('LREM', old, -1, id) > 0 or found",
        "found = redis.call('LPOS', old, id) or found",
    ),
    (
        "marked_or_not_postponed",
        "  if is.mw_lock or is.mw_reply then return false end\n",
        "",
    ),
    (
        "postponed_where_nothing_migrates",
        "  if not phase then return false end\n",
        "",
    ),
    (
        "old_list_of_the_worker_forgotten",
        "JOB .. worker_id, OLD_WORK .. worker_id, set}, {}",
        "set}, {}",
    ),
    (
        "old_list_of_the_migration_forgotten",
        "OLD_WORK .. worker_id, set}, {}",
        "OLD_WORK .. worker_id}, {}",
    ),
    (
        "strolls_not_bounded",
        "  walked = walked or strolled > LONGEST_STROLL\n",
        "",
    ),
    (
        "second_push_not_waited_for",
        "  if found or is.mw_attempt or string.find(is.mw_seen",
        "  if true or string.find(is.mw_seen",
    ),
    (
        "postponed_on_an_old_list_too",
        "  if found or is.mw_attempt",
        "  if is.mw_attempt",
    ),
    (
        "postponed_after_it_waited",
        "  if found or is.mw_attempt or",
        "  if found or",
    ),
    (
        "postponed_for_ever",
        " or string.find(is.mw_seen or '', ' new', 1, true) then return false end",
        " then return false end",
    ),
    (
        "postponed_where_it_cannot_be",
        "  if type(redis.pcall('ZADD', DELAYED, whole(ask.now + GRACE), id)) ~= 'number' then return false end\n",
        "  redis.call('ZADD', DELAYED, whole(ask.now + GRACE), id)\n",
    ),
    (
        "postponed_for_too_short",
        "whole(ask.now + GRACE), id)",
        "whole(ask.now), id)",
    ),
    (
        "postponed_to_nowhere",
        "redis.call('HSET', key, 'mw_queue', queue, 'mw_seen', whole(ask.now) .. ' new')",
        "redis.call('HSET', key, 'mw_seen', whole(ask.now) .. ' new')",
    ),
    (
        "nobody_wakes_for_what_is_postponed",
        "  if redis.call('ZRANK', DELAYED, id) == 0 then wake() end\n",
        "",
    ),
    (
        "all_lists_are_old",
        "if legacy then redis.call",
        "if true then redis.call",
    ),
    (
        "back_to_the_old_list",
        "legacy and (home(is) or legacy) or list(k)",
        "list(k)",
    ),
    (
        "home_not_as_the_record_says",
        "legacy and (home(is) or legacy) or list(k)",
        "legacy or list(k)",
    ),
    (
        "home_of_its_type_only",
        "return has.mw_queue or (script_type",
        "return (script_type",
    ),
];
