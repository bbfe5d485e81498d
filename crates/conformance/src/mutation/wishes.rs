//! Changes of delays, unique names, shared events and figures.

use super::Change;

/// When a job comes.
pub(super) const DELAYS: &[Change] = &[
    (
        "a_delay_ignored",
        "if o.due and o.due > now then",
        "if false then",
    ),
    (
        "late_by_one",
        "if o.due and o.due > now then",
        "if o.due and o.due >= now then",
    ),
    (
        "in_means_at",
        "(o.delay and now + tonumber(o.delay))",
        "(o.delay and tonumber(o.delay))",
    ),
    (
        "its_time_not_noted",
        "if o.due then redis.call('HSET', key, 'mw_run_at', whole(o.due)) end",
        "",
    ),
    (
        "nobody_woken",
        "if redis.call('ZRANK', DELAYED, id) == 0 then ready.first = true end",
        "",
    ),
    (
        "woken_each_time",
        "if redis.call('ZRANK', DELAYED, id) == 0 then",
        "if true then",
    ),
    ("woken_many_times", "  redis.call('DEL', DUE)\n", ""),
    (
        "nothing_to_wait_in",
        "fault = (o.due or o.delay) and redis.pcall('ZCARD', DELAYED)",
        "fault = nil",
    ),
    (
        "nothing_to_be_set_aside_in",
        "o.seq or redis.pcall('ZCARD', HELD)",
        "o.seq",
    ),
    (
        "a_turn_ignored",
        "if o.key and not enters(",
        "if false and not enters(",
    ),
    (
        "not_numbered",
        "    o.seq = redis.pcall('INCR', SEQ)\n",
        "    o.seq = 7\n",
    ),
    (
        "what_is_wished_not_noted",
        "'mw_queue', queue, 'mw_with', '1')",
        "'mw_queue', queue)",
    ),
    (
        "draining_ignored",
        "if set and set.draining == '1' then return 'draining' end",
        "",
    ),
    (
        "draining_whatever_it_says",
        "if set and set.draining == '1' then",
        "if set and set.draining then",
    ),
    (
        "payload_ignored",
        "if bytes > set.payload then",
        "if false then",
    ),
    (
        "payload_one_less",
        "if bytes > set.payload then",
        "if bytes >= set.payload then",
    ),
    (
        "names_of_fields_are_payload",
        "for i = from + VALUES + 2, last, 2 do",
        "for i = from + VALUES + 1, last do",
    ),
    (
        "limit_not_counted_in_the_call",
        "return limit_of[queue] - #ids",
        "return limit_of[queue]",
    ),
    (
        "created_not_counted",
        "  count(queue, 'created')\n  event(id, 'enqueue', who, script_type)\n  return",
        "  event(id, 'enqueue', who, script_type)\n  return",
    ),
    (
        "created_not_counted_where_it_wishes",
        "  count(queue, 'created')\n  event(id, 'enqueue', who, script_type)\n  if not open",
        "  event(id, 'enqueue', who, script_type)\n  if not open",
    ),
    (
        "values_are_no_payload",
        "  for i = from, from + VALUES - 1 do bytes = bytes + #ARGV[i] end\n",
        "",
    ),
];

/// When a job that waited for others comes.
pub(super) const DELAYED: &[Change] = &[
    (
        "its_time_ignored",
        "if due and due > now then return",
        "if false then return",
    ),
    (
        "an_old_list_gets_it_early",
        "        if stands then\n          double",
        "        if true then\n          double",
    ),
    (
        "its_turn_ignored",
        "if how == 'LPUSH' and not enters(",
        "if false and not enters(",
    ),
];

