--- @include flow/flow_renew, flow/flow_join
--- @flags allow-oom
-- Writes the decisions of a step, if its token is valid, and renews the lease. At most 1,000 moves in a call.
-- KEYS[1]    the flow's record
-- KEYS[2]    the names of its jobs
-- KEYS[3]    the states of its jobs
-- KEYS[4]    its plan
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the flow's number
-- ARGV[3]    the token
-- ARGV[4]    the lease in ms
-- ARGV[5..]  per move its word, the number of strings that follow, and those (flow_moves.lua, flow_renew.lua, flow_join.lua). The last may be rest: the
--            value of mw_dirty that the step has read, and the ms until the next look ('' for none)
-- Returns 'done'
--         'stale'  the token is another: nothing has changed
--         'again'  something has happened that the step has not read
--         'none'   all numbers of jobs are used up
local KEPT = 604800000 -- ms: as long as jobs that have ended
local MOST_LISTED = 100000 -- flows
local now, record_of = clock(ARGV[1]), KEYS[1]
local is = read(record_of, 'mw_lease', 'mw_dirty')
if is.mw_lease ~= ARGV[3] then return respond('stale') end
local of = {flow = ARGV[2], record = record_of, names = KEYS[2], nodes = KEYS[3], plan = KEYS[4], now = now, added = {}}
redis.call('ZADD', FLOWS_DUE, int(now + tonumber(ARGV[4])), of.flow)

-- The numbers of new jobs, beyond those in the record.
local function append()
  if #of.added == 0 then return end
  local known = redis.call('HGET', record_of, 'jobs') or '[]'
  local comma = known == '[]' and '' or ','
  redis.call('HSET', record_of, 'jobs', string.sub(known, 1, -2) .. comma .. table.concat(of.added, ',') .. ']')
end

-- The keys of an ended flow expire when retention deletes its jobs.
local function forget_later()
  redis.call('ZREM', FLOWS_DUE, of.flow)
  local listed = try('ZCARD', FLOWS_LIST)
  if type(listed) == 'number' and listed > MOST_LISTED then redis.call('ZPOPMIN', FLOWS_LIST) end
  for _, key in ipairs({KEYS[1], KEYS[2], KEYS[3], KEYS[4]}) do redis.call('PEXPIRE', key, KEPT) end
end

local a = 5
while a <= #ARGV do
  local word, n = ARGV[a], tonumber(ARGV[a + 1])
  if word == 'rest' then
    if (is.mw_dirty or '') ~= ARGV[a + 2] then return respond('again') end
    redis.call('HDEL', record_of, 'mw_lease')
    if ARGV[a + 3] == '' then forget_later()
    else redis.call('ZADD', FLOWS_DUE, int(now + tonumber(ARGV[a + 3])), of.flow) end
  else
    local why = flow_moves[word](of, a + 2, n)
    if why then
      append()
      return respond(why)
    end
  end
  a = a + 2 + n
end
append()
return respond('done')
