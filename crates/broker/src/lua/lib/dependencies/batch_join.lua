--- @include complete/ending
-- Adding jobs to a batch: while it is open; for its own running jobs, until it has ended.
local MOST_MEMBERS = 1000000 -- jobs of one batch: a scan of all takes minutes
local MOST_LISTED = 1000 -- jobs whose results a callback receives
local joining = {}

-- Returns true if a running job of the batch enqueues the new job: the batch cannot end meanwhile.
local function of_its_own(o)
  local is = o.member and read(JOB .. o.member, 'mw_batch', 'mw_token', 'status') or {}
  return is.status == 'started' and is.mw_batch == o.batch and is.mw_token == o.token
end

-- Returns why a batch refuses a job, nothing if it accepts the job.
local function batch_refuses(o, now)
  local has = joining[o.batch]
  if not has then
    has = batches().state(o.batch)
    has.ids, has.now = {}, now
    joining[o.batch] = has
  end
  if not has.total then return 'batch missing' end
  if has.ended or has.cancelled then return 'batch ended' end
  if has.sealed and not of_its_own(o) then return 'batch sealed' end
  if tonumber(has.total) + #has.ids >= MOST_MEMBERS then return 'batch full' end
  local members = try('SCARD', MEMBERS .. o.batch)
  return type(members) ~= 'number' and members or nil
end

-- Lists the first jobs of a batch, for its callbacks.
local function list_joined(batch, ids)
  local key = JOINED .. batch
  local room = MOST_LISTED - (tonumber(try('LLEN', key)) or MOST_LISTED)
  if room > 0 then try('RPUSH', key, unpack(ids, 1, math.min(#ids, room))) end
end

-- Adds the jobs that joined batches in this call.
local function join_all()
  for batch, has in pairs(joining) do
    if #has.ids > 0 then
      redis.call('SADD', MEMBERS .. batch, unpack(has.ids))
      list_joined(batch, has.ids)
      redis.call('HINCRBY', BATCHES .. batch, 'total', #has.ids)
      redis.call('HSET', BATCHES .. batch, 'open_until', int(has.now + tonumber(has.open_for)))
    end
  end
end
