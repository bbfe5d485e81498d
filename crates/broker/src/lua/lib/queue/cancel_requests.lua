--- @include old_entries
-- Requests to the worker of a job to cancel it.

-- Pushes a request, which expires after STOP_TTL. A list of other requests gets no expiry, which would delete those.
local function request(queue, id)
  local length = try('LPUSH', queue, id)
  if type(length) ~= 'number' then return end -- no list: the worker learns it at its next renewal
  if length == 1 then redis.call('PEXPIRE', queue, STOP_TTL)
  else redis.call('PEXPIRE', queue, STOP_TTL, 'GT') end
end

-- A worker with a lease reads the control queue of its type. A worker without leases may read that, the control queue
-- of its instance (the job's queue names one, or `instances` are given), or the stop queue of its id.
local function ask_to_stop(id, has, of_type, instances)
  request(of_type, id)
  if has.mw_token then return end
  local queues, requested = {unpack(instances)}, {}
  local sent = has.mw_queue or ''
  if string.sub(sent, 1, #WORK) == WORK and string.find(sent, ':inst:', 1, true) then
    queues[#queues + 1] = CONTROL .. string.gsub(string.sub(sent, #WORK + 1), ':prio:%d+$', '')
  end
  queues[#queues + 1] = old_stop_queue(has)
  for _, queue in ipairs(queues) do
    if not requested[queue] then request(queue, id) end
    requested[queue] = true
  end
end
