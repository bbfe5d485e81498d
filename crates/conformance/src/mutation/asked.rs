//! Changes of cancel, retry and delete, and of what they share.

use super::Change;

pub(super) const CANCEL: &[Change] = &[
    (
        "missing_job_made_up",
        "if not there(KEYS[1]) then return done('missing') end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.pcall('HEXISTS', key, 'status') == 1",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "finished_job_stopped",
        "status == 'finished' or status == 'error'",
        "status == 'error'",
    ),
    (
        "stopped_job_stopped_again",
        "status == 'finished' or status == 'error'",
        "status == 'finished'",
    ),
    ("lease_not_removed", "redis.call('ZREM', LEASES, id)", ""),
    (
        "token_not_deleted",
        "'mw_expires', 'mw_token', 'mw_lock'",
        "'mw_expires', 'mw_lock'",
    ),
    (
        "lock_not_deleted",
        "'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')",
        "'mw_token', 'mw_stop', 'mw_seen')",
    ),
    (
        "request_not_deleted",
        "'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')",
        "'mw_token', 'mw_lock', 'mw_seen')",
    ),
    (
        "status_not_written",
        "'HSET', key, 'status', 'error', 'error', message",
        "'HSET', key, 'error', message",
    ),
    (
        "reason_not_written",
        "'status', 'error', 'error', message",
        "'status', 'error', 'error', ''",
    ),
    (
        "change_not_dated",
        "'error', message, 'updated_at', iso(now))",
        "'error', message)",
    ),
    (
        "id_not_removed_from_the_queue",
        "  unqueue(queue, id)\n",
        "",
    ),
    (
        "id_not_removed_from_the_old_list",
        "  unlock(has.mw_lock, id)\n",
        "",
    ),
    (
        "left_to_an_old_worker",
        "  if unlist(id, has) then",
        "  if false then",
    ),
    (
        "old_lists_of_our_jobs_walked",
        "if has.mw_reply or has.mw_queue then",
        "if has.mw_queue then",
    ),
    (
        "old_lists_of_known_jobs_walked",
        "if has.mw_reply or has.mw_queue then",
        "if has.mw_reply then",
    ),
    ("old_list_of_the_type_left", "{of_type, JOB", "{JOB"),
    ("old_list_of_the_actor_left", "JOB .. worker_id, ", ""),
    (
        "old_list_of_the_worker_left",
        ", OLD_WORK .. worker_id}",
        "}",
    ),
    (
        "a_key_like_an_old_list_ends_the_call",
        "redis.pcall('LREM', list, 0, id)",
        "redis.call('LREM', list, 0, id)",
    ),
    ("old_client_told_elsewhere", "    has.mw_legacy = '1'\n", ""),
    (
        "not_known_to_be_old",
        "    redis.call('HSET', key, 'mw_legacy', '1') -- so",
        "    -- so",
    ),
    (
        "old_reply_for_all",
        "type(removed) == 'number' and removed > 0",
        "true",
    ),
    ("still_delayed", "redis.pcall('ZREM', DELAYED, id)", ""),
    (
        "still_watched",
        "  unwatch(id)\n  redis.call('HDEL', key, 'mw_waiting'",
        "  redis.call('HDEL', key, 'mw_waiting'",
    ),
    (
        "a_key_like_the_delayed_ends_the_call",
        "redis.pcall('ZREM', DELAYED, id)",
        "redis.call('ZREM', DELAYED, id)",
    ),
    (
        "a_key_like_the_watch_ends_the_call",
        "redis.pcall('ZREM', WATCH, id)",
        "redis.call('ZREM', WATCH, id)",
    ),
    (
        "long_queue_walked",
        "local LONGEST_WALK = 10000",
        "local LONGEST_WALK = 10000000",
    ),
    (
        "short_queue_not_walked",
        "local LONGEST_WALK = 10000",
        "local LONGEST_WALK = 0",
    ),
    (
        "its_end_not_told",
        "  close(id, key, has, 'error', message, now, dead, by, later)\n",
        "",
    ),
    (
        "who_asked_not_told",
        "fault(id, key, has, reason, now, nil, by)",
        "fault(id, key, has, reason, now, nil)",
    ),
    (
        "stopped_job_a_dead_letter",
        "fault(id, key, has, reason, now, nil, by)",
        "fault(id, key, has, reason, now, 'failed', by)",
    ),
    (
        "answers_wrong",
        "return done('cancelled')",
        "return done('ended')",
    ),
    (
        "running_job_ends_at_once",
        "if has.status == 'started' and ARGV[5] ~= '1' then",
        "if false then",
    ),
    (
        "running_job_never_ends",
        "if has.status == 'started' and ARGV[5] ~= '1' then",
        "if has.status == 'started' then",
    ),
    (
        "waiting_job_does_not_end",
        "if has.status == 'started' and ARGV[5] ~= '1' then",
        "if ARGV[5] ~= '1' then",
    ),
    (
        "asked_twice",
        "  if has.mw_stop then return done('stopping') end\n",
        "",
    ),
    (
        "request_not_written",
        "  redis.call('HSET', KEYS[1], 'mw_stop', ARGV[4], 'mw_with', '1')\n",
        "",
    ),
    ("worker_not_asked", "  request(of_type, id)\n", ""),
    (
        "old_worker_asked",
        "  if has.mw_token then return end\n",
        "",
    ),
    (
        "old_worker_not_asked",
        "queues[#queues + 1] = OLD_STOP .. worker_of(has) end",
        "end",
    ),
    (
        "nobody_is_an_old_worker",
        "if worker_of(has) ~= '' then queues",
        "if true then queues",
    ),
    ("instances_not_asked", "{unpack(instances)}, {}", "{}, {}"),
    (
        "instance_that_it_was_sent_to_not_asked",
        "string.find(sent, ':inst:', 1, true)",
        "false",
    ),
    (
        "every_queue_is_an_instances",
        " and string.find(sent, ':inst:', 1, true)",
        "",
    ),
    (
        "priority_of_the_instances_queue_kept",
        "string.gsub(string.sub(sent, #WORK + 1), ':prio:%d+$', '')",
        "string.sub(sent, #WORK + 1)",
    ),
    ("an_instance_asked_twice", "    asked[queue] = true\n", ""),
    (
        "a_request_stays",
        "if length == 1 then redis.call('PEXPIRE', queue, STOP_TTL)",
        "if length == 1 then",
    ),
    (
        "a_later_request_ends_early",
        "  else redis.call('PEXPIRE', queue, STOP_TTL, 'GT') end",
        "  end",
    ),
    ("requests_of_others_end", "STOP_TTL, 'GT')", "STOP_TTL)"),
    (
        "a_key_like_the_control_queue_ends_the_call",
        "local length = redis.pcall('LPUSH', queue, id)",
        "local length = redis.call('LPUSH', queue, id)",
    ),
    (
        "request_not_told",
        "event(id, 'stop', ARGV[2], ARGV[4])",
        "",
    ),
    (
        "request_not_marked",
        "'mw_stop', ARGV[4], 'mw_with', '1')",
        "'mw_stop', ARGV[4])",
    ),
];

