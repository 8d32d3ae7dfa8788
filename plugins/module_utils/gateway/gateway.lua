-- Copyright: (c) 2026, the baremetal.inference contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- The parts of the gateway that HAProxy's configuration cannot express. For Lua 5.3 and 5.4.

-- While HAProxy reads its configuration, its working directory is that of the configuration, and it has not entered its chroot.
local function read(name)
  local file = assert(io.open(name))
  local text = file:read("a")
  file:close()
  return text
end

-- Answers 413 after the whole body has arrived. A client that still sends would see a broken connection, and no reason.
-- The body is not kept in memory. If the body is larger than this, HAProxy closes the connection.
local SWALLOW_BYTES = 2 ^ 30

-- HAProxy 2.6 passes no arguments to a service, so each answer has its own.
local function register_too_large(service, answer)
  core.register_service(service, "http", function(applet)
    local swallowed = 0
    while swallowed < SWALLOW_BYTES do
      local part = applet:receive(65536)
      if not part or #part == 0 then break end
      swallowed = swallowed + #part
    end
    applet:set_status(413)
    applet:add_header("content-type", "application/json")
    applet:add_header("content-length", tostring(#answer))
    applet:start_response()
    applet:send(answer)
  end)
end

register_too_large("too_large", read("too-large.json"))
register_too_large("audio_too_large", read("audio-too-large.json"))

-- Finds the field `model` of a form, as clients send audio. HAProxy cannot read forms. The field may come after the file. Returns the
-- field, and whether the form may have it twice. A form with more parts than FORM_PARTS has no model.
local FORM_PARTS = 64
local LONGEST_HEADERS = 1024

local function form_model(body, boundary)
  local model, twice
  local _, head = body:find(boundary, 1, true)
  for _ = 1, FORM_PARTS + 1 do
    local blank, value = body:find("\r\n\r\n", head and head + 1 or #body + 1, true)
    local close, next_head = body:find("\r\n" .. boundary, value and value + 1 or #body + 1, true)
    if not close then return model, twice end
    local headers = body:sub(head + 1, math.min(blank, head + LONGEST_HEADERS) + 1)
    -- The character before `name` tells it from `filename`. Engines also read encoded names, which have one of \ and *.
    if headers:find('[;%s][Nn][Aa][Mm][Ee]%s*=%s*"?model"?%s*[;\r]') then
      twice = twice or model ~= nil
      model = model or body:sub(value + 1, close - 1)
    elseif headers:find("[\\*]") or blank - head > LONGEST_HEADERS then
      twice = true
    end
    head = next_head
  end
end

core.register_action("form_model", { "http-req" }, function(txn, characters)
  local kind = txn.sf:req_fhdr("content-type")
  -- The name in any case.
  local at = select(2, kind:lower():find("boundary=", 1, true))
  local boundary = at and (kind:match('^"([^"]+)"', at + 1) or kind:match("^[^;%s]+", at + 1))
  if not boundary then return end
  local model, twice = form_model(txn.sf:req_body(), "--" .. boundary)
  if model then txn:set_var("txn.model", model:sub(1, tonumber(characters))) end
  txn:set_var("txn.model_twice", twice or false)
end, 1)

local QUOTE, BRACE, BRACKET = ('"{['):byte(1, 3)

-- Python's reader of JSON gives up at about twice this depth.
local DEEPEST = 500

-- The place of the quote that ends a string, from its first character on; nil without an end.
local function string_end(body, at)
  while true do
    local stop = body:find('["\\]', at)
    if not stop or body:byte(stop) == QUOTE then return stop end
    at = stop + 2
  end
end

-- Whether a JSON object may have the key `model` more than once. A key with a backslash may be the same key.
local function has_model_twice(body)
  local depth, found, at = 0, 0, 1
  while true do
    at = body:find('["{}%[%]]', at)
    if not at then return found > 1 end
    local kind = body:byte(at)
    if kind == QUOTE then
      local close = string_end(body, at + 1)
      if not close then return true end
      if depth == 1 and body:find("^%s*:", close + 1) then
        local key = body:sub(at + 1, close - 1)
        if key:find("\\", 1, true) then return true end
        if key == "model" then found = found + 1 end
      end
      at = close
    elseif kind == BRACE or kind == BRACKET then
      depth = depth + 1
      if depth > DEEPEST then return true end
    else
      depth = depth - 1
    end
    at = at + 1
  end
end

-- Most bodies have the word once and no encoded letter: these are not read further. A script that takes too long is ended, and its request
-- then counts as ambiguous.
core.register_action("model_twice", { "http-req" }, function(txn)
  -- A form has been read already.
  if txn:get_var("txn.model_twice") ~= nil then return end
  local body = txn.sf:req_body()
  local _, first = body:find('"model"', 1, true)
  if not body:find('"model"', first and first + 1 or 1, true) and not body:find("\\u", 1, true) then return end
  txn:set_var("txn.model_twice", true)
  txn:set_var("txn.model_twice", has_model_twice(body))
end)

-- Two kinds of processes have wrong states of servers. An old process, replaced by a reload, runs no checks any more. A young process
-- has the states from a file, and has checked no server yet. Both read the nodes' agents themselves before they choose an engine.
local YOUNG_SECONDS = 4
local ASK_SECONDS = 1
local started = core.now()

local function milliseconds()
  local now = core.now()
  return now.sec * 1000 + now.usec // 1000
end

local function is_frozen(txn)
  return core.now().sec - started.sec < YOUNG_SECONDS or txn.f:stopping() == 1
end

-- Facts about servers that their names do not contain: the address of the node's agent, and which of an engine's two servers the agent
-- must report on. Each line has BACKEND/SERVER, ADDRESS, and words for the agent. Most servers have no line.
local agents = {}
for line in assert(io.lines("agents.txt")) do
  local server, address, words = line:match("^(%S+) (%S+) ?(.*)$")
  agents[server] = { address = address, words = words }
end

-- The replica sets behind a backend, by name. gateway/backends.py names the servers. In a set's own backend: HOST,
-- INSTANCE_next.HOST or INSTANCE_bridge.HOST. In a backend that borrows servers: INSTANCE.HOST instead of HOST.
local function sets_of(backend)
  if backend:find("^set_") then return { [backend] = true } end
  local sets = {}
  for server in pairs(core.backends[backend].servers) do
    sets["set_" .. server:match("^[^.]*"):gsub("_bridge$", ""):gsub("_next$", "")] = true
  end
  return sets
end

local function instance_of(set, server)
  local name = set:sub(5)
  local bridge = name .. "_bridge"
  return server:sub(1, #bridge + 1) == bridge .. "." and bridge or name
end

-- If the agent does not answer, or answers with an unknown word, the server's state stays. The question has no gateway's name, so the
-- agent does not count it as a check.
local function ask_agent(server, instance, port, told)
  local socket = core.tcp()
  socket:settimeout(ASK_SECONDS)
  local answer
  if socket:connect(told and told.address or server:get_addr():match("^(.*):%d+$"), port) then
    socket:send(instance .. "\n" .. (told and told.words ~= "" and "\n" .. told.words .. "\n" or ""))
    answer = socket:receive("*l")
  end
  socket:close()
  if not answer then return end
  if answer:find("^up") then
    server:set_ready()
    server:check_force_up()
  elseif answer:find("^drain") then
    server:set_drain()
  elseif answer:find("^down") then
    server:check_force_down()
  end
end

-- Asks all agents of a set at once, at most once per second. Requests that come meanwhile wait for the same answers.
local asked = {}

-- Twice the limit of one question: HAProxy 3.0 tries longer to reach a node that is gone, and a task may end without an answer.
local function is_over(round)
  return round.waiting == 0 or milliseconds() - round.began >= 2 * ASK_SECONDS * 1000
end

local function ask_agents(set, port)
  local round = asked[set]
  if not round or is_over(round) and milliseconds() - round.began >= ASK_SECONDS * 1000 then
    round = { began = milliseconds(), waiting = 0 }
    asked[set] = round
    for name, server in pairs(core.backends[set].servers) do
      round.waiting = round.waiting + 1
      core.register_task(function()
        ask_agent(server, instance_of(set, name), port, agents[set .. "/" .. name])
        round.waiting = round.waiting - 1
      end)
    end
  end
  return round
end

local function ask(backend, port)
  if port == 0 then return end
  local rounds = {}
  -- Ask the agents of all sets before waiting for the first answer.
  for set in pairs(sets_of(backend)) do rounds[set] = ask_agents(set, port) end
  for _, round in pairs(rounds) do
    while not is_over(round) do core.msleep(5) end
  end
end

-- Whether an engine of a backend takes requests. Reads the servers, since `nbsrv` is always 0 in an old process (2.6).
local function is_served(backend)
  for _, server in pairs(backend.servers) do
    if server:get_stats().status:find("^UP") then return true end
  end
  return false
end

-- Holds a request while no engine of its backend takes any, at most until the backend has been without an engine for `seconds`. Later
-- requests get 503 at once, so an outage makes no client wait longer than a swap would. When an engine is back, all held requests
-- continue at the same moment: txn.held lets them pass the queue's limit. In a process with wrong states, the backend's time is wrong,
-- too. There, each request counts its own time.
core.register_action("hold", { "http-req" }, function(txn, seconds, agent_port)
  local name = txn.f:be_name()
  local backend = core.backends[name]
  local limit, port = tonumber(seconds), tonumber(agent_port)
  local began, frozen = core.now().sec, is_frozen(txn)
  if frozen then ask(name, port) end
  while not is_served(backend) do
    local waited = frozen and core.now().sec - began or tonumber(backend:get_stats().lastchg) or 0
    if waited >= limit then return end
    txn:set_var("txn.held", true)
    core.msleep(200)
    frozen = frozen or is_frozen(txn)
    if frozen then ask(name, port) end
  end
end, 2)

-- Prefers the same engine for requests with the same affinity key (txn.affinity): its cache has the beginning of their prompts. Each
-- pair of key and engine has a score, and the engine with the highest score is preferred. So the keys of an engine that goes move to the
-- other engines, and no other key moves.
--
-- An engine takes such a request only while it has less than `percent` of its share of all requests, and less than `most`. Otherwise the
-- engine with the next score gets the request, which would wait at the first one. If no engine has room, HAProxy chooses.

-- No matter how few requests there are in all, an engine takes this many: two related requests at once need no second engine.
local FEW = 4

-- The last part of splitmix64: every bit of the number decides about every bit of the result.
local function mixed(number)
  number = (number ~ (number >> 30)) * 0xbf58476d1ce4e5b9
  number = (number ~ (number >> 27)) * 0x94d049bb133111eb
  return number ~ (number >> 31)
end

-- FNV-1a.
local function hash(text)
  local found = 0xcbf29ce484222325
  for index = 1, #text do found = (found ~ text:byte(index)) * 0x100000001b3 end
  return found
end

-- The engine behind a server. An engine's three servers take each other's place, so all of them get the same requests.
local function engine_of(backend, server)
  local set = backend:match("^set_(.*)")
  if not set then return (server:gsub("^([^.]*)_next%.", "%1."):gsub("^([^.]*)_bridge%.", "%1.")) end
  for _, name in ipairs({ set .. "_next.", set .. "_bridge." }) do
    if server:sub(1, #name) == name then return server:sub(#name + 1) end
  end
  return server
end

local engine_hashes = {}

local function score(backend, server, key)
  local id = backend .. "/" .. server
  engine_hashes[id] = engine_hashes[id] or hash(engine_of(backend, server))
  return mixed(engine_hashes[id] ~ mixed(key))
end

-- The engines of a backend that take requests, the preferred one first, with their load: requests that run and wait.
local function ranked(backend, key)
  local engines, load, weight = {}, 0, 0
  for name, server in pairs(core.backends[backend].servers) do
    local stats = server:get_stats()
    if stats.status:find("^UP") and stats.weight > 0 then
      local engine = { name = name, load = stats.scur + stats.qcur, weight = stats.weight, score = score(backend, name, key) }
      engines[#engines + 1] = engine
      load, weight = load + engine.load, weight + engine.weight
    end
  end
  table.sort(engines, function(one, other)
    if one.score ~= other.score then return one.score > other.score end
    return one.name < other.name
  end)
  return engines, load, weight
end

-- How many requests of each backend with affinity got the preferred engine, got another one, or had no key.
local affinities = {}

local function count(backend, what)
  affinities[backend] = affinities[backend] or { preferred = 0, other = 0, keyless = 0 }
  affinities[backend][what] = affinities[backend][what] + 1
end

core.register_action("prefer", { "http-req" }, function(txn, percent, most)
  local backend, key = txn.f:be_name(), txn:get_var("txn.affinity")
  if not key then return count(backend, "keyless") end
  local engines, load, weight = ranked(backend, key)
  if not engines[1] then return end
  txn:set_var("txn.preferred", engines[1].name)
  for place, engine in ipairs(engines) do
    -- While an engine starts slowly, its weight grows from 1 to 100, and so does its share.
    local share = math.ceil(tonumber(percent) * (load + 1) * engine.weight / weight / 100)
    local few = math.max(1, FEW * engine.weight // 100)
    if engine.load < math.min(math.max(share, few), tonumber(most)) then
      txn:set_var("txn.engine", engine.name)
      return count(backend, place == 1 and "preferred" or "other")
    end
  end
  count(backend, "other")
end, 2)

-- Shows nodes what the gateway sends to a replica set, before they take an engine out: /sets/NAME of the frontend `metrics`, which
-- checks the name. `weight` is the current share, also under a slow start. The text is cached for 0.1 s, since many nodes may ask.
local VIEW_MILLISECONDS = 100
local views = {}

local function server_view(name, server)
  local stats = server:get_stats()
  return string.format(
    '"%s": {"status": "%s", "up": %s, "weight": %d, "sessions": %d, "queued": %d, "requests": %d, "failures": %d,'
      .. ' "address": "%s"}',
    name, stats.status, stats.status:find("^UP") ~= nil, stats.weight, stats.scur, stats.qcur, stats.stot,
    stats.econ + stats.eresp + stats.hrsp_5xx, server:get_addr()
  )
end

local function affinity_view(backend)
  local counts = affinities[backend]
  if not counts then return "" end
  return string.format(
    ' "affinity": {"preferred": %d, "other": %d, "keyless": %d},', counts.preferred, counts.other, counts.keyless
  )
end

local function set_view(set, hold_seconds, key_mark)
  local backend = core.backends["set_" .. set]
  local servers = {}
  for name, server in pairs(backend.servers) do
    servers[#servers + 1] = server_view(name, server)
  end
  return string.format(
    '{"set": "%s", "hold_seconds": %d, "key_mark": "%s", "started": %d.%06d, "age": %d, "requests": %d,%s "servers": {%s}}',
    set, hold_seconds, key_mark, started.sec, started.usec, core.now().sec - started.sec, backend:get_stats().stot,
    affinity_view("set_" .. set), table.concat(servers, ", ")
  )
end

core.register_service("set_view", "http", function(applet)
  local set = applet.path:sub(#"/sets/" + 1)
  local view = views[set]
  if not view or milliseconds() - view.at >= VIEW_MILLISECONDS then
    view = { at = milliseconds(), text = set_view(set, applet:get_var("txn.hold_seconds"), applet:get_var("txn.key_mark") or "") }
    views[set] = view
  end
  applet:set_status(200)
  applet:add_header("content-type", "application/json")
  applet:add_header("content-length", tostring(#view.text))
  applet:start_response()
  applet:send(view.text)
end)
