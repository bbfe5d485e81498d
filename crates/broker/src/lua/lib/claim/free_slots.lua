--- @include base
-- Free slots of one worker, by its registration: a snapshot of its last report.

-- Returns true if the worker is registered, claims jobs, and has a free slot. A registration without numbers of slots, as
-- foreign workers write it, counts as one with free slots.
local function has_free_slot(presence)
  local is = try('GET', presence)
  if type(is) ~= 'string' then return is and true end -- a key of another kind says nothing about slots
  local slots = tonumber(string.match(is, '"slots"%s*:%s*(%d+)') or '') or 0
  local busy = tonumber(string.match(is, '"in_flight"%s*:%s*(%d+)') or '') or 0
  if slots > 0 and busy >= slots then return false end
  return not string.find(is, '"quiet"%s*:%s*true')
end
