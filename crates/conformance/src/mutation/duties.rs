//! Changes of watch, adopt and prune.

use super::Change;

pub(super) const WATCH: &[Change] = &[
    (
        "taken_for_lost_at_first_sight",
        "if now - from < after or unknown then",
        "if unknown then",
    ),
    (
        "never_pushed_again",
        "  push_again(id, key, has, now)\nend",
        "end",
    ),
    (
        "pushed_although_it_stands_there",
        "local there, stands = holds(has.mw_queue, id), true",
        "local there, stands = false, true",
    ),
    (
        "not_pushed_to_the_old_list",
        "  if not stands then return end\n  double(id, key, has.mw_queue, type_of(has), worker_of(has), now)\n",
        "",
    ),
    ("pushed_and_not_told", "  again[#again + 1] = id\n", ""),
    (
        "stop_forgotten",
        "if has.mw_stop then return fault(id, key, has, has.mw_stop, now, nil, '', true) end",
        "",
    ),
    (
        "client_answered_elsewhere",
        "    redis.call('HSET', key, 'mw_legacy', 'both')\n    has.mw_legacy = 'both'\n  end\n",
        "  end\n",
    ),
    (
        "leased_job_watched",
        "  if redis.call('ZSCORE', LEASES, id) then return unwatch(id) end\n  local timeout",
        "  local timeout",
    ),
    (
        "timeout_not_waited_for",
        "local left = timeout + after - (now - from)",
        "local left = after - (now - from)",
    ),
    (
        "age_not_waited_for",
        "local left = timeout + after - (now - from)",
        "local left = timeout - (now - from)",
    ),
    (
        "loss_not_counted",
        "redis.call('HSET', key, 'mw_lost', lost)",
        "",
    ),
    ("poison_runs_on", "if lost < losses then", "if true then"),
    (
        "poison_one_loss_early",
        "if lost < losses then",
        "if lost + 1 < losses then",
    ),
    (
        "fallback_taken_while_the_worker_is_there",
        "redis.call('EXISTS', presence) == 1 then return false",
        "redis.call('EXISTS', presence) == 2 then return false",
    ),
    (
        "fallback_never_taken",
        "if presence and redis.call('EXISTS', presence) == 1 then return false end",
        "if presence then return false end",
    ),
    (
        "fallback_leaves_the_first_queue",
        "  unqueue(has.mw_queue or '', id)\n",
        "",
    ),
    (
        "fallback_forgets_the_lock",
        "if has.mw_lock then later(id, now + after) else",
        "",
    ),
    (
        "delayed_job_pushed",
        " or redis.call('ZSCORE', DELAYED, id) or in_backlog",
        " or in_backlog",
    ),
    (
        "what_was_seen_before_counts",
        "    redis.call('HDEL', key, 'mw_seen')\n",
        "",
    ),
    (
        "dates_do_not_count",
        "local is = how .. ' ' .. (has.updated_at or '')",
        "local is = how .. ' '",
    ),
    (
        "looks_of_the_future_count",
        "if was == is and tonumber(at) <= now then",
        "if was == is then",
    ),
    (
        "ended_job_left_under_watch",
        "  unwatch(id)\n  if redis.call('ZSCORE', ENDED, id)",
        "  if redis.call('ZSCORE', ENDED, id)",
    ),
    (
        "ended_job_told_again",
        "  if redis.call('ZSCORE', ENDED, id) or redis.call('ZSCORE', DEAD, id) then return end\n",
        "",
    ),
    (
        "ended_job_not_kept_count_of",
        "  redis.call('ZADD', ENDED, whole(now), id)\n",
        "",
    ),
    (
        "dependants_not_told",
        "if redis.call('EXISTS', NEXT .. id) == 1 then owe(id, has.status == 'finished') end",
        "",
    ),
    (
        "other_status_overwritten",
        "elseif (has.status or '') ~= '' and has.status ~= 'dispatched' then later(id, now + after)\n",
        "",
    ),
    (
        "waiting_job_not_looked_at",
        "walked = walked + READ * look(id, key, has, now)",
        "later(id, now)",
    ),
    (
        "waiting_job_never_ends",
        "  if not (now < expires) then return",
        "  if false then return",
    ),
    (
        "waiting_job_ends_early",
        "  if not (now < expires) then return",
        "  if not (now + 1 < expires) then return",
    ),
    (
        "what_no_script_told_stays_untold",
        "      owe(prerequisite, status == 'finished')\n",
        "",
    ),
    (
        "note_not_made_again",
        "      if redis.call('EXISTS', NEXT .. prerequisite) == 0 then redis.pcall('RPUSH', NEXT .. prerequisite, id) end\n",
        "",
    ),
    (
        "one_that_may_come_did_not_finish",
        "(not status and has.mw_reply)",
        "not status",
    ),
    (
        "one_that_is_gone_may_come",
        "(not status and has.mw_reply)",
        "false",
    ),
    (
        "what_never_came_not_told",
        "    if not there(JOB .. id) then return",
        "    if false then return",
    ),
    (
        "clock_that_was_ahead_hides_jobs",
        "{{'-inf', whole(now)}, {whole(now + FAR), '+inf'}}",
        "{{'-inf', whole(now)}}",
    ),
    (
        "queues_that_nobody_has_met_pushed_over",
        "from > whole_at()",
        "false",
    ),
    ("all_queues_unknown", "from > whole_at()", "true"),
    (
        "ours_wait_for_a_walk",
        "local unknown = not has.mw_reply and not has.mw_lock and",
        "local unknown =",
    ),
    (
        "other_queues_not_looked_at",
        "if list ~= has.mw_queue and holds(list, id) then return list end",
        "",
    ),
    (
        "its_queue_not_noted",
        "if place ~= has.mw_queue then redis.call('HSET', key, 'mw_queue', place) end",
        "",
    ),
    (
        "its_reply_list_not_noted",
        "redis.call('HSET', key, 'mw_legacy', '0')",
        "local _ = key",
    ),
    (
        "its_type_is_its_records_alone",
        "string.match(queue, '^[^:]+', #WORK + 1) or ''",
        "''",
    ),
    (
        "on_its_way_and_pushed",
        "if list or place or in_feed(id) or unsure then",
        "if list or place or unsure then",
    ),
    (
        "turn_not_waited_for",
        " or in_backlog(id, key, has) then return unwatch(id) end",
        " then return unwatch(id) end",
    ),
    (
        "found_and_watched_on",
        "if not (phase or has.mw_lock or has.mw_fallback) then return unwatch(id) end",
        "",
    ),
    ("away_not_noted", "  note_stale(id, 'away', from)\n", ""),
    (
        "started_not_noted",
        "  note_stale(id, 'started', from + timeout)\n",
        "",
    ),
    (
        "noted_before_its_timeout",
        "note_stale(id, 'started', from + timeout)",
        "note_stale(id, 'started', from)",
    ),
    (
        "noted_anew_at_each_look",
        "redis.pcall('ZADD', STALE, 'LT',",
        "redis.pcall('ZADD', STALE,",
    ),
    (
        "noted_for_ever",
        "redis.pcall('ZREM', STALE, 'away ' .. id, 'started ' .. id)",
        "",
    ),
    (
        "noted_until_its_worker_ends",
        "redis.pcall('ZREM', STALE, (how == 'away' and 'started ' or 'away ') .. id)",
        "",
    ),
    (
        "jobs_of_others_pushed_unasked",
        "(not (phase or rescue) or not has.mw_queue)",
        "not has.mw_queue",
    ),
    (
        "jobs_of_others_never_pushed",
        "(not (phase or rescue) or not has.mw_queue)",
        "(not phase or not has.mw_queue)",
    ),
    (
        "jobs_of_others_not_noted",
        "elseif whole_at() >= 0 then\n    note_stale(id, 'away', now)",
        "elseif whole_at() >= 0 then",
    ),
    (
        "running_jobs_of_others_not_noted",
        "    note_stale(id, 'started', now + timeout_of(has))\n",
        "",
    ),
    (
        "ended_jobs_of_others_watched_on",
        "if ours or final(has.status) then return unwatch(id) end",
        "if ours then return unwatch(id) end",
    ),
    (
        "jobs_of_others_looked_for_on_their_queue_alone",
        "elseif old_place(id, has) or canonical_place(id, has) or in_feed(id) or vague then",
        "elseif old_place(id, has) or in_feed(id) or vague then",
    ),
    (
        "jobs_of_others_on_old_lists_noted",
        "elseif old_place(id, has) or canonical_place(id, has) or in_feed(id) or vague then",
        "elseif canonical_place(id, has) or in_feed(id) or vague then",
    ),
    (
        "the_age_is_not_asked_for",
        "after, bounded, vague = phase and after or age, not phase, false",
        "bounded, vague = not phase, false",
    ),
    (
        "lists_not_known_end_the_look",
        "redis.pcall('ZCARD', LISTS)",
        "redis.call('ZCARD', LISTS)",
    ),
    (
        "too_many_in_one_call",
        "'LIMIT', 0, most - looked)",
        "'LIMIT', 0, 2 * most)",
    ),
];