pub(super) const RETRY: &[Change] = &[
    (
        "missing_job_made_up",
        "if not there(KEYS[1]) then return done('missing') end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.pcall('HEXISTS', key, 'status') == 1",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "unfinished_job_queued",
        "if stale and (not is_stale(id, now) or",
        "if stale and (",
    ),
    (
        "stale_job_left",
        "if stale and (not is_stale(id, now) or",
        "if stale and (true or",
    ),
    (
        "job_that_stands_there_pushed_twice",
        " or redis.call('LPOS', KEYS[2], id)) then",
        ") then",
    ),
    (
        "running_job_pushed",
        " or redis.call('ZSCORE', LEASES, id)\n",
        "\n",
    ),
    (
        "delayed_job_pushed",
        "  or redis.call('ZSCORE', DELAYED, id) or",
        "  or",
    ),
    ("job_that_is_to_stop_pushed", " or has.mw_stop or", " or"),
    (
        "client_of_a_stale_job_answered_on_one_list",
        "if stale and not has.mw_reply then redis.call('HSETNX', KEYS[1], 'mw_legacy', 'both') end",
        "",
    ),
    ("still_named", "unwatch(id)\nunqueue", "unqueue"),
    (
        "stale_before_its_time",
        "tonumber(from) <= now then return true",
        "from then return true",
    ),
    (
        "finished_job_left",
        "status == 'finished' or status == 'error'",
        "status == 'error'",
    ),
    (
        "failed_job_left",
        "status == 'finished' or status == 'error'",
        "status == 'finished'",
    ),
    ("id_not_pushed", "redis.call('LPUSH', KEYS[2], id)", ""),
    (
        "pushed_to_the_wrong_end",
        "redis.call('LPUSH', KEYS[2], id)",
        "redis.call('RPUSH', KEYS[2], id)",
    ),
    (
        "old_reply_kept",
        "redis.call('DEL', REPLY .. id, ",
        "redis.call('DEL', ",
    ),
    (
        "old_clients_old_reply_kept",
        "OLD_REPLY .. id, LOG .. id)\nfor",
        "LOG .. id)\nfor",
    ),
    ("old_log_kept", ", LOG .. id)\nfor", ")\nfor"),
    ("old_output_kept", "'output', 'error',", "'error',"),
    ("old_error_kept", "'output', 'error',", "'output',"),
    (
        "old_logs_kept",
        "'mw_traceback', 'mw_stdout', 'mw_stderr',",
        "",
    ),
    (
        "old_token_kept",
        "'mw_stderr', 'mw_token',\n",
        "'mw_stderr',\n",
    ),
    (
        "old_attempts_kept",
        "'mw_attempt', 'mw_lost',",
        "'mw_lost',",
    ),
    (
        "old_losses_kept",
        "'mw_attempt', 'mw_lost',",
        "'mw_attempt',",
    ),
    ("old_reason_kept", "'mw_dead', 'mw_stop',", "'mw_stop',"),
    ("old_progress_kept", "'mw_progress', ", ""),
    (
        "old_lock_kept",
        "'mw_lock', 'mw_seen',\n  'mw_waiting'",
        "'mw_seen',\n  'mw_waiting'",
    ),
    (
        "old_sight_kept",
        "'mw_lock', 'mw_seen',\n  'mw_waiting'",
        "'mw_lock',\n  'mw_waiting'",
    ),
    (
        "still_among_the_dead",
        "{ENDED, DEAD, STOPS}",
        "{ENDED, STOPS}",
    ),
    (
        "still_among_the_ended",
        "{ENDED, DEAD, STOPS}",
        "{DEAD, STOPS}",
    ),
    (
        "request_to_stop_still_seen",
        "{ENDED, DEAD, STOPS}",
        "{ENDED, DEAD}",
    ),
    (
        "a_key_like_the_dead_ends_the_call",
        "DEAD, STOPS}) do redis.pcall('ZREM', set, id)",
        "DEAD, STOPS}) do redis.call('ZREM', set, id)",
    ),
    ("request_to_stop_kept", "unqueue(KEYS[3], id)", ""),
    (
        "status_not_written",
        "redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at'",
        "redis.call('HSET', KEYS[1], 'updated_at'",
    ),
    (
        "change_not_dated",
        "'status', 'dispatched', 'updated_at', iso(now))\nif stands",
        "'status', 'dispatched')\nif stands",
    ),
    (
        "old_list_forgotten",
        "double(id, KEYS[1], KEYS[2], has.script_type, worker_of(has), now)",
        "",
    ),
    ("fallback_forgotten", "\n  mind(id, KEYS[1], now)", ""),
    ("not_told", "event(id, 'requeue', ARGV[2])", ""),
];

