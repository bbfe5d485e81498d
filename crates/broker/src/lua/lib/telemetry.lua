--- @include base
-- Events and statistics. Their keys are written with `pcall`: their errors end no script half way.

-- Pushes an id. Returns false if the key is no list.
local function pushed(how, list, id) return type(try(how, list, id)) == 'number' end

-- Notes an event: job, change, actor and note. Neighbours that differ in the job alone share a line, for its cost.
local LONGEST_NOTE = 200 -- bytes: the record has the whole error
local MOST_TOGETHER = 32 -- jobs in one line
local lines, figures, kept, ended_at, ended = {}, {}, {}
local function event(id, what, by, note)
  by, note = by or '', note and string.sub(note, 1, LONGEST_NOTE) or ''
  local last = lines[#lines]
  if last and last.what == what and last.by == by and last.note == note and #last < MOST_TOGETHER
    and not last.blank and not string.find(id, ' ', 1, true) then
    last[#last + 1] = id
  else
    lines[#lines + 1] = {id, what = what, by = by, note = note, blank = string.find(id, ' ', 1, true)}
  end
end

-- Counts a change of jobs of a queue, for statistics. Other lists are not counted.
local function count(queue, what, n)
  local of = figures[queue]
  if not of then
    if not queue or string.sub(queue, 1, #QUEUES) ~= QUEUES then return end
    of = {}
    figures[queue] = of
  end
  of[what] = (of[what] or 0) + (n or 1)
end

-- Counts the duration of a run that began at `since`.
local function ran(queue, since, now)
  since = tonumber(since or '')
  if since and since <= now then count(queue, 'run_ms', now - since) end
end

-- Notes that a job has ended, for retention. Each time is formatted once, since that is slow.
local function note_end(id, now)
  if now ~= ended_at then ended_at, ended = now, int(now) end
  kept[#kept + 1] = ended
  kept[#kept + 1] = id
end

-- Writes the noted events and statistics, and returns the answer: the end of every script.
local last -- a function to call first, if any: see batch.lua
local taken_at -- the time in ms if this call claims jobs: see claim_fast.lua
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
  if #kept > 0 then try('ZADD', ENDED, unpack(kept)) end
  return answer
end
