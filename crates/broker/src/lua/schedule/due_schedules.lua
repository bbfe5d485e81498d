--- @include base
--- @flags allow-oom
-- Lists the schedules that are due, the most overdue first. Names without a key are removed; a schedule that cannot be
-- read is tried again later.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most schedules in one call
-- ARGV[3]  most bytes of records in one call
-- Returns [1]  the time in ms
--         [2]  in how many ms the first schedule is due that is not returned, -1 for none
--         [3]  per due schedule: name, version, position, record, input (false: none)
--         [4]  per schedule that cannot be read: name, why
local AGAIN = 5000 -- ms until it is tried again
local now, most, room, due = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local unread = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', SCHEDULES, '-inf', int(now), 'LIMIT', 0, most)) do
  local has, other = read(SCHEDULE .. name, 'version', 'position', 'record', 'input')
  if not has.version then
    if redis.call('EXISTS', SCHEDULE .. name) == 0 then redis.call('ZREM', SCHEDULES, name)
    else
      redis.call('ZADD', SCHEDULES, int(now + AGAIN), name)
      unread[#unread + 1] = {name, other and 'its key has another type' or 'its record has no version'}
    end
  else
    room = room - #(has.record or '') - #(has.input or '')
    if room < 0 and #due > 0 then break end
    due[#due + 1] = {name, has.version, has.position or '', has.record or '', has.input or false}
  end
end
local next = redis.call('ZRANGE', SCHEDULES, #due, #due, 'WITHSCORES')[2]
local pause = next and next ~= 'inf' and int(math.max(0, tonumber(next) - now)) or '-1'
return {int(now), pause, due, unread}