/// Whose name it is.
pub(super) const UNIQUE: &[Change] = &[
    (
        "every_name_is_free",
        "if type(holder) == 'string' and holder ~= id then",
        "if false then",
    ),
    (
        "ended_jobs_have_names",
        "local lives = has.status and not final(has.status)",
        "local lives = true",
    ),
    (
        "a_window_ends_with_its_job",
        "if lives or o.window then",
        "if lives then",
    ),
    (
        "nothing_replaced",
        "if o.policy ~= 'replace' then",
        "if true then",
    ),
    (
        "everything_replaced",
        "if o.policy ~= 'replace' then",
        "if false then",
    ),
    (
        "the_replaced_one_runs_too",
        "      if has.status == 'dispatched' then\n        stop",
        "      if false then\n        stop",
    ),
    (
        "a_run_replaced",
        "      if has.status == 'dispatched' then\n        stop",
        "      if true then\n        stop",
    ),
    (
        "a_window_without_an_end",
        "if o.window then redis.call('SET', name, id, 'PX', o.window) else",
        "if false then else",
    ),
    (
        "a_name_not_taken",
        "else redis.call('SET', name, id) end",
        "end",
    ),
    (
        "taken_before_it_is_known_to_be_stored",
        "or refused(queue, id, script_type, from) or fit(o)\n    or (o.unique and taken_by(id, o, now, who))",
        "or (o.unique and taken_by(id, o, now, who)) or refused(queue, id, script_type, from) or fit(o)",
    ),
    (
        "a_name_of_all_types",
        "local name = UNIQUE .. o.unique",
        "local name = UNIQUE .. string.match(o.unique, ':(.*)$')",
    ),
];

/// When a name is free again.
pub(super) const UNCLAIM: &[Change] = &[
    (
        "a_name_kept_at_the_end",
        "    unclaim(id, more(key, has))\n",
        "    more(key, has)\n",
    ),
    (
        "the_name_of_another_freed",
        "if name and redis.pcall('GET', UNIQUE .. name) == id then",
        "if name then",
    ),
];

/// When a name is free at the start.
pub(super) const STARTED: &[Change] = &[
    (
        "a_name_kept_at_the_start",
        "if is.mw_unique and string.find(is.mw_unique, '^started ') then unclaim(id, is) end",
        "",
    ),
    (
        "each_name_free_at_the_start",
        "string.find(is.mw_unique, '^started ')",
        "true",
    ),
];

/// When a queue last gave one.
pub(super) const CLAIMED: &[Change] = &[
    (
        "the_last_claim_not_dated",
        "redis.pcall('HSET', key, 'claimed_at', taken_at)",
        "",
    ),
    (
        "a_key_like_figures_ends_the_claim",
        "redis.pcall('HSET', key, 'claimed_at'",
        "redis.call('HSET', key, 'claimed_at'",
    ),
];

/// A job that runs again.
pub(super) const RETRY: &[Change] = &[
    (
        "its_name_not_taken",
        "if name then redis.call('SET', UNIQUE .. name, id, 'NX') end",
        "",
    ),
    (
        "the_name_of_another_taken",
        "UNIQUE .. name, id, 'NX')",
        "UNIQUE .. name, id)",
    ),
    (
        "its_turn_ignored",
        "local stands = not has.mw_with or enters(",
        "local stands = true or enters(",
    ),
    ("not_counted", "count(KEYS[2], 'requeued')", ""),
    ("its_start_kept", "'mw_lost', 'mw_started', ", "'mw_lost', "),
];

/// Events of several jobs.
pub(super) const SHARED: &[Change] = &[
    ("events_of_each_job", "and last.by == by", "and false"),
    (
        "different_things_share_an_event",
        "last.what == what and",
        "",
    ),
    ("different_doers_share_an_event", "last.by == by and", ""),
    ("too_many_share_an_event", " and #last < MOST_TOGETHER", " "),
];

/// Of what differs in its note.
pub(super) const NOTES: &[Change] = &[(
    "different_notes_share_an_event",
    " and last.note == note",
    " ",
)];

/// Of ids with blanks.
pub(super) const BLANKS: &[Change] = &[(
    "ids_with_blanks_share_an_event",
    "\n    and not last.blank and not string.find(id, ' ', 1, true) then",
    " then",
)];

