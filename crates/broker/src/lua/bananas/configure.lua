--- @include base, update_settings
--- @flags allow-oom
-- Changes single settings of a route of Bananas; the others stay. Which of its jobs ours run is always known, so what
-- runs counts from this call on.
-- KEYS
-- ARGV    now, the route, number of changes, per change its name and value ('' takes it away)
-- Returns nothing
change(ARGV[2], 4, tonumber(ARGV[3]))
