--- @include read_ids, element
-- Prerequisites in the records of plain clients: numbers of jobs of the same caller; and keys and gates.
local PREREQUISITES = 'keys and gates, or of the numbers of jobs'
local LONGEST_GATE = 256 -- bytes

-- Returns the key or the gate that a text names; nil if it looks like a key and is none.
local function meant(text)
  if string.find(text, '^{ctx:') or #text > LONGEST_GATE then return names_object(text) and text end
  if not string.find(text, '^job:') and not string.find(text, '^message:') and not string.find(text, '^flow:') then
    return text
  end
  -- A key may come without the prefix of its context.
  local key = PREFIX .. text
  return names_object(key) and key
end

-- Adds the prerequisites to `ids`, each once. Returns the name of a field that cannot be read.
local function read_prerequisites(id, is, seen, ids)
  local numbers, texts = {}, {}
  if not read_ids({}, numbers, is.dependends) then return 'dependends' end
  if not read_ids({}, texts, is.prerequisites) then return 'prerequisites' end
  local caller = string.match(id, '^(.*:)%d+$')
  for _, number in ipairs(numbers) do
    local key = caller .. number
    if not names_job(key) then return 'dependends' end
    if not seen[key] then seen[key] = true ids[#ids + 1] = key end
  end
  for _, text in ipairs(texts) do
    local key = meant(text)
    if not key then return 'prerequisites' end
    if not seen[key] then seen[key] = true ids[#ids + 1] = key end
  end
end
