--- @include complete/ending, audit
--- @flags allow-oom
-- Answers the question of an approval. The first answer counts. The state in the flow's own keys decides, since plain
-- runners may write the record of a job.
-- KEYS[1]  the job's record
-- KEYS[2]  the states of the flow's jobs
-- KEYS[3]  the flow's record
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the flow's number
-- ARGV[4]  the actor who answers
-- ARGV[5]  yes or no
-- ARGV[6]  the approval's place in the plan
-- ARGV[7]  its generation
-- ARGV[8]  its name
-- Returns 'answered'; 'ended' and the answer before, if any; 'late' after its time, also if no worker has ended it yet;
--         'waiting' before the question is open; 'missing'
local key, now, place = KEYS[1], clock(ARGV[1]), ARGV[6]
local state = redis.call('HGET', KEYS[2], place)
if not state or not exists(key) then return respond({'missing', ''}) end
local has = record(key, 'mw_answer', 'mw_until')
local letter = string.sub(state, 1, 1)
if letter ~= 'q' and letter ~= 'w' then return respond({'ended', has.mw_answer or ''}) end
if state ~= 'q ' .. ARGV[7] then return respond({'waiting', ''}) end
if (tonumber(has.mw_until or '') or math.huge) <= now then return respond({'late', ''}) end
local yes = ARGV[5] == 'yes'
redis.call('HSET', KEYS[2], place, (yes and 'f ' or 'e ') .. ARGV[7] .. ' ' .. next_end(KEYS[3]))
redis.call('HSET', key, 'mw_answer', ARGV[5] .. ' ' .. ARGV[4])
if yes then
  local result = '{"answer":"yes","by":"' .. ARGV[4] .. '"}'
  redis.call('HDEL', key, 'error')
  redis.call('HSET', key, 'status', 'finished', OUTPUT, result, updated(now))
  finalize(key, key, has, 'finished', result, now, nil, ARGV[2])
else
  local why = 'rejected by actor ' .. ARGV[4]
  write_error(key, 'error', why, now)
  finalize(key, key, has, 'error', why, now, nil, ARGV[2])
end
local what = yes and 'approve' or 'reject'
event(key, what, ARGV[2], 'actor ' .. ARGV[4])
note_audit(ARGV[2], what, KEYS[3], ARGV[8], now)
wake_flow(ARGV[3], now)
return respond({'answered', ''})
