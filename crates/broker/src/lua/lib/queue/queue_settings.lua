--- @include base
-- Settings of queues: pause, limits, fairness. They hold for all priorities of a queue together.
local INFINITE = 2 ^ 52
local set_of = {}

-- Returns the queue without its priority.
local function base_of(queue) return string.match(queue, '^(.*):prio:%d+$') or queue end

-- Returns the settings of a queue by name, and its name as `base`; nil if it has none.
local function settings(queue)
  local base = base_of(queue)
  if set_of[base] == nil then
    local text, set = try('HGET', CONFIG, 'queue:' .. base), false
    if type(text) == 'string' then
      set = {base = base}
      for name, value in string.gmatch(text, '(%S+)=(%S+)') do set[name] = value end
      -- A value that is no number is no limit.
      for _, name in ipairs({'concurrency', 'key_concurrency', 'payload'}) do
        set[name] = tonumber(set[name] or '')
      end
      set.keyed = set.fair or set.key_concurrency or set.key_rate -- jobs of one key wait for each other
    end
    set_of[base] = set
  end
  return set_of[base] or nil
end

-- Returns the weight of a key: how many of its jobs a fair queue holds at once.
local MOST_WEIGHT = 100
local function weight(set, key)
  local w = tonumber(redis.call('HGET', CONFIG, 'weight:' .. set.base .. ' ' .. key) or '') or 1
  return math.max(1, math.min(w, MOST_WEIGHT))
end

-- Rates: `window:N:MS` lets N jobs start in each window of MS, the first of which begins with the first start;
-- `bucket:N:MS:BURST` lets N start in MS on average, and BURST at once. RATES stores the used part and the time.

-- Returns how many jobs may start now, in how many ms the next one may if none may, and the state for `spend`.
local function allowance(rate, name, now)
  local kind, n, ms, burst = string.match(rate, '^(%a+):(%d+):(%d+):?(%d*)$')
  n, ms = tonumber(n), tonumber(ms)
  if (kind ~= 'window' and kind ~= 'bucket') or n < 1 or ms < 1 then return INFINITE, 0 end
  local was = try('GET', RATES .. name)
  local used, at = string.match(type(was) == 'string' and was or '', '^(%S+) (%d+)$')
  used, at = tonumber(used) or 0, tonumber(at)
  if kind == 'window' then
    if not at or now < at or now >= at + ms then used, at = 0, now end
    return math.max(0, n - used), at + ms - now, {used = used, at = at, ms = at + ms - now}
  end
  burst = tonumber(burst) or n
  used = math.min(used, burst) -- a former rate may have let more start
  -- The used part drains with time. A clock that was set back drains nothing.
  used = at and math.max(0, used - math.max(0, now - at) * n / ms) or 0
  local left = math.floor(burst - used + 1e-9)
  return math.max(0, left), math.ceil((used - burst + 1) * ms / n - 1e-6), {used = used, at = now, each = ms / n}
end

-- Uses n of the allowance.
local function spend(name, state, n)
  if not state then return end
  state.used = state.used + n
  local ms = state.ms or math.ceil(state.used * state.each)
  redis.call('SET', RATES .. name, string.format('%.6f %.0f', state.used, state.at), 'PX', int(math.max(1, ms)))
end

-- Returns how many slots of a queue, or of a key in it, are free. Slots of jobs without a lease are freed.
local LEAKS = 20 -- slots checked in one call
local function room(name, limit)
  local slots = SLOTS .. name
  local held = try('ZCARD', slots)
  if type(held) ~= 'number' then return INFINITE end -- a key of another kind limits nothing
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
