--- @include telemetry
-- Pushes the reply of a job if its client wants one. Plain clients read the record.
local function reply(has, id, payload)
  if not has.mw_reply or has.mw_reply == '0' then return end
  local list = REPLY .. id
  if pushed('LPUSH', list, payload) then redis.call('PEXPIRE', list, REPLY_TTL) end
end
