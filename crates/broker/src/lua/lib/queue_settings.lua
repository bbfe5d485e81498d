--- @include base
-- How queues are set: paused, limited, fair. What is set holds for all priorities of a queue together.
local INFINITE = 2 ^ 52
local set_of = {}

-- The queue without its priority.
local function base_of(queue) return string.match(queue, '^(.*):prio:%d+$') or queue end

-- What is set for a queue, by name, and its name as `base`; nil where nothing is.
local function settings(queue)
  local base = base_of(queue)
  if set_of[base] == nil then
    local text, set = redis.pcall('HGET', CONFIG, 'queue:' .. base), false
    if type(text) == 'string' then
      set = {base = base}
      for name, value in string.gmatch(text, '(%S+)=(%S+)') do set[name] = value end
      -- What is no number is no limit.
      for _, name in ipairs({'concurrency', 'key_concurrency', 'payload'}) do
        set[name] = tonumber(set[name] or '')
      end
    end
    set_of[base] = set
  end
  return set_of[base] or nil
end

-- How many of a key's jobs stand in a fair queue at once: so many turns it has in each round.
local MOST_WEIGHT = 100
local function weight(set, key)
  local w = tonumber(redis.call('HGET', CONFIG, 'weight:' .. set.base .. ' ' .. key) or '') or 1
  return math.max(1, math.min(w, MOST_WEIGHT))
end

-- Rates: `window:N:MS` lets N start in each window of MS, the first begins with the first start;
-- `bucket:N:MS:BURST` lets N start in MS on the average, and BURST at once. What was used is kept beside the
-- time of its writing.

-- How many may start now, in how many ms the next may if none may, and what to pass to `spend`.
local function allowance(rate, name, now)
  local kind, n, ms, burst = string.match(rate, '^(%a+):(%d+):(%d+):?(%d*)$')
  n, ms = tonumber(n), tonumber(ms)
  if (kind ~= 'window' and kind ~= 'bucket') or n < 1 or ms < 1 then return INFINITE, 0 end
  local was = redis.pcall('GET', RATES .. name)
  local used, at = string.match(type(was) == 'string' and was or '', '^(%S+) (%d+)$')
  used, at = tonumber(used) or 0, tonumber(at)
  if kind == 'window' then
    if not at or now < at or now >= at + ms then used, at = 0, now end
    return math.max(0, n - used), at + ms - now, {used = used, at = at, ms = at + ms - now}
  end
  burst = tonumber(burst) or n
  used = math.min(used, burst) -- another rate may have let more start
  -- What was used drains away. A clock that was set back drains nothing.
  used = at and math.max(0, used - math.max(0, now - at) * n / ms) or 0
  local left = math.floor(burst - used + 1e-9)
  return math.max(0, left), math.ceil((used - burst + 1) * ms / n - 1e-6), {used = used, at = now, each = ms / n}
end

-- Takes n of what `allowance` told.
local function spend(name, state, n)
  if not state then return end
  state.used = state.used + n
  local ms = state.ms or math.ceil(state.used * state.each)
  redis.call('SET', RATES .. name, string.format('%.6f %.0f', state.used, state.at), 'PX', int(math.max(1, ms)))
end

-- Slots: the jobs of a queue, or of one key in it, that run. One whose lease is gone has left none behind.
local LEAKS = 20 -- looked for in one call
local function room(name, limit)
  local slots = SLOTS .. name
  local held = redis.pcall('ZCARD', slots)
  if type(held) ~= 'number' then return INFINITE end -- a key of another kind holds up nobody
  local left = limit - held
  if left > 0 then return left end
  for _, id in ipairs(redis.call('ZRANGE', slots, 0, LEAKS - 1)) do
    if not redis.call('ZSCORE', LEASES, id) then
      redis.call('ZREM', slots, id)
      left = left + 1
    end
  end
  return left
end
