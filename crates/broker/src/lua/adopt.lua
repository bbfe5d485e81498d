-- Takes jobs of other clients under watch: one that stands on no list, or whose worker is gone, is then
-- pushed again.
-- KEYS    per job: its hash, the queue of its type
-- ARGV    now; then per job: id, type
-- Returns how many were not watched before
local now, adopted, a = clock(ARGV[1]), 0, 2

-- Whether a job of another client may be on its way, or run, with nobody looking after it.
local function open(id, has)
  local status = has.status or ''
  local lives = status == 'dispatched' or status == 'started' or (status == '' and has.script)
  return lives and not has.mw_reply and not has.mw_waiting and not redis.call('ZSCORE', LEASES, id)
    and not redis.call('ZSCORE', WATCH, id) and not redis.call('ZSCORE', DELAYED, id)
end

for k = 1, #KEYS, 2 do
  local key, id = KEYS[k], ARGV[a]
  local has = read(key, 'status', 'script', 'mw_reply', 'mw_waiting', 'mw_queue', 'worker_id', 'actor_id')
  if open(id, has) then
    local _, after = old_list(ARGV[a + 1], worker_of(has))
    redis.call('HSETNX', key, 'script_type', ARGV[a + 1])
    -- One that came back to an old list from a worker that did not know its type.
    local known = string.sub(has.mw_queue or '', 1, #WORK) == WORK
    if not known then redis.call('HSET', key, 'mw_queue', KEYS[k + 1]) end
    redis.call('ZADD', WATCH, whole(now + after), id)
    adopted = adopted + 1
  end
  a = a + 2
end
return adopted
