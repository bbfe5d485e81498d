--- @include base
-- Telling others: events and figures. Of our own keys that only help, none may end a script half way
-- because somebody has put something else there: they are written with `pcall`.

-- Whether the id could be pushed: a key that is no list takes none.
local function pushed(how, list, id) return type(redis.pcall(how, list, id)) == 'number' end

-- The audit: what happened to which job, and who did it. Neighbours that differ in the job alone share a
-- line, since a line costs as much as a job.
local LONGEST_NOTE = 200 -- bytes: the whole error stands in the record
local MOST_TOGETHER = 32 -- jobs in one line
local lines, figures, kept = {}, {}, {}
local function event(id, what, by, note)
  by, note = by or '', string.sub(note or '', 1, LONGEST_NOTE)
  local last = lines[#lines]
  if last and last.what == what and last.by == by and last.note == note and #last < MOST_TOGETHER
    and not last.blank and not string.find(id, ' ', 1, true) then
    last[#last + 1] = id
  else
    lines[#lines + 1] = {id, what = what, by = by, note = note, blank = string.find(id, ' ', 1, true)}
  end
end

-- Counts what happens to the jobs of a queue, for dashboards. Only of queues: there are
-- as many figures as lists.
local function count(queue, what, n)
  local of = figures[queue]
  if not of then
    if not queue or string.sub(queue, 1, #QUEUES) ~= QUEUES then return end
    of = {}
    figures[queue] = of
  end
  of[what] = (of[what] or 0) + (n or 1)
end

-- Counts the time of a run that began at `since`.
local function ran(queue, since, now)
  since = tonumber(since or '')
  if since and since <= now then count(queue, 'run_ms', now - since) end
end

-- Notes that a job has ended, for retention.
local function note_end(id, now)
  kept[#kept + 1] = int(now)
  kept[#kept + 1] = id
end

-- What every script ends with: writes what was noted on the way, and gives back its answer.
local last -- what has to be done before, if anything: see batch.lua
local taken_at -- when this call took jobs, if it did: see claim_fast.lua
local function respond(answer)
  if last then last() end
  for _, line in ipairs(lines) do
    redis.pcall('XADD', EVENTS, 'MAXLEN', '~', MOST_EVENTS, '*', #line == 1 and 'job' or 'jobs',
      table.concat(line, ' '), 'event', line.what, 'by', line.by, 'note', line.note)
  end
  for queue, of in pairs(figures) do
    local key = STATS .. string.sub(queue, #QUEUES + 1)
    for what, n in pairs(of) do redis.pcall('HINCRBY', key, what, n) end
    if of.started then redis.pcall('HSET', key, 'claimed_at', taken_at) end
  end
  if #kept > 0 then redis.pcall('ZADD', ENDED, unpack(kept)) end
  return answer
end
