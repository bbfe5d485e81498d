--- @include base, enter_database
--- @flags no-writes
-- Reads several keys of a context, or of the node, in one step.
-- KEYS[1..]  the keys
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the database ('' for that of the connection)
-- ARGV[3..]  per key the kind of read and two strings: hash; text; pair, size: two fields; head: most elements; tail: most
--            elements, and how many at the end are skipped; due: most members; members: most members,
--            and how many to skip; count; last: most entries of a stream, the newest first; after: most entries, and the id before
--            them
-- Returns per key: hash: fields and values; text: the value of a string, if there is one; pair: two values, '' for none; size: bytes of both values; head, tail:
--         elements, the next to be popped last; due: members whose time has come; members; count: the number of members; last, after: entries. A key of another
--         type has no pair and no size
local keys = enter_database(ARGV[2])
local function size(key, field)
  local bytes = redis.pcall('HSTRLEN', key, field)
  return type(bytes) == 'number' and bytes or 0
end
local reads = {
  hash = function(key) return redis.call('HGETALL', key) end,
  text = function(key) return {redis.call('GET', key) or nil} end,
  pair = function(key, one, other)
    local values = redis.pcall('HMGET', key, one, other)
    if values.err then
      if not string.find(values.err, 'WRONGTYPE', 1, true) then return redis.call('HMGET', key, one, other) end
      values = {}
    end
    return {values[1] or '', values[2] or ''}
  end,
  size = function(key, one, other) return size(key, one) + size(key, other) end,
  head = function(key, most) return redis.call('LRANGE', key, '0', int(most - 1)) end,
  tail = function(key, most, skip) return redis.call('LRANGE', key, int(-most - skip), int(-skip - 1)) end,
  due = function(key, most)
    return redis.call('ZRANGEBYSCORE', key, '-inf', int(clock(ARGV[1])), 'LIMIT', '0', most)
  end,
  count = function(key) return {int(redis.call('ZCARD', key))} end,
  members = function(key, most, from) return redis.call('ZRANGE', key, from, int(from + most - 1)) end,
  last = function(key, most) return redis.call('XREVRANGE', key, '+', '-', 'COUNT', most) end,
  after = function(key, most, id) return redis.call('XRANGE', key, '(' .. id, '+', 'COUNT', most) end,
}
local found = {}
for at, key in ipairs(keys) do
  local how = 3 * at
  local is_read, answer = pcall(reads[ARGV[how]], key, ARGV[how + 1], ARGV[how + 2])
  if not is_read then
    -- The server does not name the key.
    local fault = type(answer) == 'table' and answer.err or tostring(answer)
    if string.find(fault, 'WRONGTYPE', 1, true) then
      return redis.error_reply('WRONGTYPE ' .. key .. ' holds another type')
    end
    error(answer)
  end
  found[at] = answer
end
return found
