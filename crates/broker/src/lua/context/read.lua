--- @include base, enter_database
--- @flags no-writes
-- Reads several keys of a context, or of the node, in one step.
-- KEYS[1..]  the keys
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the database ('' for that of the connection)
-- ARGV[3..]  per key the kind of read and two strings: hash; pair: two fields; tail: most elements; due: most members;
--            last: most entries of a stream, the newest first; after: most entries, and the id before them
-- Returns per key: hash: fields and values; pair: two values, '' for none; tail: elements, the next to be popped last;
--         due: members whose time has come; last, after: entries
local keys = enter_database(ARGV[2])
local reads = {
  hash = function(key) return redis.call('HGETALL', key) end,
  pair = function(key, one, other)
    local values = redis.call('HMGET', key, one, other)
    return {values[1] or '', values[2] or ''}
  end,
  tail = function(key, most) return redis.call('LRANGE', key, '-' .. most, '-1') end,
  due = function(key, most)
    return redis.call('ZRANGEBYSCORE', key, '-inf', int(clock(ARGV[1])), 'LIMIT', '0', most)
  end,
  last = function(key, most) return redis.call('XREVRANGE', key, '+', '-', 'COUNT', most) end,
  after = function(key, most, id) return redis.call('XRANGE', key, '(' .. id, '+', 'COUNT', most) end,
}
local found = {}
for at, key in ipairs(keys) do
  local how = 3 * at
  found[at] = reads[ARGV[how]](key, ARGV[how + 1], ARGV[how + 2])
end
return found
