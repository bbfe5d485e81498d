-- Lists of ids in records of foreign clients.

-- Reads job ids: a JSON array of strings and whole numbers, a JSON string, or bare ids with commas. Returns false for
-- other texts.
local MOST_PREREQUISITES = 1000 -- as many as a native job may have
local function read_ids(seen, ids, text)
  text = text or ''
  local first, last = string.find(text, '%S'), string.find(string.reverse(text), '%S')
  text = first and string.sub(text, first, -last) or ''
  if text == '' or text == 'null' or string.find(text, '^{%s*}$') then return true end
  local inner, bare = text, '^%s*([^%s%c"\'{}%[%],]+)%s*'
  if string.sub(text, 1, 1) == '[' and string.sub(text, -1) == ']' then
    inner, bare = string.sub(text, 2, -2), '^%s*(%d+)%s*'
    if not string.find(inner, '%S') then return true end
  end
  local at, comma = 1, ','
  while comma == ',' and #ids <= MOST_PREREQUISITES do
    local _, behind, id = string.find(inner, '^%s*"([^"\\%c]+)"%s*', at)
    if not id then _, behind, id = string.find(inner, bare, at) end
    if not id then return false end
    if not seen[id] then seen[id] = true ids[#ids + 1] = id end
    comma, at = string.sub(inner, behind + 1, behind + 1), behind + 2
  end
  return comma == '' or comma == ','
end
