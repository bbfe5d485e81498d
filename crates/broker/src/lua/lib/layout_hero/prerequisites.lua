--- @include base
-- Prerequisites of Hero jobs: other jobs. A context has more kinds (`lib/layout_context/prerequisites.lua`).

-- Returns the status of a prerequisite; nil if it is missing, and true if its key has another type: it may come back.
local function status_of(id)
  local has, other = read(JOB .. id, 'status')
  return has.status, other
end

-- Adds a dependent, its id in quotes, to the record of a prerequisite.
local LONGEST_DEPENDENTS = 40000 -- bytes: about 1,000 ids; the list in DEPENDENTS is what counts
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
