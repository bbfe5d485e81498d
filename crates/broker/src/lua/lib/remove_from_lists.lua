--- @include old_entries
-- Taking ids that will not run off the lists where they stand.

-- Off the queue. A longer queue is left alone, since the walk would hold up the server; the claim drops the
-- id when it comes up.
local LONGEST_WALK = 10000
local function unqueue(queue, id)
  local length = redis.pcall('LLEN', queue)
  if type(length) == 'number' and length <= LONGEST_WALK then redis.call('LREM', queue, 0, id) end
end
