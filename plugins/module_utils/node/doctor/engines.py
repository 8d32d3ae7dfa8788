# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines and who watches them. Private to the collection."""

from __future__ import annotations

from datetime import UTC, datetime

from ...core import systemd
from ...core.paths import AGENT_UNIT, RECOVERY_PATH, swap_unit, unit_name
from ...engine import bridges, gate, swap_settings
from ...engine.probe import health
from ...engine.state import drains, probe_state, releases, swaps
from ..recovery import managed, models, settings, state
from ..swap import left_over
from .check import FAIL, OK, WARN, CannotTell, Check, Finding
from .host import Host


def verdicts(host: Host) -> Finding:
    """What the agent says of each instance."""
    names, now = releases.names(host.paths), datetime.now(UTC)
    fails, warns = [], []
    for name in names:
        known = probe_state.read(host.paths, name)
        if known is None or probe_state.stale(known, now):
            warns.append(f"{name}: state unknown, the agent is silent")
        elif known.verdict in health.CONDEMNED:
            fails.append(f"{name}: {known.verdict} since {known.since}: {known.detail}")
        elif known.verdict not in health.SERVING:
            warns.append(f"{name}: {known.verdict}: {known.detail}")
    if fails or warns:
        action = "inferctl status; inferctl recover" if fails else "inferctl status"
        return Finding(FAIL if fails else WARN, "; ".join([*fails, *warns]), action)
    return Finding(OK, f"{len(names)} serve" if names else "no instance on this node")


def agent(host: Host) -> Finding:
    """The prober itself runs: a silent one is worse than a noisy one."""
    if not releases.names(host.paths):
        return Finding(OK, "does not apply: no instance on this node")
    try:
        active = systemd.active_state(AGENT_UNIT)
    except systemd.SystemdError as error:
        raise CannotTell(str(error)) from error
    if active != "active":
        return Finding(
            FAIL, f"{AGENT_UNIT} is {active}", f"systemctl restart {AGENT_UNIT}; baremetal.inference.site installs it"
        )
    return Finding(OK, "runs")


def recovery(host: Host) -> Finding:
    """Who waits for the agent to ask for a recovery runs, and knows what it may do."""
    anew = "baremetal.inference.recovery installs it"
    try:
        found = settings.read(host.paths)
        if found is None:
            return Finding(OK, "does not apply: the role recovery is not installed")
        active = systemd.active_state(RECOVERY_PATH)
    except (OSError, ValueError, TypeError) as error:
        return Finding(FAIL, str(error), anew)
    except systemd.SystemdError as error:
        raise CannotTell(str(error)) from error
    if active != "active":
        return Finding(FAIL, f"{RECOVERY_PATH} is {active}", f"systemctl restart {RECOVERY_PATH}; {anew}")
    return Finding(OK, "waits" if found.armed else "waits, and is disarmed")


def files(host: Host) -> Finding:
    """Units and environments are those that the instances proved themselves with."""
    wrong = []
    for name in releases.names(host.paths):
        try:
            wrong += [str(one) for one in managed.verify(host.paths, name)]
        except releases.ReleaseError as error:
            wrong.append(str(error))
    # What site.yml declares beside the releases. An engine that stands in during an update is declared nowhere.
    declared = [host.paths.instance(name) for name in bridges.instances(host.paths)]
    for path in (host.paths.registry, *declared) if declared else ():
        try:
            if releases.files.read_json(path) is None:
                wrong.append(f"{path} is missing")
        except (OSError, ValueError) as error:
            wrong.append(str(error))
    if wrong:
        return Finding(
            FAIL, "; ".join(wrong), "baremetal.inference.site writes them anew; a restart by recovery repairs units"
        )
    return Finding(OK, "as they were proven")


def weights(host: Host) -> Finding:
    """Every file of every model has its size; contents are compared by site.yml."""
    wrong = [str(one) for release in host.releases().values() for one in models.find_damage(release)]
    if wrong:
        return Finding(
            FAIL, "; ".join(dict.fromkeys(wrong)), "baremetal.inference.site copies the model anew; then restart"
        )
    return Finding(OK, "all files have their sizes")


