--- @include telemetry
-- Tells whoever may wait on the reply list. A record of a client that is not ours has no mw_reply: since
-- no field asks for a reply, it always gets one, where the client of its time looks for it: on the list of old, on
-- that of today (mw_legacy 0, or missing), or on both where nobody knows.
local function reply(has, id, payload)
  if has.mw_reply == '0' then return end
  local legacy, lists = not has.mw_reply and has.mw_legacy or '0', {REPLY}
  if legacy ~= '0' then lists = {OLD_REPLY, legacy == 'both' and REPLY or nil} end
  for _, list in ipairs(lists) do
    list = list .. id
    if pushed('LPUSH', list, payload) then redis.call('PEXPIRE', list, REPLY_TTL) end
  end
end
