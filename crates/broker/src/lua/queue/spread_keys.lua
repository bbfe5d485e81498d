--- @include telemetry, enqueue/spread
-- Lists keys of a spread queue that have unfinished jobs in this part. From then on, the part takes no jobs that were placed
-- by an older layout.
-- KEYS       none
-- ARGV[1]    the name of the queue
-- ARGV[2]    the generation of the layout
-- ARGV[3]    the number of keys to skip
-- ARGV[4]    the greatest number of keys to look at
-- Returns [1]  the generation that the part has seen, if it is newer, else 0
--         [2]  the number of keys to skip in the next call, 0 after the last one
--         [3]  keys with unfinished jobs
local index, skip, most = SPREAD .. ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local newer = newer_spread(ARGV[1], ARGV[2])
if newer then return respond({tonumber(newer), 0, {}}) end
local keys, found = redis.call('ZRANGE', index, skip, skip + most - 1), {}
for _, key in ipairs(keys) do
  if spread_ended(index .. ' ' .. key) then redis.call('ZREM', index, key)
  else found[#found + 1] = key end
end
return respond({0, #keys == most and skip + #found or 0, found})
