--- @include old_entries
-- Asking whoever runs a job to stop it.

-- A request that nobody takes ends. A list that others made gets no end: theirs would go with it.
local function request(queue, id)
  local length = redis.pcall('LPUSH', queue, id)
  if type(length) ~= 'number' then return end -- where that key is no list, the next renewal tells it
  if length == 1 then redis.call('PEXPIRE', queue, STOP_TTL)
  else redis.call('PEXPIRE', queue, STOP_TTL, 'GT') end
end

-- A worker with a lease hears the control queue of its type. One without a lease may hear that, the control queue of its
-- instance (the job was sent to one, or `instances` are there), or the stop queue of its id.
local function ask_to_stop(id, has, of_type, instances)
  request(of_type, id)
  if has.mw_token then return end
  local queues, asked = {unpack(instances)}, {}
  local sent = has.mw_queue or ''
  if string.sub(sent, 1, #WORK) == WORK and string.find(sent, ':inst:', 1, true) then
    queues[#queues + 1] = CONTROL .. string.gsub(string.sub(sent, #WORK + 1), ':prio:%d+$', '')
  end
  queues[#queues + 1] = old_stop_queue(has)
  for _, queue in ipairs(queues) do
    if not asked[queue] then request(queue, id) end
    asked[queue] = true
  end
end
