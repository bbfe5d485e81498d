--- @include complete/ending, queue/remove_from_lists, queue/wake_scheduler
--- @flags allow-oom
-- Changes the priority, the due time and the timeout of a job that waits. A job that moves goes to the end of its queue.
-- KEYS[1]  the job's hash
-- KEYS[2]  its queue
-- KEYS[3]  its queue at the new priority
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the job's id
-- ARGV[4]  the new priority, '' to keep it
-- ARGV[5]  ms from now to the new due time, '' to keep it
-- ARGV[6]  the new timeout in s, '' to keep it
-- Returns 'set'    the job has the new values
--         'taken'  a worker has taken it from its queue, and is about to run it
--         'long'   its queue is too long to search
--         'running', 'ended', or 'missing'

-- Removes a job that waits for no time from its lists. Returns true, or the answer if that is not possible.
local function take_out(queue, id, key, has)
  if has.mw_key and try('ZREM', BACKLOG .. member(queue, has.mw_key), id) == 1 then return true end
  local length = try('LLEN', queue)
  if type(length) == 'number' and length > LONGEST_WALK then return 'long' end
  if type(length) ~= 'number' or not redis.call('LPOS', queue, id) then return 'taken' end
  -- A worker without leases that removes the id from the legacy list has the job.
  if has.mw_lock and try('LREM', has.mw_lock, -1, id) ~= 1 then return 'taken' end
  redis.call('LREM', queue, 0, id)
  if has.mw_lock then redis.call('HDEL', key, 'mw_lock') end
  -- So its client waits on the legacy reply list.
  if unlist(id, has) then redis.call('HSET', key, 'mw_legacy', '1') end
  drop_slot(queue, id, has)
  return true
end

if not exists(KEYS[1]) then return respond('missing') end
local key, now, id = KEYS[1], clock(ARGV[1]), ARGV[3]
local has = record(key, 'mw_waiting', 'mw_lock', 'mw_start_by', 'script_type', 'worker_id', 'actor_id')
if final(has.status) then return respond('ended') end
if has.status == 'started' then return respond('running') end
local queue = more(key, has).mw_queue or KEYS[2]
local late = not has.mw_waiting and redis.call('ZSCORE', DELAYED, id)
-- A job that waits for a time, and keeps it, is on no list.
local moves = not has.mw_waiting and (ARGV[5] ~= '' or ARGV[4] ~= '' and not late)
if moves and not late then
  local out = take_out(queue, id, key, has)
  if out ~= true then return respond(out) end
end
local fields = {'mw_with', '1', updated(now)}
local function set(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
if ARGV[6] ~= '' then set('timeout', ARGV[6]) end
if ARGV[4] ~= '' then
  queue = KEYS[3]
  set('mw_priority', ARGV[4])
end
if ARGV[5] ~= '' then
  has.mw_run_at = int(now + tonumber(ARGV[5]))
  set('mw_run_at', has.mw_run_at)
  local start = string.match(has.mw_start_by or '', ' (%d+)$')
  if start then
    local by = int(tonumber(has.mw_run_at) + tonumber(start))
    set('mw_start_by', by .. ' ' .. start)
    try('ZADD', STARTS, by, id)
  end
end
-- A record without its queue is that of a client that may have used legacy lists.
if ARGV[4] ~= '' or ARGV[5] ~= '' then set('mw_queue', queue) end
redis.call('HSET', key, unpack(fields))
event(id, 'set', ARGV[2])
if not moves then return respond('set') end
redis.call('ZREM', DELAYED, id)
has.mw_with, has.mw_queue, has.mw_lock = '1', queue, nil
local _, stands = deliver('LPUSH', id, key, has, queue, now)
if stands then dual_write(id, key, queue, has.script_type, worker_of(has), now) end
if redis.call('ZRANK', DELAYED, id) == 0 then wake() end
return respond('set')
