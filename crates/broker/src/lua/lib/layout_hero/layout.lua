--- @include iso
-- Records of Hero, Bananas and Nooble4: times, and the worker of a job. A context has others (lib/layout_context/layout.lua).
local function created(ms, ...) return 'created_at', iso(ms), ... end -- further fields follow
local function updated(ms, ...) return 'updated_at', iso(ms), ... end
-- Returns true for a key of this namespace: all keys of jobs are, since scripts put its prefix before each id.
local function own_key() return true end
-- Jobs of Hero have no index: their clients may scan.
local function index_job() end local function unindex_job() end

-- Returns the worker that a record names, in either spelling.
local function worker_of(has)
  return (has.worker_id or '') ~= '' and has.worker_id or has.actor_id or ''
end
