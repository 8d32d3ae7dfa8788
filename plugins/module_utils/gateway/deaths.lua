-- Copyright: (c) 2026, the baremetal.inference contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- Requests that were in flight at the death of an engine: nodes report deaths, and the gateway knows the requests. For Lua 5.3 and 5.4.
-- A reload starts with empty tables: only the log has earlier requests.

-- Remembers requests for the time after an engine's death, when the node asks which requests were in flight: requests without an answer
-- or with an error of the server, and streams, since a dying engine may end a stream like a complete one. The log-format calls this at
-- the end of each request.
local REMEMBERED = 256
-- By INSTANCE/HOST: the requests, in the order of their ends; and when the engine last answered a request without a stream, in ms.
local endings, answered = {}, {}

-- The instance and the host behind a server, as INSTANCE/HOST. A bridge is an instance of its own.
local function engine_id(backend, server)
  local set = backend:match("^set_(.*)")
  local moves = set and (server:sub(1, #set + 6) == set .. "_next." or server:sub(1, #set + 8) == set .. "_bridge.")
  if set and not moves then return set .. "/" .. server end
  local instance, host = server:match("^([^.]*)%.(.*)$")
  return instance:gsub("_next$", "") .. "/" .. host
end

core.register_fetches("remember", function(txn)
  local server = txn.f:srv_name()
  if not server then return 0 end
  local engine, status, now = engine_id(txn.f:be_name(), server), txn:get_var("txn.status"), txn.f:date(0, "ms")
  -- If the client closes the connection before the engine answers, HAProxy ends the request with a status of its own.
  if txn:get_var("txn.answered") and status and status < 500 and not txn:get_var("txn.stream") then
    if status < 400 then answered[engine] = now end
    return 0
  end
  local known = endings[engine] or {}
  endings[engine] = known
  known[#known + 1] = {
    id = txn:get_var("txn.id"), key = txn:get_var("txn.key"), path = txn:get_var("txn.path"),
    status = status, answered = txn:get_var("txn.answered"), began = txn:get_var("txn.began"), ended = now,
  }
  if #known > REMEMBERED then table.remove(known, 1) end
  return 1
end)

-- A dead engine takes some seconds to end, or half a minute: it may wait 30 s for its processes. Meanwhile it answers 500.
local ENDING_MILLISECONDS = 35000
-- How long before its first failure an engine may have harmed requests. Two reports within this time are about one death.
local DYING_MILLISECONDS = 6000
local DEATHS_MILLISECONDS = 3600 * 1000
local MOST_DEATHS, MOST_REQUESTS = 50, 64
-- Deaths of the last hour, MOST_DEATHS at most, as nodes have reported them, in the order of the reports.
local deaths = {}
-- By name of a key: the time until which its requests are refused, in ms.
local refused = {}

-- The requests that an engine had when it died, the youngest first. An engine that has broken answers no request, and begins no stream. So
-- its first failure after the last good sign shows when the engine broke. Requests that came after this failure are not the cause, unless
-- they had no answer at the engine's end. A request that the gateway sent is a good sign, too: health checks let the gateway send it, so
-- the engine was sound shortly before.
local function in_flight(engine, at)
  local known, good = endings[engine] or {}, answered[engine] or 0
  local alive, broke, found = math.max(at - ENDING_MILLISECONDS, good), at, {}
  for _, request in ipairs(known) do
    if request.began <= at then alive = math.max(alive, request.began - DYING_MILLISECONDS) end
    if request.status and request.status < 400 then alive = math.max(alive, request.began) end
  end
  for _, request in ipairs(known) do
    if request.status and request.status >= 500 and request.ended >= alive then broke = math.min(broke, request.ended) end
  end
  local since = math.max(broke - DYING_MILLISECONDS, good)
  for _, request in ipairs(known) do
    local unanswered = not request.answered and request.began <= at and request.ended >= at - DYING_MILLISECONDS
    if request.ended >= since and (request.began <= broke or unanswered) then found[#found + 1] = request end
  end
  table.sort(found, function(one, other) return one.began > other.began end)
  return found
end

-- The names of keys with requests in a list. Requests of the gateway's own root have the key @local, which no client has.
local function keys_of(requests)
  local names, found = {}, {}
  for _, request in ipairs(requests) do
    if request.key:sub(1, 1) ~= "@" and not found[request.key] then
      found[request.key] = true
      names[#names + 1] = request.key
    end
  end
  return names
end

-- How many different things are in a table of names.
local function count(names)
  local number = 0
  for _ in pairs(names) do number = number + 1 end
  return number
end

-- The engines of a set, by INSTANCE/HOST, without bridges.
local function engines_of(set)
  local found = {}
  for server in pairs(core.backends["set_" .. set].servers) do
    local engine = engine_id("set_" .. set, server)
    if engine:sub(1, #set + 1) == set .. "/" then found[engine] = true end
  end
  return found
end

-- Refuses a key after a death, for `seconds`: the key must have been in flight at `limit` deaths or more, and no other key at as many.
-- These deaths must be on two nodes or more: one node may be broken. A set on one node cannot show that. With `limit` 0, no key is refused.
local function refuse(death, limit, seconds)
  if limit == 0 then return end
  local counts, nodes = {}, {}
  for _, each in ipairs(deaths) do
    for _, key in ipairs(each.keys) do
      counts[key] = (counts[key] or 0) + 1
      nodes[key] = nodes[key] or {}
      nodes[key][each.node] = true
    end
  end
  for _, key in ipairs(death.keys) do
    local alone = counts[key] >= limit and (count(nodes[key]) > 1 or count(engines_of(death.set)) == 1)
    for other, number in pairs(counts) do alone = alone and (other == key or number < counts[key]) end
    if alone then refused[key] = death.reported + seconds * 1000 end
  end
end

local function report_death(set, node, at, now)
  local backend = core.backends["set_" .. set]
  if not backend or not backend.servers[node] then return end
  for _, each in ipairs(deaths) do
    -- A node that got no answer repeats its report.
    if each.set == set and each.node == node and math.abs(each.at - at) < DYING_MILLISECONDS then return end
  end
  local requests = in_flight(set .. "/" .. node, at)
  local death = { set = set, node = node, at = at, reported = now, keys = keys_of(requests), requests = requests }
  deaths[#deaths + 1] = death
  if #deaths > MOST_DEATHS then table.remove(deaths, 1) end
  return death
end

-- A text as a string of JSON. HAProxy's rules admit only harmless ids and paths, but these come from clients.
local function quoted(text)
  return '"' .. tostring(text):gsub('[%c"\\]', function(letter) return string.format("\\u%04x", letter:byte()) end) .. '"'
end

local function death_view(death, now)
  local keys, requests = {}, {}
  for _, key in ipairs(death.keys) do keys[#keys + 1] = quoted(key) end
  for index = 1, math.min(#death.requests, MOST_REQUESTS) do
    local request = death.requests[index]
    requests[index] = string.format(
      '{"id": %s, "key": %s, "path": %s, "status": %s}',
      quoted(request.id), quoted(request.key), quoted(request.path), request.status or "null"
    )
  end
  return string.format(
    '{"set": "%s", "node": "%s", "age": %.3f, "keys": [%s], "requests": [%s]}',
    death.set, death.node, (now - death.at) / 1000, table.concat(keys, ", "), table.concat(requests, ", ")
  )
end

-- /deaths of the frontend `metrics`. A node reports the death of an engine by POST ?set=NAME&node=HOST&age=SECONDS. All answers have the
-- deaths of the last hour, at most MOST_DEATHS of them.
core.register_service("deaths", "http", function(applet)
  local now = applet:get_var("txn.now")
  while deaths[1] and now - deaths[1].reported > DEATHS_MILLISECONDS do table.remove(deaths, 1) end
  local set, node, age = applet.qs:match("^set=([^&]+)&node=([^&]+)&age=(%d+%.?%d*)$")
  if applet.method == "POST" and set then
    local death = report_death(set, node, now - math.floor(tonumber(age) * 1000), now)
    if death then refuse(death, applet:get_var("txn.refuse_deaths"), applet:get_var("txn.refuse_seconds")) end
  end
  local views = {}
  for index, death in ipairs(deaths) do views[index] = death_view(death, now) end
  local text = '{"deaths": [' .. table.concat(views, ", ") .. "]}"
  applet:set_status(200)
  applet:add_header("content-type", "application/json")
  applet:add_header("content-length", tostring(#text))
  applet:start_response()
  applet:send(text)
end)

-- How long the request's key is still refused, in seconds.
core.register_action("refused", { "http-req" }, function(txn)
  local left = (refused[txn:get_var("txn.key")] or 0) - txn:get_var("txn.began")
  if left > 0 then txn:set_var("txn.refused_seconds", (left + 999) // 1000) end
end)
