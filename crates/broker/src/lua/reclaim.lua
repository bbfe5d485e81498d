--- @include complete/ending, complete/failed_attempts, claim/send_home, claim/prefetch_lists
--- @flags allow-oom
-- Reclaims the jobs of dead workers: a job whose lease has ended goes to the front of its queue; its loss counts
-- instead of its attempt. Losses of a suspect count only if it ran alone, since another job may have killed the worker.
-- A job with too many losses becomes a dead letter; one that is to be cancelled ends. Ids in the prefetch lists of dead
-- workers return too.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most leases in one call
-- ARGV[3]  the losses with which a job is a dead letter
-- ARGV[4]  most prefetch lists in one call
-- ARGV[5]  ms by which a blocking read may outlast its registry entry
-- ARGV[6]  the losses with which a job is a suspect
-- Returns [1]  the ids requeued
--         [2]  the ids ended
--         [3]  the number of ids returned from prefetch lists
local now = clock(ARGV[1])
local losses, suspect = tonumber(ARGV[3]), tonumber(ARGV[6])
local requeued, ended = {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(now), 'LIMIT', 0, ARGV[2])) do
  local key = JOB .. id
  local has, other = record(key, 'mw_lost', 'mw_worker', 'mw_stop', 'mw_attempt', 'mw_token', 'mw_alone', 'mw_started',
    'mw_failed_attempts')
  local base
  if other then put_off(LEASES, id, now) else base = free_slot(id, key, has) end
  if has.status == 'started' and has.mw_queue then
    local lost = tonumber(has.mw_lost or '') or 0
    if not (lost >= suspect) or has.mw_alone == has.mw_token then lost = lost + 1 end
    redis.call('HDEL', key, 'mw_token', 'mw_alone')
    note_attempt(key, has, 'lost', '', now)
    local attempt = math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1)
    redis.call('HSET', key, 'mw_attempt', attempt, 'mw_lost', lost, updated(now))
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
  if base then bring_next(base, has.mw_key) end
end
return respond({requeued, ended, unfeed(now, ARGV[4], tonumber(ARGV[5]))})
