-- What scripts see: the libraries behind tables that cannot be written to, as in Redis, where the
-- interpreter itself guards them. `host` are the functions that the engine gives.
local host = ...
local error, type, select, tostring = error, type, select, tostring
local rawget, rawset, setmetatable, getmetatable = rawget, rawset, setmetatable, getmetatable
local next, pairs, floor = next, pairs, math.floor
local pcall, xpcall, resume, wrap = pcall, xpcall, coroutine.resume, coroutine.wrap
local loadstring, setfenv, collectgarbage = loadstring, setfenv, collectgarbage
local READONLY = 'Attempt to modify a readonly table'

local behind = setmetatable({}, { __mode = 'k' })
local function refuse() error(READONLY, 2) end

-- A table that reads as `original` and cannot be written to.
local function guard(original)
  local proxy = {}
  behind[proxy] = original
  local meta = { __index = original, __newindex = refuse }
  meta.__metatable = setmetatable({}, { __index = meta, __newindex = refuse })
  behind[meta.__metatable] = meta
  return setmetatable(proxy, meta)
end

local globals, redis = {}, host.redis
local env = guard(globals)
for _, name in pairs({ 'assert', 'error', 'gcinfo', 'ipairs', 'rawequal', 'select', 'tonumber',
  'tostring', 'type', 'unpack', '_VERSION', 'getmetatable' }) do globals[name] = _G[name] end
globals._G = env

function globals.next(t, key) return next(behind[t] or t, key) end
function globals.pairs(t) return globals.next, t, nil end
function globals.rawget(t, key) return rawget(behind[t] or t, key) end
function globals.rawset(t, key, value)
  if behind[t] then error(READONLY, 0) end
  return rawset(t, key, value)
end
function globals.setmetatable(t, meta)
  if behind[t] then error(READONLY, 0) end
  return setmetatable(t, meta)
end

-- Errors of the engine are objects inside, and to scripts what Redis makes of them.
local function plain(ok, ...)
  if ok then return true, ... end
  return false, host.plain((...))
end
local function tabled(ok, ...)
  if ok then return true, ... end
  return false, host.tabled((...))
end
function globals.pcall(...) return plain(pcall(...)) end
function globals.xpcall(f, handler)
  return xpcall(f, function(e) return handler(host.tabled(e)) end)
end

local function load(text, name)
  if type(text) == 'string' and text:byte(1) == 27 then
    return nil, 'attempt to load a compiled chunk'
  end
  local f, e = loadstring(text, name)
  if not f then return nil, e end
  return setfenv(f, env)
end
globals.loadstring = load
function globals.load(reader, name)
  local pieces = {}
  for piece in reader do
    if piece == '' then break end
    pieces[#pieces + 1] = piece
  end
  return load(table.concat(pieces), name or '=(load)')
end
function globals.collectgarbage(option)
  return option == 'count' and collectgarbage('count') or 0
end

local function copy(library)
  local own = {}
  for name, value in pairs(library) do own[name] = value end
  return own
end
local math, coroutine = copy(math), copy(coroutine)
function coroutine.resume(...) return tabled(resume(...)) end
local function integer(value, at, name)
  local number = tonumber(value)
  if number then return number - number % 1 end
  local text = "bad argument #%d to '%s' (number expected, got %s)"
  error(text:format(at, name, value == nil and 'no value' or type(value)), 3)
end
function math.random(...)
  local r, count = host.random(), select('#', ...)
  if count == 0 then return r end
  if count > 2 then error('wrong number of arguments', 2) end
  local low, high = 1, integer((...), 1, 'random')
  if count == 2 then low, high = high, integer(select(2, ...), 2, 'random') end
  if low > high then
    error(("bad argument #%d to 'random' (interval is empty)"):format(count), 2)
  end
  return floor(r * (high - low + 1)) + low
end
function math.randomseed(seed) host.seed(integer(seed, 1, 'randomseed')) end
globals.math, globals.coroutine = guard(math), guard(coroutine)
globals.string, globals.table = guard(string), guard(table)
globals.redis = guard(redis)
getmetatable('').__metatable = guard({ __index = globals.string })
setmetatable(globals, { __index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end })

return env, function(script, keys, argv, call, pcall)
  globals.KEYS, globals.ARGV, redis.call, redis.pcall = keys, argv, call, pcall
  return xpcall(script, host.located)
end