/// Events of one job, and figures.
pub(super) const FIGURES: &[Change] = &[
    (
        "one_is_called_many",
        "#line == 1 and 'job' or 'jobs'",
        "'jobs'",
    ),
    (
        "figures_not_written",
        "redis.pcall('HINCRBY', key, what, n)",
        "",
    ),
    (
        "a_key_like_figures_ends_the_call",
        "redis.pcall('HINCRBY'",
        "redis.call('HINCRBY'",
    ),
    (
        "figures_of_all_queues_in_one",
        "STATS .. string.sub(queue, #QUEUES + 1)",
        "STATS .. 'all'",
    ),
    (
        "its_time_not_counted",
        "ran(has.mw_queue, has.mw_started, now)\n  close",
        "close",
    ),
    (
        "a_run_of_less_than_nothing",
        "if since and since <= now then",
        "if since then",
    ),
    (
        "ends_not_counted",
        "count(has.mw_queue, status == 'finished' and 'finished' or 'failed')",
        "",
    ),
];

/// Results of many.
pub(super) const FINISH: &[Change] = &[
    (
        "a_slot_kept_at_the_end",
        "if has.mw_with then unlease(id, key, has) else over",
        "if false then else over",
    ),
    (
        "written_although_no_lease_can_be_ended",
        "  redis.call('ZCARD', LEASES) -- should it be no such set, the call ends here, with nothing written\n",
        "",
    ),
    ("a_stop_kept", "has.error or has.mw_stop or", "has.error or"),
    (
        "an_error_kept",
        "if has.error or has.mw_stop or has.mw_lost or has.mw_attempt ~= '1' then",
        "if has.mw_stop or has.mw_lost then",
    ),
];

/// Results and a claim.
pub(super) const EXCHANGE: &[Change] = &[
    (
        "results_not_taken",
        "local stale, a = finish_all(n, 3, now)",
        "local stale, a = {}, 3 + 5 * n",
    ),
    (
        "nothing_taken",
        "local taken = take(n + 1, a, now)",
        "local taken = {0, 0, {}, {}, '0'}",
    ),
    (
        "another_place_told",
        "stale[#stale + 1] = i",
        "stale[#stale + 1] = i + 1",
    ),
    ("stale_not_told", "      stale[#stale + 1] = i\n", ""),
    (
        "claims_dated_that_found_nothing",
        "if of.started then redis.pcall('HSET', key",
        "if true then redis.pcall('HSET', key",
    ),
    (
        "leases_of_the_ended_kept",
        "if #over > 0 then redis.call('ZREM', LEASES, unpack(over)) end",
        "",
    ),
    (
        "a_lease_not_given",
        "if #leases > 0 then redis.call('ZADD', LEASES, unpack(leases)) end",
        "",
    ),
    (
        "only_the_first_result",
        "for i = 1, n do\n    if not finish(",
        "for i = 1, math.min(1, n) do\n    if not finish(",
    ),
];

/// Figures of losses.
pub(super) const RECLAIM: &[Change] = &[
    ("losses_not_counted", "count(has.mw_queue, 'lost')", ""),
    (
        "poison_is_a_stop",
        "poison, now, 'poison', '', true, 'lost')",
        "poison, now, 'poison', '', true)",
    ),
];

/// Figures of releases.
pub(super) const RELEASE: &[Change] = &[("not_counted", "count(has.mw_queue, 'released')", "")];

/// Figures of what waited too long.
pub(super) const WATCH: &[Change] = &[(
    "a_timeout_is_a_stop",
    "overdue(ids), now, nil, '', true, 'timeout')",
    "overdue(ids), now, nil, '', true)",
)];

/// Figures of what is stopped.
pub(super) const STOPPED: &[Change] = &[(
    "lists_that_are_no_queues_have_figures",
    "if not queue or string.sub(queue, 1, #QUEUES) ~= QUEUES then return end",
    "if not queue then return end",
)];

/// Figures of failures.
pub(super) const FAILED: &[Change] = &[(
    "failures_are_results",
    "status == 'finished' and 'finished' or 'failed'",
    "'finished'",
)];
