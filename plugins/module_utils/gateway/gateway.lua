-- Copyright: (c) 2026, the baremetal.inference contributors
-- GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
-- SPDX-License-Identifier: GPL-3.0-or-later

-- What HAProxy cannot say in its configuration. Lua 5.3 and 5.4.

-- While it reads its configuration, HAProxy is in that file's directory, and not yet in its chroot.
local file = assert(io.open("too-large.json"))
local too_large = file:read("a")
file:close()

-- Answers 413 after it has swallowed the body: a client that is still sending would see a broken connection, and not
-- why. Swallowing keeps nothing in memory; who sends more than this has its connection closed under it.
local SWALLOW_BYTES = 2 ^ 30

core.register_service("too_large", "http", function(applet)
  local swallowed = 0
  while swallowed < SWALLOW_BYTES do
    local part = applet:receive(65536)
    if not part or #part == 0 then break end
    swallowed = swallowed + #part
  end
  applet:set_status(413)
  applet:add_header("content-type", "application/json")
  applet:add_header("content-length", tostring(#too_large))
  applet:start_response()
  applet:send(too_large)
end)

-- Whether an engine of a backend takes requests. `nbsrv` does not tell in a process that a reload has left: 0, always.
local function is_served(backend)
  for _, server in pairs(backend.servers) do
    if server:get_stats().status:find("^UP") then return true end
  end
  return false
end

-- Holds a request while no engine of its backend takes any, until the backend has been like that for so many seconds.
-- What comes later is refused at once: an outage makes nobody wait longer than a swap would. All that were held go on
-- within one turn, more than the queue is meant for: txn.held lets them in.
core.register_action("hold", { "http-req" }, function(txn, seconds)
  local backend = core.backends[txn.f:be_name()]
  local limit = tonumber(seconds)
  while not is_served(backend) and (tonumber(backend:get_stats().lastchg) or 0) < limit do
    txn:set_var("txn.held", true)
    core.msleep(200)
  end
end, 1)
