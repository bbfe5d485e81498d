-- Takes back what workers that went away held: jobs whose lease has ended go first into their queue, the
-- attempt not counted but the loss; a job that lost too many workers ends in error. Ids that waited in the
-- feed list of a listener that is gone go back as well.
-- KEYS    leases, listeners
-- ARGV    now, most leases per call, most losses of one job, prefix of job hashes, prefix of reply lists,
--         prefix of feed lists, how long a reply is kept in ms, most listeners per call, how long a
--         listener's last wait may outlast it in ms
-- Returns the ids requeued, the ids ended as lost, the number of ids taken out of feed lists
local now = clock(ARGV[1])
local most, losses, prefix = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local at, requeued, ended, moved = iso(now), {}, {}, 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now), 'LIMIT', 0, most)) do
  local key = prefix .. id
  redis.call('ZREM', KEYS[1], id)
  local has = redis.pcall('HMGET', key, 'status', 'mw_queue', 'mw_lost', 'mw_reply')
  if has[1] == 'started' and has[2] then
    local lost = (tonumber(has[3]) or 0) + 1
    redis.call('HDEL', key, 'mw_token')
    redis.call('HINCRBY', key, 'mw_attempt', -1)
    redis.call('HSET', key, 'mw_lost', lost, 'updated_at', at)
    if lost > losses then
      local message = 'lost: ' .. lost .. ' workers went away while they ran this job'
      redis.call('HSET', key, 'status', 'error', 'error', message)
      reply(has[4], ARGV[5] .. id, message, ARGV[7])
      ended[#ended + 1] = id
    else
      redis.call('HSET', key, 'status', 'dispatched')
      redis.call('RPUSH', has[2], id)
      requeued[#requeued + 1] = id
    end
  end
end
local MOST_MOVED = 1000 -- ids in one call
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, ARGV[8])
for i = 1, #gone, 2 do
  local member, queue = gone[i], string.match(gone[i], '^%S+ (.*)$')
  local feed = ARGV[6] .. member
  while queue and moved < MOST_MOVED and redis.call('LMOVE', feed, queue, 'LEFT', 'RIGHT') do
    moved = moved + 1
  end
  -- A process that hangs waits on in the server's eyes, and an id may still come to it.
  local over = tonumber(gone[i + 1]) + tonumber(ARGV[9]) <= now
  if over and redis.call('EXISTS', feed) == 0 then redis.call('ZREM', KEYS[2], member) end
end
return {requeued, ended, moved}
