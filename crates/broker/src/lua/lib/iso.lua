-- Formats ms since 1970 as ISO 8601 in UTC. Days are counted in eras of 400 years that begin in March.
local dates = {}
local function iso(ms)
  if dates[ms] then return dates[ms] end
  local s, div = math.floor(ms / 1000), math.floor
  local z = div(s / 86400) + 719468
  local era = div(z / 146097)
  local doe = z - era * 146097
  local yoe = div((doe - div(doe / 1460) + div(doe / 36524) - div(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + div(yoe / 4) - div(yoe / 100))
  local mp = div((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  dates[ms] = string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month,
    doy - div((153 * mp + 2) / 5) + 1, div(s / 3600) % 24, div(s / 60) % 60, s % 60, ms % 1000)
  return dates[ms]
end
