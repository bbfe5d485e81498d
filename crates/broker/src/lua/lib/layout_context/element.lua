-- Elements of lists: whole keys of this context. Plain clients may push any text.
local HIGHEST = 4294967295 -- of an id

-- Returns true if a text is an id as keys have it.
local function is_id(text)
  return string.find(text, '^%d+$') and #text <= 10 and tonumber(text) <= HIGHEST
    and (text == '0' or string.byte(text) ~= 48)
end

local JOB_KEY = '^' .. PREFIX .. 'job:(%d+):(%d+)$'
local function names_job(key)
  local caller, id = string.match(key, JOB_KEY)
  return caller and is_id(caller) and is_id(id)
end

-- Returns true if a text is the key of a job, a message or a flow.
local function names_object(key)
  local caller, id = string.match(key, '^' .. PREFIX .. 'message:(%d+):(%d+)$')
  if caller then return is_id(caller) and is_id(id) end
  local flow = string.match(key, '^' .. PREFIX .. 'flow:(%d+)$')
  return flow and is_id(flow) or names_job(key)
end
