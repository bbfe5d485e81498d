--- @include complete/finalize
-- Members of batches that end in this call. They are counted at the end of the call, those of a batch together.
local leaving = {}

-- Notes that a batch is to be checked at the end of this call.
local function visit_batch(batch, now)
  local of = leaving[batch]
  if not of then
    of = {batch = batch, now = now, succeeded = {}, failed = {}}
    leaving[batch], leaving[#leaving + 1] = of, of
  end
  return of
end

leave = function(id, batch, finished, now)
  local ids = visit_batch(batch, now)[finished and 'succeeded' or 'failed']
  ids[#ids + 1] = id
end
