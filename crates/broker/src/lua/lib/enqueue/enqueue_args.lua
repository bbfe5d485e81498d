-- Reads a job as in enqueue.lua from ARGV[a] on. Returns id, type, options (nil for none), the index of its values (see
-- write_record.lua), and the index after the job.
local function read_args(a)
  local id, script_type, n, o = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  a = a + 3
  if n > 0 then o = {} end
  for _ = 1, n do
    local name, value = ARGV[a], ARGV[a + 1]
    if name ~= 'after' then o[name] = value
    else
      o.after = o.after or {}
      o.after[#o.after + 1] = value
    end
    a = a + 2
  end
  return id, script_type, o, a, a + VALUES + 1 + tonumber(ARGV[a + VALUES])
end
