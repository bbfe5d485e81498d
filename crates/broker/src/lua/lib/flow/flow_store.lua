--- @include write_record
-- Stores the jobs of a flow under free numbers.
local HIGHEST_ID = 4294967295
local MOST_TRIES = 1000 -- taken numbers in a row; after them the call ends, and is repeated
local tries = 0

-- Returns the key and the number of a new job; or nil and the reason why there is none.
local function new_job(prefix)
  while tries < MOST_TRIES do
    if tonumber(redis.call('GET', JOB_ID) or 0) >= HIGHEST_ID then return nil, 'none' end
    local id = int(redis.call('INCR', JOB_ID))
    if redis.call('EXISTS', prefix .. id) == 0 then return prefix .. id, id end
    tries = tries + 1
  end
  return nil, 'again'
end

-- Stores the job in ARGV[a..]: its place in the plan, generation, name, type, status, values (write_record.lua),
-- number of strings that follow, field, value, … A name that is there already is left as it is. Returns where what
-- follows begins, then the key and the number if it is new; or nothing, and why.
local function store_job(flow, prefix, names, a, now)
  local from = a + 5
  local behind = from + VALUES + 1 + tonumber(ARGV[from + VALUES])
  if redis.call('HEXISTS', names, ARGV[a + 2]) == 1 then return behind end
  local key, id = new_job(prefix)
  if not key then return nil, id end
  ARGV[from] = id
  write_record(key, id, ARGV[a + 3], ARGV[a + 4], now, from)
  redis.call('HSET', key, 'mw_flow', flow, 'mw_node', ARGV[a], 'mw_generation', ARGV[a + 1], 'mw_name', ARGV[a + 2],
    'mw_with', '1')
  redis.call('HSET', names, ARGV[a + 2], id)
  return behind, key, id
end
