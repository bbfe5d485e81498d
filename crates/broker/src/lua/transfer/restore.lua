--- @include protocols/import_job
--- @flags allow-oom
-- Stores parts of an export. Existing records stay as they are, so a call can be repeated.
-- KEYS[1]    jobs: hash of the first job. queue: the queue. members, joined: hash of the batch. record: a hash
-- KEYS[2..]  jobs: hashes of the other jobs. queue: hash of each job. members: the set of open jobs. joined: the list of
--            first jobs. record: the sorted set of such records
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    jobs, queue, members, joined or record
-- ARGV[4..]  jobs: per job its id; its scores among delayed jobs, dead letters and ended jobs, each empty if it has none;
--            the number of further strings; field, value, …; created_at in ms, empty if not known
--            queue, members, joined: ids
--            record: its name, its score, empty if it has none; field, value, …
-- Returns the number of stored records, queued jobs or listed ids
local now, who, kind = clock(ARGV[1]), ARGV[2], ARGV[3]
local taken = 0

local function jobs()
  local a = 4
  for k = 1, #KEYS do
    local id, n = ARGV[a], tonumber(ARGV[a + 4])
    if redis.call('EXISTS', KEYS[k]) == 0 then
      redis.call('HSET', KEYS[k], unpack(ARGV, a + 5, a + 4 + n))
      local has = read(KEYS[k], 'status', 'mw_unique', 'mw_attempt', 'mw_seq', 'mw_waiting', 'mw_expires',
        'mw_callback', 'mw_start_by')
      has.created = ARGV[a + 5 + n]
      list_job(id, KEYS[k], has, now, {delayed = ARGV[a + 1], dead = ARGV[a + 2], ended = ARGV[a + 3]})
      event(id, 'import', who)
      taken = taken + 1
    end
    a = a + 6 + n
  end
  if due_first then wake() end
end

-- Queues imported jobs that are in no queue yet.
local function queue()
  for k = 2, #KEYS do
    local has = record(KEYS[k], 'mw_import')
    if is_dispatched(has.status) and has.mw_import then
      redis.call('HDEL', KEYS[k], 'mw_import')
      deliver('LPUSH', ARGV[k + 2], KEYS[k], has, KEYS[1], now)
      taken = taken + 1
    end
  end
end

-- Lists jobs of a batch that has not been imported yet.
local function list_members()
  if redis.call('EXISTS', KEYS[1]) == 1 then return end
  if kind == 'members' then taken = redis.call('SADD', KEYS[2], unpack(ARGV, 4))
  else
    redis.call('DEL', KEYS[2])
    taken = redis.call('RPUSH', KEYS[2], unpack(ARGV, 4))
  end
end

local function whole_record()
  if redis.call('EXISTS', KEYS[1]) == 1 then return end
  redis.call('HSET', KEYS[1], unpack(ARGV, 6))
  if ARGV[5] ~= '' then redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4]) end
  taken = 1
end

local takes = {jobs = jobs, queue = queue, members = list_members, joined = list_members, record = whole_record}
takes[kind]()
return respond(taken)
