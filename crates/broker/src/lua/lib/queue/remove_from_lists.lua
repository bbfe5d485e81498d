--- @include old_entries
-- Removal of ids from their queues.

-- Removes an id from its queue. In a long queue the search would block the server: the claim drops the id later.
local LONGEST_WALK = 10000
local function unqueue(queue, id)
  local length = try('LLEN', queue)
  if type(length) == 'number' and length <= LONGEST_WALK then redis.call('LREM', queue, 0, id) end
end
