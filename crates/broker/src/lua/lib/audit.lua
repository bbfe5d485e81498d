--- @include telemetry
-- Audit trail of the context: its members read who has changed what.

-- Adds an entry. A trail that is no stream does not end a script half way.
local function note_audit(who, what, object, after, now)
  redis.pcall('XADD', AUDIT, 'MAXLEN', '~', MOST_AUDIT, '*', 'at', int(math.floor(now / 1000)), 'who', who,
    'what', what, 'object', object, 'before', '', 'after', string.sub(after, 1, LONGEST_NOTE))
end