pub(super) const DELETE: &[Change] = &[
    (
        "missing_job_called_deleted",
        "if not there(KEYS[1]) then return done('missing') end",
        "",
    ),
    (
        "list_taken_for_a_job",
        "redis.pcall('HEXISTS', key, 'status') == 1",
        "redis.call('EXISTS', key) == 1",
    ),
    (
        "running_job_deleted",
        "if lease and tonumber(lease) > clock(ARGV[1]) then",
        "if false then",
    ),
    (
        "job_of_a_dead_worker_left",
        "if lease and tonumber(lease) > clock(ARGV[1]) then",
        "if lease then",
    ),
    (
        "clock_ignored",
        "if given ~= '0' then return tonumber(given) end",
        "",
    ),
    ("lease_not_removed", "redis.call('ZREM', LEASES, id)", ""),
    ("id_not_removed_from_the_queue", "unqueue(KEYS[2], id)", ""),
    (
        "id_not_removed_from_other_queues",
        "for k = 3, #KEYS do unqueue(KEYS[k], id) end\n",
        "",
    ),
    (
        "id_not_removed_from_the_old_list",
        "unlock(has.mw_lock, id)",
        "",
    ),
    ("left_to_an_old_worker", "\nunlist(id, has)\n", "\n"),
    (
        "record_kept",
        "redis.call('DEL', JOB .. id, REPLY",
        "redis.call('DEL', REPLY",
    ),
    (
        "reply_kept",
        "REPLY .. id, OLD_REPLY .. id, LOG",
        "OLD_REPLY .. id, LOG",
    ),
    ("old_reply_kept", ", OLD_REPLY .. id, LOG", ", LOG"),
    ("log_kept", ", LOG .. id)\n  for", ")\n  for"),
    (
        "still_among_the_ended",
        "{ENDED, DEAD, DELAYED, TAKEN}",
        "{DEAD, DELAYED, TAKEN}",
    ),
    (
        "still_among_the_dead",
        "{ENDED, DEAD, DELAYED, TAKEN}",
        "{ENDED, DELAYED, TAKEN}",
    ),
    (
        "still_delayed",
        "{ENDED, DEAD, DELAYED, TAKEN}",
        "{ENDED, DEAD, TAKEN}",
    ),
    (
        "still_watched",
        "TAKEN}) do redis.pcall('ZREM', set, id) end\n  unwatch(id)",
        "TAKEN}) do redis.pcall('ZREM', set, id) end",
    ),
    (
        "a_key_like_the_ended_ends_the_call",
        "redis.pcall('ZREM', set, id)",
        "redis.call('ZREM', set, id)",
    ),
    (
        "dependants_not_told",
        "if redis.call('EXISTS', NEXT .. id) == 1 then\n    owe(id, read(",
        "if false then\n    owe(id, read(",
    ),
    (
        "dependants_of_a_finished_job_fail",
        "owe(id, read(JOB .. id, 'status').status == 'finished')",
        "owe(id, false)",
    ),
    (
        "dependants_of_a_failed_job_run",
        "owe(id, read(JOB .. id, 'status').status == 'finished')",
        "owe(id, true)",
    ),
    ("not_told", "event(id, 'delete', ARGV[2])", ""),
];
