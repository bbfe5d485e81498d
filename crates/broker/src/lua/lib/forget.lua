-- Everything that is kept of a job, gone. Those that wait for it learn so from settle.
local function forget(id)
  redis.call('DEL', JOB .. id, REPLY .. id, OLD_REPLY .. id, LOG .. id)
  redis.call('ZREM', ENDED, id)
  redis.call('ZREM', DEAD, id)
  redis.call('ZREM', DELAYED, id)
  redis.call('ZREM', WATCH, id)
  if redis.call('EXISTS', NEXT .. id) == 1 then redis.call('RPUSH', SETTLE, id) end
end