pub(super) const ADOPT: &[Change] = &[
    (
        "waiting_job_left",
        "status == 'dispatched' or status == 'started' or",
        "status == 'started' or",
    ),
    (
        "started_job_left",
        "status == 'dispatched' or status == 'started' or",
        "status == 'dispatched' or",
    ),
    ("job_with_an_empty_status_left", " or status == ''", ""),
    (
        "any_hash_taken_for_a_job",
        "or status == ''",
        "or (status or '') == ''",
    ),
    ("waiting_for_others_taken", "not has.mw_waiting and ", ""),
    (
        "leased_taken",
        "not redis.call('ZSCORE', LEASES, id)\n    and",
        "true and",
    ),
    (
        "watched_taken_again",
        "    if not watched then\n      redis",
        "    if true then\n      redis",
    ),
    (
        "delayed_taken",
        "and not redis.call('ZSCORE', DELAYED, id)\n",
        "\n",
    ),
    (
        "queue_written_over",
        "if looked_after and not known then",
        "if looked_after then",
    ),
    (
        "old_list_kept_as_its_queue",
        "if looked_after and not known then",
        "if looked_after and not has.mw_queue then",
    ),
    (
        "looked_at_too_early",
        "redis.call('ZADD', WATCH, whole(now + (phase and after or age)), id)",
        "redis.call('ZADD', WATCH, whole(now), id)",
    ),
    ("not_counted", "      adopted = adopted + 1\n", ""),
    (
        "what_was_noted_before_left",
        "if (watched or phase or space) and open",
        "if not watched and (phase or space) and open",
    ),
    (
        "as_many_as_there_are",
        "if (watched or phase or space) and open",
        "if open",
    ),
    (
        "those_of_a_call_not_counted",
        "      suspects = suspects + 1\n",
        "",
    ),
    (
        "those_of_other_calls_not_counted",
        "      note_stale(id, has.status == 'started' and 'started' or 'away', NEVER)\n",
        "",
    ),
    (
        "stale_before_the_first_look",
        "'started' or 'away', NEVER)",
        "'started' or 'away', now)",
    ),
    (
        "jobs_of_others_in_the_way_of_ours",
        "has.mw_reply and room or room / 2",
        "room / 2",
    ),
    (
        "as_many_of_others_as_there_are",
        "has.mw_reply and room or room / 2",
        "room",
    ),
    (
        "records_of_others_written",
        "(has.mw_reply or phase or rescue)",
        "true",
    ),
    (
        "queue_not_noted_for_the_rescue",
        "(has.mw_reply or phase or rescue)",
        "(has.mw_reply or phase)",
    ),
    (
        "queue_of_ours_not_noted",
        "(has.mw_reply or phase or rescue)",
        "(phase or rescue)",
    ),
    (
        "queue_noted_of_no_type",
        "local looked_after = script_type ~= '' and",
        "local looked_after =",
    ),
    (
        "those_set_aside_taken",
        "    and not (has.mw_key and redis.call('ZSCORE', BACKLOG .. member(queue, has.mw_key), id))\n",
        "",
    ),
];