def drained(host: Host) -> Finding:
    """Drains and open breakers, which an operator must end."""
    now = datetime.now(UTC)
    warns = []
    for name in releases.names(host.paths):
        if state.read(host.paths, name).breaker is not None:
            warns.append(f"{name}: recovery has given up (inferctl recover {name} --reset)")
        elif drain := drains.read(host.paths, name, now):
            warns.append(f"{name}: {drain}")
    if warns:
        return Finding(WARN, "; ".join(warns), "inferctl recover; inferctl drains")
    return Finding(OK, "none")


def units(host: Host) -> Finding:
    """The unit that systemd has in memory is the one on disk."""
    names = releases.names(host.paths)
    try:
        shown = systemd.show(map(unit_name, names), ["NeedDaemonReload", "LoadState"])
    except systemd.SystemdError as error:
        raise CannotTell(str(error)) from error
    stale = [unit for unit, found in shown.items() if found.get("NeedDaemonReload") == "yes"]
    if stale:
        return Finding(WARN, f"changed on disk since systemd read them: {', '.join(stale)}", "systemctl daemon-reload")
    return Finding(OK, "as systemd knows them")


def leftover_bridges(host: Host) -> Finding:
    """No engine of an update that was cut off stands in for an instance."""
    found = bridges.unattended(host.paths, datetime.now(UTC))
    if found:
        # What the inventory declares is not known here for certain, and update_model.yml goes by that.
        action = (
            "baremetal.inference.update_model removes those of instances that the inventory declares;"
            " others: declare them again, or"
            " ansible NODE -b -m baremetal.inference.engine_service -a 'names=INSTANCE_bridge state=absent'"
        )
        return Finding(WARN, f"left by an update that was cut off: {', '.join(found)}", action)
    return Finding(OK, "none")


def swapping(host: Host) -> Finding:
    """No swap is stuck or was cut off or has left anything to do, and no gate is closed without one."""
    fails, left, closed = [], list[str](), set[int]()
    for name in releases.names(host.paths):
        found = swaps.read(host.paths, name)
        if found is None:
            left += [f"{name}: {words}" for words in left_over.still(host.paths, name)]
            continue
        closed |= set(found.closed_ports)
        if found.step == swaps.STUCK:
            fails.append(f"{name}: the swap to release {found.target} is stuck: {found.failure}")
        elif found.step == swaps.LED:
            fails.append(f"{name}: the swap to release {found.target} was cut off")
        elif systemd.active_state(swap_unit(name)) not in (*systemd.RUNNING, "deactivating"):
            fails.append(f"{name}: {swap_unit(name)} does not run, and the swap is at {found.step}")
        else:
            closed |= _bridge_port(host, name)
    try:
        open_ = gate.closed() - closed
    except gate.GateError:
        # A node without nftables has no gate. A swap there says so before the swap begins.
        open_ = set()
    if fails:
        return Finding(FAIL, "; ".join(fails), "inferctl status; then inferctl swap NAME --to RELEASE")
    if open_:
        ports = ", ".join(map(str, sorted(open_)))
        return Finding(FAIL, f"the gate of port {ports} is closed, and no swap is under way", f"nft flush set {GATES}")
    if releases.names(host.paths):
        try:
            swap_settings.read(host.paths)
        except swap_settings.NoSettings as error:
            return Finding(WARN, str(error), "run baremetal.inference.site")
    if left:
        return Finding(WARN, "; ".join(left), "inferctl swap NAME --to RELEASE")
    return Finding(OK, "none is stuck")


def _bridge_port(host: Host, name: str) -> set[int]:
    """The port of the bridge of an instance, whose gate a swap closes before the bridge goes."""
    try:
        port = bridges.declared_port(host.paths, name)
    except (OSError, ValueError):
        return set()
    return set() if port is None else {port}


GATES = f"inet {gate.TABLE} closed"

CHECKS = (
    Check("engine-verdicts", verdicts),
    Check("engine-agent", agent),
    Check("engine-recovery", recovery),
    Check("engine-files", files),
    Check("engine-models", weights),
    Check("engine-drains", drained),
    Check("engine-bridges", leftover_bridges),
    Check("engine-units", units),
    Check("engine-swaps", swapping),
)
