--- @include dependencies/batch_scan
--- @flags allow-oom
-- Maintains batches: seals those whose time is over, counts ended jobs that were missed, goes on cancelling, ends
-- batches that a script left over, and deletes old ones.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most jobs visited in one call (the last batch may exceed it)
-- ARGV[3]  the retention of ended batches in ms
-- ARGV[4]  the greatest number of ended batches
-- Returns [1]  the number of jobs and batches visited
--         [2]  1 if more are left
local now, most = clock(ARGV[1]), tonumber(ARGV[2])
local PAUSE = 30000 -- ms between two scans of a batch
local SOON = 1000 -- ms between two pages of a scan
local PAGE = 500
local STOPS_AT_ONCE = 100
local STOP_COSTS = 5 -- the cost of a cancellation, in visited jobs
local met, tools = 0, batches()

-- Expires a batch that its client has not sealed in time: jobs may be missing, so it counts as failed.
local function expire(batch, has)
  has.sealed, has.expired = int(now), '1'
  redis.call('HSET', BATCHES .. batch, 'sealed', has.sealed, 'expired', '1', 'failing', has.failing or '')
  event('batch ' .. batch, 'expire', 'tend')
  if not has.failing then tools.fire(batch, has, 'failure', now) end
end

local function tend(batch)
  local has, other = tools.state(batch)
  if other then
    redis.call('ZADD', BATCHES_OPEN, int(now + PAUSE), batch)
    event('batch ' .. batch, 'defer', 'tend', 'its key has another type')
    return 1
  end
  if not has.total or has.ended then
    redis.call('ZREM', BATCHES_OPEN, batch)
    if has.ended then redis.call('ZADD', BATCHES_ENDED, 'NX', has.ended, batch) end
    if not has.total then redis.call('DEL', MEMBERS .. batch, JOINED .. batch) end
    return 1
  end
  local open_until = tonumber(has.open_until or '') or 0
  if not has.sealed and open_until <= now then expire(batch, has) end
  local stopping = has.cancelled ~= nil
  local n, all = scan_members(batch, has, now, stopping and STOPS_AT_ONCE or PAGE, 'tend')
  local pause = all and PAUSE or stopping and 0 or SOON
  local due = has.sealed and now + pause or math.min(now + pause, open_until)
  redis.call('ZADD', BATCHES_OPEN, int(due), batch)
  return 1 + n * (stopping and STOP_COSTS or 1)
end

for _, span in ipairs({{'-inf', int(now)}, {int(now + 2 * PAUSE), '+inf'}}) do
  for _, batch in ipairs(redis.call('ZRANGEBYSCORE', BATCHES_OPEN, span[1], span[2], 'LIMIT', 0, most)) do
    if met >= most then break end
    met = met + tend(batch)
  end
end
local old = redis.call('ZRANGEBYSCORE', BATCHES_ENDED, '-inf', int(now - tonumber(ARGV[3])), 'LIMIT', 0, most)
local over = redis.call('ZCARD', BATCHES_ENDED) - tonumber(ARGV[4])
if over > #old then old = redis.call('ZRANGE', BATCHES_ENDED, 0, math.min(most, over) - 1) end
for _, batch in ipairs(old) do
  redis.call('DEL', BATCHES .. batch, MEMBERS .. batch, JOINED .. batch)
  redis.call('ZREM', BATCHES_ENDED, batch)
end
met = met + #old
return respond({met, met >= most and 1 or 0})
