--- @include base, queue/queue_settings
-- Heads: the jobs of a concurrency key that were put into their queue from the backlog, or returned to its front. A fair
-- queue holds as many as the weight of the key says; the next comes when one is claimed. With limits of each key there
-- are as many as may start: a later job that came to the front too early would overtake them.
local function member(queue, key) return queue .. ' ' .. key end

-- Returns how many heads of a key may still enter a queue that has `free` places for them. Foreign workers bring no next
-- job, so heads that they claimed are found by their status.
local CHECKED = 100 -- heads
local function vacant(queue, key, free)
  local heads = HEADS .. member(queue, key)
  free = free - redis.call('ZCARD', heads)
  if free > 0 then return free end
  for _, id in ipairs(redis.call('ZRANGE', heads, 0, CHECKED - 1)) do
    if not is_dispatched(read(JOB .. id, 'status').status) then
      redis.call('ZREM', heads, id)
      free = free + 1
    end
  end
  return free
end

local function turns(queue, key, set) return vacant(queue, key, weight(set, key)) end

-- Returns how many of `free` places at the front of a queue no head of the key holds, in all priorities.
local PRIORITIES = {':prio:0', '', ':prio:1', ':prio:2'}
local function vacancies(base, key, free)
  for _, priority in ipairs(PRIORITIES) do free = vacant(base .. priority, key, free) end
  return free
end

local function note_head(queue, id, has)
  local set = has.mw_key and settings(queue)
  if not (set and set.keyed) then return end
  redis.call('ZADD', HEADS .. member(queue, has.mw_key), tonumber(has.mw_seq or '') or 0, id)
end
