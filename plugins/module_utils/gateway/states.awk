# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# awk -f states.awk haproxy.cfg STATES: prints STATES without two kinds of servers: those that the configuration lacks, and those with
# another address, port, agent address or agent port. For these, HAProxy would use the values in STATES.

FNR == NR {
    if ($1 == "backend") {
        backend = $2
        agent = 0
    } else if ($1 == "default-server") {
        for (i = 2; i < NF; i++) if ($i == "agent-port") agent = $(i + 1)
    } else if ($1 == "server") {
        address = $3
        port = $3
        sub(/:[^:]*$/, "", address)
        sub(/.*:/, "", port)
        gsub(/[][]/, "", address)
        elsewhere = "-"
        for (i = 4; i < NF; i++) if ($i == "agent-addr") elsewhere = $(i + 1)
        places[backend, $2] = address " " port " " elsewhere " " agent
    }
    next
}

# The line with the version, and the line with the names of the columns.
NF == 1 { print }
$1 == "#" {
    for (i = 2; i <= NF; i++) column[$i] = i - 1
    print
    next
}

NF > 1 {
    found = $column["srv_addr"] " " $column["srv_port"] " " $column["srv_agent_addr"] " " $column["srv_agent_port"]
    if (places[$column["be_name"], $column["srv_name"]] == found) print
}
