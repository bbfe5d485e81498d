--- @include read_ids
-- Prerequisites in the records of foreign clients.
local PREREQUISITES = 'job ids'

-- Adds the prerequisites to `ids`, each once. Returns the name of a field that cannot be read.
local function read_prerequisites(_, is, seen, ids)
  for _, field in ipairs({'prerequisites', 'dependencies'}) do
    if not read_ids(seen, ids, is[field]) then return field end
  end
end
