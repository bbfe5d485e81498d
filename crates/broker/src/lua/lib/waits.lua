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

-- Notes that a job waits for those of `open`, and where it goes then.
local LONGEST_DEPENDENTS = 40000 -- bytes: about 1,000 ids; the list in NEXT is what counts
local function hold(id, key, queue, open, now, timeout)
  local expires = now + timeout
  for _, prerequisite in ipairs(open) do
    redis.call('RPUSH', NEXT .. prerequisite, id)
    local known = redis.call('HGET', JOB .. prerequisite, 'dependents') or ''
    local before = string.match(known, '^%s*(%[.*)%]%s*$') or '['
    if #before < LONGEST_DEPENDENTS then
      local comma = string.find(before, '"', 1, true) and ',' or ''
      redis.call('HSET', JOB .. prerequisite, 'dependents', before .. comma .. '"' .. id .. '"]')
    end
  end
  redis.call('HSET', key, 'mw_waiting', #open, 'mw_queue', queue, 'mw_expires', whole(expires))
  redis.call('ZADD', WATCH, whole(math.min(expires, now + LOOK_EVERY)), id)
end
