--- @include base, enter_database
-- Changes records, lists and sets of a context, or of the node, in one step, if all conditions hold.
-- KEYS[1..]  the keys of the steps
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the database ('' for that of the connection)
-- ARGV[3..]  per step: its word, the position of its key, the number of its strings, its strings.
--            Conditions: is: field, value ('' for none); absent; empty (the database); listed: element.
--            Changes: set: field, value, …; push: element; drop: element; mark: score, member; unmark: member;
--            keep: value, for how many ms; note: most entries, field, value, …; delete (a key of any kind).
--            With created_at or updated_at, a set also writes that time in ms
--            count: most rows, author, text: one more in the author's row of this minute, `minute author` to `number text`.
--            Beyond the most rows, a tenth of them is deleted, the oldest ones
-- Returns 0, or the number of the first condition that does not hold, from 1: nothing is changed then
local now = clock(ARGV[1])
local keys = enter_database(ARGV[2])

local function forget_oldest(key, most)
  local rows = redis.call('HGETALL', key)
  local names = {}
  for i = 1, #rows, 2 do names[#names + 1] = rows[i] end
  -- Minutes have as many digits until 2286.
  table.sort(names)
  for i = 1, math.ceil(most / 10) do redis.call('HDEL', key, names[i]) end
end

local holds = {
  is = function(key, a) return (redis.call('HGET', key, a[1]) or '') == a[2] end,
  absent = function(key) return redis.call('EXISTS', key) == 0 end,
  empty = function()
    local page = redis.call('SCAN', '0', 'COUNT', '1')
    return page[1] == '0' and #page[2] == 0
  end,
  listed = function(key, a) return redis.call('LPOS', key, a[1]) ~= false end,
}

-- Sets the exact time beside one in whole seconds, which the caller has read just before. The second may have ended since
-- then. A message from another context (mw_received_ms) has been created there.
local EXACT = {created_at = 'mw_created_ms', updated_at = 'mw_updated_ms'}
local function set_exact(key, field, seconds)
  local ms = math.min(now, seconds * 1000 + 999)
  if now - ms > 1000 or ms < seconds * 1000 then return end
  if field == 'created_at' and redis.call('HGET', key, 'mw_received_ms') then return end
  redis.call('HSET', key, EXACT[field], int(ms))
end

local changes = {
  set = function(key, a)
    redis.call('HSET', key, unpack(a))
    for i = 1, #a, 2 do
      if EXACT[a[i]] then set_exact(key, a[i], tonumber(a[i + 1]) or 0) end
    end
  end,
  push = function(key, a) redis.call('LPUSH', key, a[1]) end,
  drop = function(key, a) redis.call('LREM', key, '0', a[1]) end,
  mark = function(key, a) redis.call('ZADD', key, a[1], a[2]) end,
  unmark = function(key, a) redis.call('ZREM', key, a[1]) end,
  keep = function(key, a) redis.call('SET', key, a[1], 'PX', a[2]) end,
  delete = function(key) redis.call('DEL', key) end,
  count = function(key, a)
    local most, row = tonumber(a[1]), int(math.floor(now / 60000) * 60) .. ' ' .. a[2]
    local before = redis.call('HGET', key, row)
    if not before and redis.call('HLEN', key) >= most then forget_oldest(key, most) end
    local number = before and tonumber(string.match(before, '^%d+')) or 0
    redis.call('HSET', key, row, int(number + 1) .. ' ' .. a[3])
  end,
  note = function(key, a)
    redis.call('XADD', key, 'MAXLEN', '~', a[1], '*', 'at', int(math.floor(now / 1000)), unpack(a, 2))
  end,
}

-- A right that is missing in the middle would leave the steps before it done.
local commands = {
  set = 'HSET', push = 'LPUSH', drop = 'LREM', mark = 'ZADD', unmark = 'ZREM', keep = 'SET', delete = 'DEL', note = 'XADD',
  count = 'HSET',
}
local may = redis.acl_check_cmd
local kinds = {set = 'hash', push = 'list', drop = 'list', mark = 'zset', unmark = 'zset', keep = 'string', note = 'stream', count = 'hash'}
-- Skipped if the key has another type: there is nothing to remove, and a damaged trail prevents no change.
local optional = {drop = true, unmark = true, note = true, count = true}

local steps, conditions, at = {}, 0, 3
while at <= #ARGV do
  local word, key, many = ARGV[at], keys[tonumber(ARGV[at + 1])], tonumber(ARGV[at + 2])
  local a = {}
  for i = 1, many do a[i] = ARGV[at + 2 + i] end
  at = at + 3 + many
  if holds[word] then
    conditions = conditions + 1
    if not holds[word](key, a) then return conditions end
  else
    -- Checked before anything is written: a step that fails would leave the ones before it done.
    local kind = redis.call('TYPE', key).ok
    local fits = kind == 'none' or kind == (kinds[word] or kind)
    if not fits and not optional[word] then return redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. kind) end
    if may and not may(commands[word], key) then return {err = 'NOPERM missing rights: ' .. string.lower(commands[word])} end
    if fits then steps[#steps + 1] = {changes[word], key, a} end
  end
end
for _, step in ipairs(steps) do step[1](step[2], step[3]) end
return 0
