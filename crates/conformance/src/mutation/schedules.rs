//! Changes of schedule, due and tick.

use super::Change;

pub(super) const SCHEDULE: &[Change] = &[
    (
        "version_not_checked",
        "if (has.version or '') ~= ARGV[3] then return 0 end",
        "",
    ),
    (
        "position_not_checked",
        "if ARGV[4] ~= '' and has.position ~= ARGV[4] then return 0 end",
        "",
    ),
    ("definition_not_forgotten", "redis.call('DEL', key)\n", ""),
    (
        "name_not_forgotten",
        "  redis.call('ZREM', SCHEDULES, ARGV[2])\n",
        "",
    ),
    (
        "empty_value_kept",
        "if ARGV[i + 1] == '' then redis.call('HDEL', key, ARGV[i])\n  else redis.call",
        "if false then return 0\n  else redis.call",
    ),
    (
        "version_not_new",
        "redis.call('HSET', key, 'version', redis.call('INCR', SEQ))",
        "redis.call('HSETNX', key, 'version', redis.call('INCR', SEQ))",
    ),
    (
        "created_anew",
        "'created_at', has.created_at or iso(now))",
        "'created_at', iso(now))",
    ),
    ("change_not_dated", "'updated_at', iso(now), ", ""),
    (
        "never_is_now",
        "ARGV[5] == '' and '+inf' or ARGV[5]",
        "ARGV[5] == '' and '0' or ARGV[5]",
    ),
    (
        "nobody_woken",
        "if redis.call('ZRANK', SCHEDULES, ARGV[2]) == 0 then wake() end",
        "",
    ),
    (
        "always_woken",
        "if redis.call('ZRANK', SCHEDULES, ARGV[2]) == 0 then wake() end",
        "wake()",
    ),
];

pub(super) const DUE: &[Change] = &[
    (
        "due_early",
        "SCHEDULES, '-inf', whole(now)",
        "SCHEDULES, '-inf', whole(now + 1)",
    ),
    (
        "due_late",
        "SCHEDULES, '-inf', whole(now)",
        "SCHEDULES, '-inf', '(' .. whole(now)",
    ),
    ("bound_removed", "'LIMIT', 0, most)", "'LIMIT', 0, 100000)"),
    (
        "bytes_not_bounded",
        "if room < 0 and #due > 0 then break end",
        "",
    ),
    (
        "one_too_large_is_never_told",
        "if room < 0 and #due > 0 then break end",
        "if room < 0 then break end",
    ),
    (
        "name_without_a_schedule_stays",
        "    redis.call('ZREM', SCHEDULES, name)\n",
        "",
    ),
    ("input_not_told", "has.input or false}", "false}"),
    (
        "next_never_told",
        "next ~= 'inf' and whole(math.max(0, tonumber(next) - now)) or '-1'",
        "next ~= 'inf' and '-1' or '-1'",
    ),
    (
        "never_told_as_a_time",
        "next and next ~= 'inf' and",
        "next and",
    ),
];

