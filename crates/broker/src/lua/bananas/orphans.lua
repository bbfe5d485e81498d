--- @include protocols/bananas
--- @flags allow-oom
-- Lists suspected orphans of Bananas: jobs that are in PROCESSING for too long and not leased by a worker of
-- this system. Bananas' workers have no leases, so the age decides. Jobs without an id are skipped, since their record
-- is another job's.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the age in ms from which a job counts as an orphan
-- Returns per job: id, state of its record (`look_at`), record
local MOST = 1000 -- ids visited in one call
local MOST_BYTES = 8388608 -- of records in one answer
local now, age = clock(ARGV[1]), tonumber(ARGV[2])
local ids, here, found, bytes = redis.call('LRANGE', PROCESSING, -MOST, -1), {}, {}, 0
for i = #ids, 1, -1 do
  local id = ids[i]
  if id ~= '' and not here[id] and redis.call('HEXISTS', CLAIMS, id) == 0 then
    here[id] = true
    local since = tonumber(redis.call('ZSCORE', SEEN, id) or '')
    if not since or since > now then redis.call('ZADD', SEEN, int(now), id)
    elseif since + age <= now and bytes < MOST_BYTES then
      local state, record = look(id)
      found[#found + 1] = {id, state, record}
      bytes = bytes + #record
    end
  end
end
-- The age of a job that comes back later begins anew.
for _, id in ipairs(redis.call('ZRANGE', SEEN, 0, 2 * MOST)) do
  if not here[id] then redis.call('ZREM', SEEN, id) end
end
return found
