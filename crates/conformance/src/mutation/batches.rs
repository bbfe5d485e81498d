//! Changes of how batches count, call back and end.

use super::Change;

pub(super) const COUNTED: &[Change] = &[
    (
        "batch_not_told",
        "    if has.mw_batch then leave(id, has.mw_batch, status == 'finished', now) end\n",
        "",
    ),
    (
        "end_of_batch_not_noted",
        "redis.call('HSET', BATCHES .. batch, 'ended', whole(now))",
        "",
    ),
    (
        "batch_ends_twice",
        "if not has.total or has.ended then return end\n    for _, how",
        "if not has.total then return end\n    for _, how",
    ),
    (
        "batch_that_is_gone_counted",
        "if not has.total or has.ended then return end\n    for _, how",
        "if has.ended then return end\n    for _, how",
    ),
    (
        "batch_ends_unsealed",
        "if not has.sealed or redis.call('EXISTS', MEMBERS",
        "if redis.call('EXISTS', MEMBERS",
    ),
    (
        "batch_ends_too_soon",
        "if not has.sealed or redis.call('EXISTS', MEMBERS .. batch) == 1 then return end",
        "if not has.sealed then return end",
    ),
    (
        "failures_forgotten",
        "if tonumber(has.failed) > 0 or has.expired then",
        "if has.expired then",
    ),
    (
        "expiry_forgotten",
        "if tonumber(has.failed) > 0 or has.expired then",
        "if tonumber(has.failed) > 0 then",
    ),
    (
        "unneeded_callback_left",
        "      drop(batch, has, 'failure', nil, now)\n",
        "",
    ),
    (
        "success_not_told",
        "      fire(batch, has, 'success', now)\n",
        "",
    ),
    (
        "end_of_a_batch_not_told",
        "    fire(batch, has, 'done', now)\n",
        "",
    ),
    (
        "callback_held_back",
        "    redis.call('HDEL', key, 'mw_waiting')\n    redis.call('HSET', key, 'updated_at', iso(now), 'mw_input', input)",
        "    redis.call('HSET', key, 'updated_at', iso(now), 'mw_input', input)",
    ),
    (
        "callback_told_nothing",
        "'updated_at', iso(now), 'mw_input', input)",
        "'updated_at', iso(now))",
    ),
    (
        "callback_of_another_taken",
        " and is.mw_callback == kind .. ' ' .. batch",
        "",
    ),
    (
        "outer_batch_not_told",
        "leave(id, is.mw_batch, true, now)",
        "_ = 0",
    ),
    (
        "unneeded_callback_has_failed",
        "leave(id, is.mw_batch, true, now)",
        "leave(id, is.mw_batch, false, now)",
    ),
    (
        "unneeded_callback_not_told_of",
        "    event(id, 'unneeded', batch)\n",
        "",
    ),
];

pub(super) const COUNTED_TOGETHER: &[Change] = &[
    (
        "counted_out_though_not_in",
        "redis.call('HINCRBY', BATCHES .. batch, how, gone)",
        "redis.call('HINCRBY', BATCHES .. batch, how, #of[how])",
    ),
    (
        "too_many_end_in_one_call",
        "if concluded < MOST_CONCLUDED then",
        "if true then",
    ),
    (
        "rest_not_left_to_tend",
        "    else redis.call('ZADD', BATCHES_OPEN, whole(of.now), batch) end",
        "    end",
    ),
    (
        "batch_not_counted_again",
        "    leaving[of.batch] = nil\n",
        "",
    ),
];

pub(super) const COUNTED_FAILED: &[Change] = &[
    (
        "failure_counted_as_success",
        "leave(id, has.mw_batch, status == 'finished', now)",
        "leave(id, has.mw_batch, true, now)",
    ),
    (
        "each_failure_is_the_first",
        "if tonumber(has.failed) > 0 and not has.failing then",
        "if tonumber(has.failed) > 0 then",
    ),
    (
        "first_failure_not_noted",
        "      redis.call('HSET', BATCHES .. batch, 'failing', has.failing)\n",
        "",
    ),
    (
        "first_failure_not_told",
        "      fire(batch, has, 'failure', of.now)\n",
        "",
    ),
    (
        "callback_on_success_left",
        "      drop(batch, has, 'success', 'batch ' .. batch .. ' did not succeed', now)\n",
        "",
    ),
];

