--- @include read_ids
-- What a job of another client waits for, by its record.
local PREREQUISITES = 'job ids'

-- Reads the ids into `ids`, each once. Gives the name of a field that cannot be read.
local function read_prerequisites(_, is, seen, ids)
  for _, field in ipairs({'prerequisites', 'dependencies'}) do
    if not read_ids(seen, ids, is[field]) then return field end
  end
end
