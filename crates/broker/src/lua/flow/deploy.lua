--- @include audit, schedule/write_schedule
--- @flags allow-oom
-- Stores a flow under its name with its schedule, in place of an earlier one, or removes both: all in one step. Flows that
-- run have plans of their own.
-- KEYS[1]    the deployed flow
-- KEYS[2]    the set of deployed flows
-- KEYS[3]    its schedule
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the audit trail
-- ARGV[3]    the flow's name
-- ARGV[4]    the actor
-- ARGV[5]    the plan ('' to remove the flow)
-- ARGV[6]    the schedule's version that the caller read ('' for no schedule)
-- ARGV[7]    its position ('' for any)
-- ARGV[8]    when it is due next ('' for never, 'none': the flow has no schedule)
-- ARGV[9..]  field, value, … of the schedule ('' as value removes the field)
-- Returns the number of deployments of this name
--         -1  the schedule has changed
--         -2  a schedule that no deployment wrote has the name
--         -3  there is no such flow to remove
local now, name, plan, next = clock(ARGV[1]), ARGV[3], ARGV[5], ARGV[8]
local has = read(KEYS[3], 'version', 'position', 'created_at', 'deployed')
if (has.version or '') ~= ARGV[6] then return respond(-1) end
if ARGV[7] ~= '' and has.position ~= ARGV[7] then return respond(-1) end
local before = read(KEYS[1], 'deployments').deployments
if plan == '' and not before then return respond(-3) end
if next ~= 'none' and has.version and not has.deployed then return respond(-2) end

if next ~= 'none' then write_schedule(KEYS[3], name, has, next, now, 9)
elseif has.deployed then drop_schedule(KEYS[3], name) end
if plan == '' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], name)
else
  redis.call('HSET', KEYS[1], 'plan', plan, 'by', ARGV[4], 'at', int(now))
  redis.call('HINCRBY', KEYS[1], 'deployments', 1)
  redis.call('ZADD', KEYS[2], int(now), name)
end
note_audit(ARGV[2], plan == '' and 'undeploy' or 'deploy', KEYS[1], name, now)
return respond((tonumber(before or '') or 0) + (plan == '' and 0 or 1))
