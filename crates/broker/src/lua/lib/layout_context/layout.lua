--- @include iso
-- Records of contexts: the format of times. No record names a worker.

-- Formats ms since 1970 as whole seconds.
local function stamp(ms) return string.format('%.0f', math.floor(ms / 1000)) end

-- Return the fields of a time in a record with their values: whole seconds, which plain clients read, and exact ms.
-- Further fields follow.
local function created(ms, ...) return 'created_at', stamp(ms), 'mw_created_ms', string.format('%.0f', ms), ... end
local stamped, seconds, exact
local function updated(ms, ...)
  if ms ~= stamped then stamped, seconds, exact = ms, stamp(ms), string.format('%.0f', ms) end
  return 'updated_at', seconds, 'mw_updated_ms', exact, ...
end

local function worker_of() return '' end

-- Returns true for a key of this context. The id of a job is its key, so lists and sets may name keys of others.
local function own_key(key) return string.sub(key, 1, #PREFIX) == PREFIX end

-- Adds a job to the index by which users list jobs who may not scan, or removes it.
local function index_job(key, ms) redis.pcall('ZADD', INDEX, 'NX', stamp(ms), key) end
local function unindex_job(key) redis.pcall('ZREM', INDEX, key) end
