-- JSON output.

-- Returns a text as a JSON string.
local function in_quotes(text)
  local escaped = string.gsub(text, '[%c"\\]', function(c) return string.format('\\u%04x', string.byte(c)) end)
  return '"' .. escaped .. '"'
end
