--- @include complete/finalize, json, element
-- Alerts of queues: after some failures in a row an alert job is enqueued, and another one after the next success. The
-- count is in the hash of the alert, beside the record of its job. Alert jobs do not count.
local LONGEST_REASON = 4096 -- bytes of an error in the input of an alert job

-- Enqueues an alert job. `what`: alert or recovery; `by`: the job whose end is the reason.
local function raise(base, what, by, now)
  local key, of, record = ALERTS .. base, {}, {}
  local id = redis.call('HGET', key, 'prefix') .. '.' .. redis.call('HINCRBY', key, 'number', 1)
  if not names_job(id) then return end -- whoever writes the key chooses the first part
  local fields, at = redis.call('HGETALL', key), iso(now)
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], '^job (.+)$')
    if name then
      record[#record + 1] = name
      record[#record + 1] = fields[i + 1]
    end
    of[fields[i]] = fields[i + 1]
  end
  local input = {'{"kind":"' .. what .. '","queue":' .. in_quotes(base) .. ',"failures":' .. of.failures}
  for _, fact in ipairs({{'job', by}, {'at', at}, {'error', of.error}, {'failed_job', of.failed},
    {'failed_at', of.failed_at}, {'first_failed_at', of.first_failed_at}}) do
    input[#input + 1] = '"' .. fact[1] .. '":' .. in_quotes(fact[2] or '')
  end
  redis.call('HSET', JOB .. id, 'id', id, 'status', 'dispatched', 'mw_alert_of', base, 'mw_input', table.concat(input, ',') .. '}',
    created(now, updated(now, unpack(record))))
  count(of.queue, 'created')
  event(id, 'enqueue', by, what)
  local has = {mw_queue = of.queue, mw_reply = '0'}
  local _, stands = deliver('LPUSH', id, JOB .. id, has, of.queue, now, true)
  if stands then dual_write(id, JOB .. id, of.queue, of['job script_type'], '', now) end
end

-- Counts the end of a run for the alert of its queue: a success, or a failure that is a dead letter. Others (a
-- cancelled or discarded job) do not count.
note_outcome = function(id, base, finished, dead, why, now)
  local key = ALERTS .. base
  local has = read(key, 'after', 'failures', 'alerted')
  local after, failures = tonumber(has.after or ''), tonumber(has.failures or '') or 0
  if not after then return end
  if finished then
    if has.alerted then raise(base, 'recovery', id, now) end
    if failures > 0 then redis.call('HDEL', key, 'failures', 'alerted', 'first_failed_at') end
  elseif dead then
    failures = failures + 1
    if #why > LONGEST_REASON then -- cut between two characters
      why = string.gsub(string.sub(why, 1, LONGEST_REASON), '[\192-\255][\128-\191]*$', '')
    end
    redis.call('HSET', key, 'failures', failures, 'failed', id, 'failed_at', iso(now), 'error', why)
    if failures == 1 then redis.call('HSET', key, 'first_failed_at', iso(now)) end
    if failures >= after and not has.alerted then
      redis.call('HSET', key, 'alerted', '1')
      raise(base, 'alert', id, now)
    end
  end
end
