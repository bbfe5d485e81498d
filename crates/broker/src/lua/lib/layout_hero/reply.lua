--- @include telemetry
-- Pushes the reply of a job. A record of a foreign client has no mw_reply and always gets a reply: on the list of today
-- (mw_legacy '0' or missing), on the legacy list, or on both if its client's kind is unknown ('both').
local function reply(has, id, payload)
  if has.mw_reply == '0' then return end
  local legacy, lists = not has.mw_reply and has.mw_legacy or '0', {REPLY}
  if legacy ~= '0' then lists = {OLD_REPLY, legacy == 'both' and REPLY or nil} end
  for _, list in ipairs(lists) do
    list = list .. id
    if pushed('LPUSH', list, payload) then redis.call('PEXPIRE', list, REPLY_TTL) end
  end
end
