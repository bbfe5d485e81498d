--- @include audit, flow/flow_open, telemetry
--- @flags allow-oom
-- Fires a slot of a schedule of flows: moves the schedule on and stores the flow of the slot with its plan, in one step,
-- unless another caller has done so. A step adds the jobs of the flow later.
-- KEYS[1]  the schedule's hash
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the schedule's name
-- ARGV[4]  its version
-- ARGV[5]  its position
-- ARGV[6]  its position after the slot
-- ARGV[7]  when it is due then ('' never, '=' as before)
-- ARGV[8]  what happens if the flow of the last slot has not ended: allow, skip or replace
-- ARGV[9]  an error that is noted, and no slot is decided; '' for none
-- ARGV[10]  the mark of the slot; '' for no slot
-- ARGV[11]  the plan
-- ARGV[12..]  field, value, … of the flow's record, but its number
-- Returns the flow's number as text; or 'skipped'; 'decided' without a slot; 'changed' if the schedule has changed; 'stays'
--         if the slot is to be tried again
local AGAIN = 5000 -- ms until a slot that stayed is tried again
local MOST_TRIES = 1000 -- numbers in a row that plain clients have
local HIGHEST_ID = 4294967295
local key, now, who, name, next = KEYS[1], clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[7]
local has = read(key, 'version', 'position', 'last', 'mark')
if has.version ~= ARGV[4] or (has.position or '') ~= ARGV[5] then return respond('changed') end

local function stays(why)
  redis.call('HSET', key, 'trouble', why)
  if next ~= '=' then redis.call('ZADD', SCHEDULES, int(now + AGAIN), name) end
  return respond('stays')
end

local function draw()
  for _ = 1, MOST_TRIES do
    if tonumber(redis.call('GET', FLOW_ID) or 0) >= HIGHEST_ID then return end
    local id = int(redis.call('INCR', FLOW_ID))
    if redis.call('EXISTS', FLOW .. id) == 0 then return id end
  end
end

-- Returns true if the flow of the last slot has not ended.
local function still_runs(flow)
  local status = read(FLOW .. flow, 'status').status
  return status and not final(status)
end

if ARGV[9] ~= '' then return stays(ARGV[9]) end
-- The answer of a call that is repeated, as a run by hand has no position.
if ARGV[10] ~= '' and has.mark == ARGV[10] then return respond(has.last) end
local answer, runs = 'decided', has.last and still_runs(has.last)
if ARGV[10] ~= '' and runs and ARGV[8] == 'skip' then
  answer = 'skipped'
  redis.call('HINCRBY', key, 'skipped', 1)
  event('flow ' .. has.last, 'skip', who, 'schedule ' .. name .. ': it has not ended')
elseif ARGV[10] ~= '' then
  answer = draw()
  if not answer then return stays('the context has no number left for flows') end
  open_flow(answer, FLOWS .. answer .. ':plan', ARGV[11], ARGV[10], now, 12)
  redis.call('HSET', FLOW .. answer, 'id', answer, 'status', 'dispatched', 'mw_schedule', name)
  try('ZADD', FLOWS_LIST, int(now), answer)
  if runs and ARGV[8] == 'replace' then
    redis.call('HSETNX', FLOW .. has.last, 'mw_stop', 'cancelled')
    redis.call('HSET', FLOW .. answer, 'mw_after', has.last)
    note_audit(who, 'cancel', FLOW .. has.last, 'schedule ' .. name, now)
    wake_flow(has.last, now)
  end
  redis.call('HINCRBY', key, 'runs', 1)
  redis.call('HSET', key, 'last', answer, 'mark', ARGV[10])
  wake_flow(answer, now)
end
redis.call('HSET', key, 'position', ARGV[6])
redis.call('HDEL', key, 'trouble')
if next ~= '=' then redis.call('ZADD', SCHEDULES, next == '' and '+inf' or next, name) end
return respond(answer)
