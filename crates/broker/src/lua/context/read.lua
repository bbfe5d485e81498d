--- @include base
-- Reads several keys of one context, or of the node, at one time.
-- KEYS    the keys
-- ARGV    1: now
--         2: the database ('' for the one of the connection)
--         then per key how, and two strings: hash; pair: two fields; tail: the most elements; due: the most members;
--         last: the most entries of a stream, the latest first; after: the most entries, and the id before them
-- Returns per key: fields and values; two values, '' for none; elements, the next to be popped last; members whose time has come; entries
if ARGV[2] ~= '' then redis.call('SELECT', ARGV[2]) end
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
for at, key in ipairs(KEYS) do
  local how = 3 * at
  found[at] = reads[ARGV[how]](key, ARGV[how + 1], ARGV[how + 2])
end
return found
