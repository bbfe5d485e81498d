--- @include bananas
--- @flags allow-oom
-- Finds what stands among the jobs that run, is not run by ours, and has stood there for too long: Bananas' workers
-- keep no lease, so only its age tells that whoever took it is gone. Looks at the oldest. What has no id stays: its record
-- is that of the job that Bananas' cron asked for last.
-- KEYS
-- ARGV    1: now
--         2: age in ms
-- Returns per job: id, what its record is, its record
local MOST = 1000 -- ids looked at in one call
local MOST_BYTES = 8388608 -- of records in one answer
local now, age = clock(ARGV[1]), tonumber(ARGV[2])
local ids, here, found, bytes = redis.call('LRANGE', PROCESSING, -MOST, -1), {}, {}, 0
for i = #ids, 1, -1 do
  local id = ids[i]
  if id ~= '' and not here[id] and redis.call('HEXISTS', HELD, id) == 0 then
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
-- Who comes back later begins anew.
for _, id in ipairs(redis.call('ZRANGE', SEEN, 0, 2 * MOST)) do
  if not here[id] then redis.call('ZREM', SEEN, id) end
end
return found
