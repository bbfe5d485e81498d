--- @include ending
--- @flags allow-oom
-- Answers the question of an approval. The first answer counts.
-- KEYS[1]  the job's record
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the flow's number
-- ARGV[4]  the actor who answers
-- ARGV[5]  yes or no
-- Returns 'answered'; 'ended' and the answer before, if any; 'late' after its time, also if no worker has ended it yet;
--         'waiting' before the question is open; 'missing'
local key, now = KEYS[1], clock(ARGV[1])
local has = record(key, 'script_type', 'mw_flow', 'mw_answer', 'mw_waiting', 'mw_until')
if has.mw_flow ~= ARGV[3] or has.script_type ~= 'approve' then return respond({'missing', ''}) end
if final(has.status) then return respond({'ended', has.mw_answer or ''}) end
if has.mw_waiting then return respond({'waiting', ''}) end
if (tonumber(has.mw_until or '') or math.huge) <= now then return respond({'late', ''}) end
redis.call('HSET', key, 'mw_answer', ARGV[5] .. ' ' .. ARGV[4])
if ARGV[5] == 'yes' then
  local result = '{"answer":"yes","by":"' .. ARGV[4] .. '"}'
  redis.call('HSET', key, 'status', 'finished', OUTPUT, result, 'updated_at', stamp(now))
  finalize(key, key, has, 'finished', result, now, nil, ARGV[2])
else
  local why = 'rejected by actor ' .. ARGV[4]
  write_error(key, 'error', why, stamp(now))
  finalize(key, key, has, 'error', why, now, nil, ARGV[2])
end
event(key, ARGV[5] == 'yes' and 'approve' or 'reject', ARGV[2], 'actor ' .. ARGV[4])
return respond({'answered', ''})
