--- @include base
-- What a job may wait for: the end of another job of Hero. In a context it is more (`lib/context/prerequisites.lua`).

-- The status of a prerequisite; false or nil if it is not there.
local function status_of(id) return exists(JOB .. id) and redis.call('HGET', JOB .. id, 'status') end

-- Notes in the record of a prerequisite who waits for it, by its name in quotes.
local LONGEST_DEPENDENTS = 40000 -- bytes: about 1,000 ids; the list in NEXT is what counts
local function note_dependent(id, name)
  local record = JOB .. id
  if redis.call('HSTRLEN', record, 'dependents') >= LONGEST_DEPENDENTS then return end
  local known = redis.call('HGET', record, 'dependents') or ''
  local before = string.match(known, '^%s*(%[.*)%]%s*$') or '['
  local comma = string.find(before, '"', 1, true) and ',' or ''
  if not string.find(before, name, 1, true) then
    redis.call('HSET', record, 'dependents', before .. comma .. name .. ']')
  end
end