pub(super) const JOIN: &[Change] = &[
    ("batch_not_asked", "(o.batch and barred(o, now)) or ", ""),
    (
        "batch_need_not_be_there",
        "  if not has.total then return 'batch missing' end\n",
        "",
    ),
    (
        "added_after_the_end",
        "if has.ended or has.cancelled then return 'batch ended' end",
        "if has.cancelled then return 'batch ended' end",
    ),
    (
        "added_after_cancel",
        "if has.ended or has.cancelled then return 'batch ended' end",
        "if has.ended then return 'batch ended' end",
    ),
    (
        "added_after_the_seal",
        "  if has.sealed and not of_its_own(o) then return 'batch sealed' end\n",
        "",
    ),
    (
        "own_jobs_not_let_in",
        "if has.sealed and not of_its_own(o) then",
        "if has.sealed then",
    ),
    (
        "added_by_one_that_has_ended",
        "return is.status == 'started' and ",
        "return ",
    ),
    (
        "added_by_one_of_another_batch",
        "is.mw_batch == o.batch and ",
        "",
    ),
    ("added_without_the_token", " and is.mw_token == o.token", ""),
    (
        "no_limit_of_members",
        "  if tonumber(has.total) + #has.ids >= MOST_MEMBERS then return 'batch full' end\n",
        "",
    ),
    (
        "members_of_this_call_not_counted",
        "tonumber(has.total) + #has.ids >=",
        "tonumber(has.total) >=",
    ),
    (
        "not_among_the_members",
        "      redis.call('SADD', MEMBERS .. batch, unpack(has.ids))\n",
        "",
    ),
    (
        "not_counted_in",
        "      redis.call('HINCRBY', BATCHES .. batch, 'total', #has.ids)\n",
        "",
    ),
    (
        "addition_keeps_nothing_open",
        "      redis.call('HSET', BATCHES .. batch, 'open_until', whole(has.now + tonumber(has.open_for)))\n",
        "",
    ),
    ("not_joined", "  if made then made.join_all() end\n", ""),
    (
        "batch_not_in_the_record_of_wishes",
        "if o.key or o.due or o.unique or o.batch then",
        "if o.key or o.due or o.unique then",
    ),
];

pub(super) const OPEN: &[Change] = &[
    (
        "opened_twice",
        "if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end\n",
        "",
    ),
    (
        "refused_callbacks_left",
        "    for _, other in ipairs(stored) do rare().forget(other) end\n",
        "",
    ),
    (
        "opened_batch_not_listed",
        "redis.call('ZADD', BATCHES_OPEN, whole(now + math.min(LOOK_EVERY, tonumber(ARGV[5]))), batch)\n",
        "",
    ),
    (
        "callbacks_not_joined",
        "push_all()\nreturn done('opened')",
        "return done('opened')",
    ),
    (
        "callback_queued_at_once",
        "  elseif o.callback then\n",
        "  elseif false then\n",
    ),
];

pub(super) const SEAL: &[Change] = &[
    (
        "not_sealed",
        "  redis.call('HSET', KEYS[1], 'sealed', whole(now))\n",
        "",
    ),
    (
        "empty_batch_goes_on",
        "see_to(batch, now)\nreturn",
        "return",
    ),
    (
        "ended_batch_stays_open",
        "    redis.call('ZREM', BATCHES_OPEN, batch)\n",
        "",
    ),
    (
        "ended_batch_not_listed",
        "    redis.call('ZADD', BATCHES_ENDED, whole(now), batch)\n",
        "",
    ),
    (
        "sealed_after_the_end",
        "if has.ended then return done('ended') end\n",
        "",
    ),
];

pub(super) const CANCEL: &[Change] = &[
    (
        "callbacks_not_cancelled",
        "    tools.drop(batch, has, kind, 'batch ' .. batch .. ' was cancelled', now)\n",
        "",
    ),
    (
        "queued_callback_cancelled",
        "is.status == 'dispatched' and is.mw_waiting and is.mw_callback",
        "is.status == 'dispatched' and is.mw_callback",
    ),
    (
        "stopped_again_and_again",
        "  if is.mw_stop then return end\n",
        "",
    ),
    (
        "run_not_marked",
        "  redis.call('HSET', key, 'mw_stop', why, 'mw_with', '1')\n",
        "",
    ),
    (
        "old_workers_not_told",
        "queues[#queues + 1] = OLD_STOP .. worker_of(has) end",
        "end",
    ),
    ("workers_not_told", "  request(of_type, id)\n", ""),
    (
        "cancelled_without_jobs_goes_on",
        "  see_to(batch, now)\n  return #page[2]",
        "  return #page[2]",
    ),
    (
        "not_left_to_tend",
        "redis.call('ZADD', BATCHES_OPEN, whole(now), batch)\n",
        "",
    ),
];

