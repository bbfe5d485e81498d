-- Sandbox of scripts: the libraries behind read-only tables. In Redis the interpreter itself guards
-- them. `host` is the table of the functions that the engine provides.
local host = ...
local error, type, tostring, next, pairs = error, type, tostring, next, pairs
local rawget, setmetatable, getmetatable = rawget, setmetatable, getmetatable
local pcall, xpcall, resume, wrap = pcall, xpcall, coroutine.resume, coroutine.wrap
local loadstring, setfenv, collectgarbage = loadstring, setfenv, collectgarbage
local READONLY = 'Attempt to modify a readonly table'

local behind = setmetatable({}, { __mode = 'k' })
local function refuse() error(READONLY, 2) end

-- A table that reads as `original` and cannot be written to.
local function guard(original)
  local proxy = {}
  behind[proxy] = original
  local meta = { __index = original, __newindex = refuse, __guarded = true }
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
globals.rawset, globals.setmetatable = host.rawset, host.setmetatable

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
math.random, math.randomseed = host.random, host.randomseed
for name, f in pairs(host.text) do string[name] = f end
for name, f in pairs(host.tables) do table[name] = f end
string.gfind = string.gmatch
globals.math, globals.coroutine = guard(math), guard(coroutine)
globals.string, globals.table = guard(string), guard(table)
globals.redis = guard(redis)
getmetatable('').__metatable = guard({ __index = globals.string })
setmetatable(globals, { __index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end })

-- Restores `redis.call` and `redis.pcall`, which the previous script may have replaced.
local command, guarded_command = redis.call, redis.pcall
return env, function(script, keys, argv)
  globals.KEYS, globals.ARGV, redis.call, redis.pcall = keys, argv, command, guarded_command
  return xpcall(script, host.located)
end
