-- Prerequisites: who waits for whom.

-- The ids in a JSON array of strings, each once; ids hold no quotes.
local function ids_of(seen, list, json)
  for id in string.gmatch(json or '', '"([^"]+)"') do
    if not seen[id] then seen[id] = true list[#list + 1] = id end
  end
end

-- Of the prerequisites of a job, those that are still to end; or nothing, and why it can never run.
local function unmet(ids, on_failure)
  local open = {}
  for _, id in ipairs(ids) do
    local status = there(JOB .. id) and (redis.call('HGET', JOB .. id, 'status') or '')
    if not status then return nil, 'prerequisite ' .. id .. ' does not exist', id end
    if status == 'error' and on_failure ~= 'continue' then
      return nil, 'prerequisite ' .. id .. ' did not finish'
    end
    if not final(status) then open[#open + 1] = id end
  end
  return open
end

-- The timeout of a record in ms: others may have written what is none.
local function timeout_of(has)
  local s = tonumber(has.timeout or '')
  return 1000 * (s and s > 0 and s <= MAX_TIMEOUT and s or DEFAULT_TIMEOUT)
end

-- Notes that a job waits for those of `open`, and where it goes then. Each of them is struck off the list
-- in `mw_waiting` when it has ended.
local LONGEST_DEPENDENTS = 40000 -- bytes: about 1,000 ids; the list in NEXT is what counts
local function hold(id, key, queue, open, now, timeout)
  local expires, name = now + timeout, '"' .. id .. '"'
  for _, prerequisite in ipairs(open) do
    local record = JOB .. prerequisite
    redis.pcall('RPUSH', NEXT .. prerequisite, id)
    if redis.call('HSTRLEN', record, 'dependents') < LONGEST_DEPENDENTS then
      local known = redis.call('HGET', record, 'dependents') or ''
      local before = string.match(known, '^%s*(%[.*)%]%s*$') or '['
      local comma = string.find(before, '"', 1, true) and ',' or ''
      if not string.find(before, name, 1, true) then
        redis.call('HSET', record, 'dependents', before .. comma .. name .. ']')
      end
    end
  end
  redis.call('HSET', key, 'status', 'dispatched', 'mw_waiting', '"' .. table.concat(open, '" "') .. '"',
    'mw_queue', queue, 'mw_expires', whole(expires))
  redis.pcall('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY)), id)
end

-- Whether a job of a client that knows nothing of waiting has to wait for others first, or can never run;
-- and how many others were looked at. Once it was ready, or ran, it is not asked again.
local MOST_PREREQUISITES = 1000 -- as many as a job of ours may have
local function waits(id, key, is, queue, now, legacy)
  if is.mw_reply or is.mw_attempt then return false, 0 end
  local seen, ids = {}, {}
  ids_of(seen, ids, is.prerequisites)
  ids_of(seen, ids, is.dependencies)
  if #ids > MOST_PREREQUISITES then
    fault(id, key, is, 'it has ' .. #ids .. ' prerequisites, the limit is ' .. MOST_PREREQUISITES, now, nil, '',
      false, 'prerequisite')
    return true, 0
  end
  local open, why = unmet(ids, is.mw_on_failure)
  if open and #open == 0 then return false, #ids end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen')
  unwatch(id)
  redis.call('HSET', key, 'mw_attempt', 0)
  if legacy then
    redis.call('HSET', key, 'mw_legacy', '1')
    is.mw_legacy = '1'
  end
  if not open then fault(id, key, is, why, now, nil, '', false, 'prerequisite')
  else hold(id, key, queue, open, now, timeout_of(is)) end
  return true, #ids
end

-- Looks at a job that waits: whether its time is over, and whether one of those it waits for has ended and
-- no script told. Returns how many it looked at.
local function look(id, key, has, now)
  local expires = tonumber(has.mw_expires or '') or 0
  if not (now < expires) then return 0, fault(id, key, has, 'timeout', now, nil, '', true, 'timeout') end
  local ids = {}
  ids_of({}, ids, has.mw_waiting)
  for _, prerequisite in ipairs(ids) do
    local status = read(JOB .. prerequisite, 'status').status
    if (not status or final(status)) and redis.call('EXISTS', NEXT .. prerequisite) == 1 then
      owe(prerequisite, status == 'finished')
    end
  end
  redis.call('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY)), id)
  return #ids
end