pub(super) const TEND: &[Change] = &[
    (
        "gone_not_noticed",
        "if final(is.status) or not there(key) then leave",
        "if final(is.status) then leave",
    ),
    (
        "ends_of_others_not_noticed",
        "if final(is.status) or not there(key) then leave",
        "if not there(key) then leave",
    ),
    (
        "all_ends_count_as_failures",
        "leave(id, batch, is.status == 'finished', now)\n    elseif",
        "leave(id, batch, false, now)\n    elseif",
    ),
    (
        "cancel_not_gone_on_with",
        "    elseif has.cancelled then halt(id, key, is, has.cancelled, now, by) end",
        "    end",
    ),
    (
        "walk_begins_anew",
        "  redis.call('HSET', BATCHES .. batch, 'scan', page[1])\n",
        "",
    ),
    (
        "never_expires",
        "  if not has.sealed and open_until <= now then expire(batch, has) end\n",
        "",
    ),
    (
        "expiry_not_noted",
        "'sealed', has.sealed, 'expired', '1',",
        "'sealed', has.sealed,",
    ),
    (
        "expiry_not_told",
        "  if not has.failing then tools.fire(batch, has, 'failure', now) end\n",
        "",
    ),
    (
        "looked_at_all_the_time",
        "local pause = all and PAUSE or stopping",
        "local pause = all and 0 or stopping",
    ),
    (
        "expires_late",
        "math.min(now + pause, open_until)",
        "now + pause",
    ),
    (
        "clock_that_was_ahead_ignored",
        "ipairs({{'-inf', whole(now)}, {whole(now + 2 * PAUSE), '+inf'}})",
        "ipairs({{'-inf', whole(now)}})",
    ),
    (
        "batch_that_is_gone_stays_listed",
        "    redis.call('ZREM', BATCHES_OPEN, batch)\n    if not has.total",
        "    if not has.total",
    ),
    (
        "members_of_what_is_gone_stay",
        "    if not has.total then redis.call('DEL', MEMBERS .. batch) end\n",
        "",
    ),
    (
        "old_batches_stay",
        "  redis.call('DEL', BATCHES .. batch, MEMBERS .. batch)\n",
        "",
    ),
    (
        "old_batches_stay_listed",
        "  redis.call('ZREM', BATCHES_ENDED, batch)\n",
        "",
    ),
    (
        "too_many_batches_kept",
        "if over > #old then",
        "if false then",
    ),
];

pub(super) const RETRY: &[Change] = &[
    (
        "batch_does_not_wait_again",
        "if not stale and has.mw_with and more(KEYS[1], has).mw_batch then rejoin(id, has.mw_batch, has.status) end\n",
        "",
    ),
    (
        "joins_an_ended_batch",
        "if not has.total or has.ended or has.cancelled then return end",
        "if not has.total or has.cancelled then return end",
    ),
    (
        "joins_a_cancelled_batch",
        "if not has.total or has.ended or has.cancelled then return end",
        "if not has.total or has.ended then return end",
    ),
    (
        "counts_stay_as_they_were",
        "  redis.call('HINCRBY', BATCHES .. batch, status == 'finished' and 'succeeded' or 'failed', -1)\n",
        "",
    ),
    (
        "success_taken_back_as_failure",
        "status == 'finished' and 'succeeded' or 'failed', -1",
        "'failed', -1",
    ),
];

pub(super) const DELETE: &[Change] = &[(
    "deleted_job_not_counted",
    "if has.mw_batch then leave(id, has.mw_batch, false, clock(ARGV[1])) end\n",
    "",
)];

pub(super) const WATCH: &[Change] = &[(
    "batch_not_told_of_a_foreign_end",
    "  if has.mw_with and more(key, has).mw_batch then leave(id, has.mw_batch, has.status == 'finished', now) end\n",
    "",
)];
