--- @include complete/ending, orphans/list, orphans/rule, orphans/track
-- Puts suspected orphans under watch: open jobs that no list may hold, or whose worker may be gone. check_orphans.lua pushes
-- them again if that is so. Also jobs whose entry in a set was lost: ended ones, and those that wait for others.
-- KEYS[1..]  per job: its hash, the queue that it belongs to
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    ms after which a job whose type does not migrate is pushed again
-- ARGV[3]    most suspects whose type does not migrate
-- ARGV[4]    1 to rescue jobs of foreign clients too
-- ARGV[5..]  per job: id, type ('' if unknown: its queue is not noted then)
-- Returns the number of jobs that were not watched before
local now, adopted, a = clock(ARGV[1]), 0, 5
local room, age, rescue = tonumber(ARGV[3]), rescue_rule(tonumber(ARGV[2]), ARGV[4] == '1', now)
local suspects = try('ZCARD', STALE)
if type(suspects) ~= 'number' then suspects = 0 end

-- Returns true if a job is open and no lease, delay or backlog accounts for it. A flow's job without a queue, such as an
-- approval, ends by the steps of its flow.
local function open(id, has, queue)
  local status = has.status
  local lives = is_dispatched(status) or status == 'started' or status == ''
  return lives and not has.mw_waiting and not redis.call('ZSCORE', LEASES, id)
    and not redis.call('ZSCORE', DELAYED, id)
    and (has.mw_queue or not has.mw_flow)
    and not (has.mw_key and redis.call('ZSCORE', BACKLOG .. member(queue, has.mw_key), id))
end

-- Returns true for a job that is in no set: no retention finds it, or nobody ends its wait.
local function is_lost(id, has)
  if has.mw_flow or not has.mw_reply then return false end
  if not final(has.status) then return has.status == WAITING and has.mw_waiting end
  return not redis.call('ZSCORE', ENDED, id) and not redis.call('ZSCORE', DEAD, id)
end

-- Puts a job that waits for its time back into the set of delayed jobs, which has lost it. Returns true if it did.
local function delay_again(id, has)
  local due = tonumber(has.mw_run_at or '')
  if not due or due <= now or not is_dispatched(has.status) then return false end
  redis.call('ZADD', DELAYED, int(due), id)
  return true
end

for k = 1, #KEYS, 2 do
  local key, id, script_type = KEYS[k], ARGV[a], ARGV[a + 1]
  local has = read(key, 'status', 'mw_reply', 'mw_waiting', 'mw_queue', 'mw_key', 'mw_flow', 'mw_run_at',
    'worker_id', 'actor_id')
  local _, after, phase = old_list(script_type, worker_of(has))
  -- Half of the room is for native jobs, however many foreign ones there are.
  local space = suspects < (has.mw_reply and room or room / 2)
  local watched = redis.call('ZSCORE', WATCHED, id)
  if not watched and is_lost(id, has) then
    redis.call('ZADD', WATCHED, int(now), id)
    adopted = adopted + 1
  elseif (watched or phase or space) and open(id, has, has.mw_queue or KEYS[k + 1]) and not delay_again(id, has) then
    -- False for a job that a worker without its type returned to a legacy list.
    local known = string.sub(has.mw_queue or '', 1, #WORK) == WORK
    local looked_after = script_type ~= '' and (has.mw_reply or phase or rescue)
    if looked_after and not known then
      count_foreign(has, KEYS[k + 1])
      redis.call('HSET', key, 'mw_queue', KEYS[k + 1])
    end
    index_job(id, now)
    if not watched then
      redis.call('ZADD', WATCHED, int(now + (phase and after or age)), id)
      adopted = adopted + 1
    end
    if not (watched or phase) then
      suspects = suspects + 1
      note_stale(id, has.status == 'started' and 'started' or 'away', NEVER)
    end
  end
  a = a + 2
end
return respond(adopted)