pub(super) const PRUNE: &[Change] = &[
    (
        "kept_too_short",
        "clock(ARGV[1]) - tonumber(ARGV[2])",
        "clock(ARGV[1]) - tonumber(ARGV[2]) + 1",
    ),
    (
        "kept_too_long",
        "clock(ARGV[1]) - tonumber(ARGV[2])",
        "clock(ARGV[1]) - tonumber(ARGV[2]) - 1",
    ),
    (
        "one_too_many_kept",
        "redis.call('ZCARD', ENDED) - tonumber(ARGV[3])",
        "redis.call('ZCARD', ENDED) - tonumber(ARGV[3]) - 1",
    ),
    (
        "one_too_few_kept",
        "math.min(most, over) - 1",
        "math.min(most, over)",
    ),
    (
        "the_newest_go",
        "redis.call('ZRANGE', ENDED, 0, math.min(most, over) - 1)",
        "redis.call('ZREVRANGE', ENDED, 0, math.min(most, over) - 1)",
    ),
    (
        "job_set_going_again_forgotten",
        "if not final(read(JOB .. id, 'status').status) or",
        "if",
    ),
    (
        "dead_letter_forgotten",
        " or redis.call('ZSCORE', DEAD, id) then",
        " then",
    ),
    ("not_counted", "    forgotten = forgotten + 1\n", ""),
    (
        "record_kept",
        "redis.call('DEL', JOB .. id, REPLY",
        "redis.call('DEL', REPLY",
    ),
    ("reply_kept", "REPLY .. id, OLD_REPLY .. id,", ""),
    ("log_kept", ", LOG .. id)", ")"),
    (
        "dependants_told_wrongly",
        "owe(id, read(JOB .. id, 'status').status == 'finished')",
        "owe(id, false)",
    ),
];
