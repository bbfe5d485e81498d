--- @include base
--- @flags allow-oom
-- Which schedules are due, the one that is late first. Names without a schedule are dropped.
-- KEYS
-- ARGV    1: now
--         2: most in one call
--         3: most bytes of records in one call
-- Returns the time, in how many ms the next one is due that is not told (-1: there is none), and per due
--         schedule: its name, version, position, record, input (false: none)
local now, most, room, due = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', SCHEDULES, '-inf', int(now), 'LIMIT', 0, most)) do
  local has = read(SCHEDULE .. name, 'version', 'position', 'record', 'input')
  if not has.version then
    redis.call('ZREM', SCHEDULES, name)
  else
    room = room - #(has.record or '') - #(has.input or '')
    if room < 0 and #due > 0 then break end
    due[#due + 1] = {name, has.version, has.position or '', has.record or '', has.input or false}
  end
end
local next = redis.call('ZRANGE', SCHEDULES, #due, #due, 'WITHSCORES')[2]
local pause = next and next ~= 'inf' and int(math.max(0, tonumber(next) - now)) or '-1'
return {int(now), pause, due}
