--- @include ending, prefetch_lists
--- @flags allow-oom
-- Takes back what workers that went away held: jobs whose lease has ended go first into their queue, the
-- attempt not counted but the loss; a job that lost too many workers becomes a dead letter, and one that
-- somebody wants stopped ends. Ids that waited in the feed list of a listener that is gone go back too.
-- KEYS
-- ARGV    1: now
--         2: most leases per call
--         3: most losses of one job
--         4: most listeners per call
--         5: how long a listener's last wait may outlast it in ms
-- Returns the ids requeued, the ids ended, the number of ids taken out of feed lists
local now = clock(ARGV[1])
local losses = tonumber(ARGV[3])
local at, requeued, ended = stamp(now), {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(now), 'LIMIT', 0, ARGV[2])) do
  local key = JOB .. id
  local has = record(key, 'mw_lost', 'mw_worker', 'mw_stop', 'mw_attempt')
  unlease(id, key, has)
  if has.status == 'started' and has.mw_queue then
    local lost = (tonumber(has.mw_lost or '') or 0) + 1
    redis.call('HDEL', key, 'mw_token')
    local attempt = math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)
    redis.call('HSET', key, 'mw_attempt', attempt, 'mw_lost', lost, 'updated_at', at)
    event(id, 'lost', has.mw_worker)
    count(has.mw_queue, 'lost')
    local poison = 'lost: ' .. lost .. ' workers went away while they ran this job'
    if has.mw_stop then
      fail_job(id, key, has, has.mw_stop, now, nil, '', true)
    elseif lost >= losses then
      fail_job(id, key, has, poison, now, 'poison', '', true, 'lost')
    else
      redis.call('HSET', key, 'status', 'dispatched')
      if deliver('RPUSH', id, key, has, has.mw_queue, now, true) then requeued[#requeued + 1] = id end
    end
    if requeued[#requeued] ~= id then ended[#ended + 1] = id end
  end
end
return respond({requeued, ended, unfeed(now, ARGV[4], tonumber(ARGV[5]))})