pub(super) const TICK: &[Change] = &[
    (
        "version_not_checked",
        "has.version == version and (has.position or '') == position",
        "(has.position or '') == position",
    ),
    (
        "position_not_checked",
        "has.version == version and (has.position or '') == position",
        "has.version == version",
    ),
    (
        "position_not_written",
        "redis.call('HSET', key, 'position', stuck and decided or to)",
        "",
    ),
    (
        "stuck_slot_lost",
        "'position', stuck and decided or to)",
        "'position', to)",
    ),
    (
        "left_due",
        "redis.call('ZADD', SCHEDULES, stuck and whole(now + AGAIN) or next, name)",
        "",
    ),
    (
        "stuck_slot_tried_at_once",
        "stuck and whole(now + AGAIN) or next",
        "stuck and whole(now) or next",
    ),
    (
        "stuck_slot_tried_at_the_next",
        "stuck and whole(now + AGAIN) or next",
        "next",
    ),
    ("never_is_now", "next = '+inf'", "next = '0'"),
    (
        "by_hand_moves_the_schedule",
        "if next ~= '=' then redis.call('ZADD', SCHEDULES,",
        "do if next == '=' then next = whole(now) end redis.call('ZADD', SCHEDULES,",
    ),
    (
        "trouble_not_noted",
        "if stuck then redis.call('HSET', key, 'trouble', stuck) else",
        "if not stuck then",
    ),
    (
        "trouble_kept",
        " else redis.call('HDEL', key, 'trouble') end",
        " end",
    ),
    (
        "slots_after_a_stuck_one_run",
        "if mine and not stuck then",
        "if mine then",
    ),
    (
        "others_slots_run",
        "if mine and not stuck then",
        "if not stuck then",
    ),
    (
        "last_not_noted",
        "if answer == 'stored' or answer == 'exists' then",
        "if false then",
    ),
    (
        "runs_not_counted",
        "{stored = 'runs', skipped = 'skipped'}",
        "{skipped = 'skipped'}",
    ),
    (
        "skips_not_counted",
        "{stored = 'runs', skipped = 'skipped'}",
        "{stored = 'runs'}",
    ),
    (
        "skips_not_told",
        "    event(id, 'skip', who, last .. ' has not ended')\n",
        "",
    ),
    (
        "never_skipped",
        "if last and last ~= id and overlap == 'skip' then",
        "if false then",
    ),
    (
        "never_replaced",
        "overlap == 'replace' and redis.call('EXISTS', KEYS[k]) == 0\n",
        "false\n",
    ),
    (
        "ended_job_counts_as_running",
        "if has and (has.status or '') ~= '' and not final(has.status) then return id, has end",
        "if has then return id, has end",
    ),
    (
        "replaced_job_goes_on",
        "    displace(last, has, KEYS[k + 1], control, id, now, who)\n",
        "",
    ),
    (
        "replaced_job_not_waited_for",
        "    o.after, o.on_failure, o.timeout = with_its_own(last, has), 'continue', timeout\n",
        "",
    ),
    (
        "what_a_replaced_job_waited_for_forgotten",
        "    if redis.call('EXISTS', JOB .. id) == 1 then after[#after + 1] = id end\n",
        "",
    ),
    (
        "job_that_replaces_fails_with_what_it_replaced",
        "  if replaces and answer == 'stored' then redis.call('HSET', KEYS[k], 'mw_on_failure', 'continue') end\n",
        "",
    ),
    (
        "replaced_job_that_runs_ends_at_once",
        "if has.status ~= 'started' then\n    return rare().stop(",
        "if true then\n    return rare().stop(",
    ),
    (
        "worker_not_told_of_the_stop",
        "  pushed('LPUSH', control, id)\n",
        "",
    ),
    (
        "stop_not_noted",
        "  redis.call('HSET', JOB .. id, 'mw_stop', reason, 'mw_with', '1')\n",
        "",
    ),
    (
        "told_to_stop_twice",
        "  if has.mw_stop then return end\n",
        "",
    ),
    (
        "full_queue_loses_the_slot",
        "if answer == 'full' or answer == 'draining' then return 'its queue is ' .. answer end",
        "",
    ),
    (
        "queue_that_is_no_list_ends_the_call",
        "if type(answer) == 'table' then return answer.err end",
        "if type(answer) == 'table' then error(answer.err) end",
    ),
    (
        "ids_not_pushed",
        "\npush_all()\nreturn done(answers)",
        "\nreturn done(answers)",
    ),
];

/// What is counted of slots.
pub(super) const SLOTS_TOLD: &[Change] = &[
    (
        "slots_not_told",
        "      if not stuck and next ~= '=' then tell(KEYS[k + 1], answer, slot) end\n",
        "",
    ),
    (
        "slots_that_are_put_off_told",
        "if not stuck and next ~= '=' then tell",
        "if next ~= '=' then tell",
    ),
    (
        "what_was_run_by_hand_told",
        "if not stuck and next ~= '=' then tell",
        "if not stuck then tell",
    ),
    (
        "slots_told_again",
        "  if answer == 'exists' then return end\n",
        "",
    ),
    (
        "skipped_slots_told_as_refused",
        "or answer == 'skipped' and 'skipped' or 'refused'",
        "or 'refused'",
    ),
    (
        "refused_slots_told_as_skipped",
        "or answer == 'skipped' and 'skipped' or 'refused'",
        "or 'skipped'",
    ),
    (
        "lateness_not_told",
        "if outcome == 'ran' then count",
        "if false then count",
    ),
    (
        "lateness_of_slots_that_did_not_run",
        "if outcome == 'ran' then count",
        "if true then count",
    ),
];
