--- @include telemetry
-- Counts a job of a foreign client when a script takes charge of it first; its `mw_queue`, which the caller writes, says so.
local function count_foreign(has, queue)
  if not has.mw_reply and not has.mw_queue then count(queue, 'created:foreign') end
  has.mw_queue = has.mw_queue or queue
end
