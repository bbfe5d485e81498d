--- @include schedule/write_schedule
--- @flags allow-oom
-- Writes or deletes a schedule, unless it has changed since the caller read it.
-- KEYS[1]    the schedule's hash
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    its name
-- ARGV[3]    the version that the caller read ('' for no schedule)
-- ARGV[4]    the position that the caller read ('' for any)
-- ARGV[5]    when it is due next ('' for never, 'gone' to delete it)
-- ARGV[6..]  field, value, … ('' as value removes the field)
-- Returns 1, or 0 if the schedule has changed
local key, now = KEYS[1], clock(ARGV[1])
local has, other = read(key, 'version', 'position', 'created_at')
if other then return try('HLEN', key) end -- the error of a key of another type, which is left alone
if (has.version or '') ~= ARGV[3] then return 0 end
if ARGV[4] ~= '' and has.position ~= ARGV[4] then return 0 end
if ARGV[5] == 'gone' then drop_schedule(key, ARGV[2])
else write_schedule(key, ARGV[2], has, ARGV[5], now, 6) end
return 1
