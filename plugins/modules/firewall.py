#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: firewall
short_description: Load a node's nftables rules, and undo them if they lock the operator out
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Manages the table C(inet inference) and C(/etc/nftables.conf). Drops incoming connections that are not declared.
    Does not change other tables, such as Docker's.
  - Also drops connections to published container ports that are not declared. They are matched by the port that the
    client connects to.
  - Refuses new connections of the users O(engine_users). Exceptions are the connections of O(engine_allow), and
    connections between the processes of an engine. Connections of other users are open.
  - Each part of a site has its own file in C(/etc/nftables.d). Foreign files in this directory are loaded, too. The
    files about O(engine_users) are in its directory C(engines).
  - Loads the rules into an empty network namespace first, and compares the kernel's list there with the running rules.
    This finds a flushed table, and refuses rules that could not be loaded at boot. Then C(nft --check) checks the rules
    on the node.
  - With O(phase=trial), loads the rules without writing files. A timer of systemd loads the old rules again after
    O(seconds), also if Ansible is cut off. Open SSH sessions continue. O(phase=confirm) writes the files and stops the
    timer, O(phase=rollback) loads the old rules at once.
extends_documentation_fragment:
  - baremetal.inference.attributes
  - baremetal.inference.trial
attributes:
  check_mode:
    support: full
    details:
      - If nftables is not installed yet, the rules are not checked.
  diff_mode:
    support: full
options:
  name:
    description: The part that O(allow) belongs to, and the name of its file.
    type: str
    default: site
  allow:
    description:
      - The allowed incoming connections, as mappings with C(name), C(port), C(protocol) and C(sources).
      - C(port) is a port, a range such as V(5005-5010), or a list of these. C(protocol) is V(tcp), V(udp), or V(vrrp)
        without a port. C(sources) are addresses and networks; if omitted, anywhere.
      - An empty list removes the part's file.
    type: list
    elements: raw
    default: []
  engine_users:
    description:
      - The users that engines run as, by name, UID or UID:GID. Root, and users that the node does not have, are left
        out.
      - A user can be in one part only.
      - An empty list removes the part's file in C(engines).
    type: list
    elements: str
    default: []
  engine_allow:
    description:
      - The connections that O(engine_users) may open, as mappings with C(name), C(port), C(protocol) and
        C(destinations).
      - C(port) is like that of O(allow). C(protocol) is V(tcp) or V(udp). C(destinations) are addresses and networks;
        if omitted, every other machine. Services of the node itself are open only if C(destinations) has their address.
      - Needs O(engine_users).
    type: list
    elements: raw
    default: []
  ssh_sources:
    description:
      - The addresses and networks from which SSH is allowed. An empty list means anywhere.
      - The address from which the module's own SSH session came must be among them, unless O(allow),
        O(trusted_interfaces) or a foreign file in C(/etc/nftables.d) may let it in.
    type: list
    elements: raw
    default: []
  ssh_ports:
    description: The ports of the SSH server. If empty, the module reads them from the node.
    type: list
    elements: raw
    default: []
  trusted_interfaces:
    description: Interfaces from which everything is allowed. A name may end in C(*).
    type: list
    elements: str
    default: []
  log:
    description: Whether the kernel logs a sample of the dropped packets.
    type: bool
    default: true
  replace:
    description: Replace a C(/etc/nftables.conf) that this collection did not write. A copy is kept.
    type: bool
    default: false
  seconds:
    description: The length of a trial in seconds, 15 to 600.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Try the rules
  baremetal.inference.firewall:
    phase: trial
    allow:
      - name: engines
        port: 5005-5010
        sources: [192.0.2.0/24, "2001:db8::/64"]

- name: Try a new connection
  ansible.builtin.wait_for_connection:
    timeout: 30
  vars:
    ansible_control_path: none

- name: Keep the rules
  baremetal.inference.firewall:
    phase: confirm
"""

RETURN = r"""
installed:
  description: Whether nftables is installed.
  returned: with O(phase=apply) and O(phase=trial)
  type: bool
differs:
  description: The differences between node and input, one phrase each.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: str
ssh_ports:
  description: The ports that are open for SSH.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: int
ssh_clients:
  description: The addresses from which SSH sessions were open.
  returned: with O(phase=apply) and O(phase=trial)
  type: list
  elements: str
rolled_back:
  description: Whether this call has loaded the old rules. False if the trial was over before, and in check mode.
  returned: with O(phase=rollback)
  type: bool
backup_file:
  description: The copy of a replaced file that this collection did not write.
  returned: if such a file was replaced
  type: str
"""

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import nftables, nftables_engines, ssh_session
from ansible_collections.baremetal.inference.plugins.module_utils.debian.conffiles import pristine
from ansible_collections.baremetal.inference.plugins.module_utils.debian.nftables import FirewallError
from ansible_collections.baremetal.inference.plugins.module_utils.debian.users import ids_or_root

MAIN = Path("/etc/nftables.conf")
PARTS = Path(nftables.DIRECTORY)
DROP_IN = Path("/etc/systemd/system/nftables.service.d/10-inference.conf")
NFT = Path("/usr/sbin/nft")
PROC = Path("/proc")
PORT_RANGE = "sys/net/ipv4/ip_local_port_range"
INTERFACES = Path("/sys/class/net")
UFW = Path("/etc/ufw/ufw.conf")

RUN = Path("/run/inference/firewall")
"""The files of a trial. A boot removes them, and loads the last confirmed rules from /etc."""

TIMER = "inference-firewall-rollback"

SERVICE = "nftables.service"

DROP_IN_TEXT = f"""\
# {nftables.HEADER}
# Debian's unit flushes every table when it is stopped or restarted, Docker's among them.
[Service]
ExecStop=
ExecStop={NFT} "table inet {nftables.TABLE}; delete table inet {nftables.TABLE}"
"""

ROLLBACK = f"""\
#!/bin/sh
# Loads the firewall from before a trial, unless the trial is over.
cd {{directory}} || exit 1
exec 9>>lock
flock 9
[ -e trial.json ] || exit 0
if {{nft}} -f old.nft; then
    echo 'The new rules were not confirmed: the old firewall is back.'
else
    # If the old rules cannot be loaded, no rules at all: the operator must not be locked out.
    {{nft}} 'table inet {nftables.TABLE}; delete table inet {nftables.TABLE}'
    echo 'The new rules were not confirmed, and the old ones cannot be loaded: THERE IS NO FIREWALL NOW.' >&2
    rm -f trial.json
    exit 1
fi
rm -f trial.json
"""

SSH_PORT = 22
"""The port if no SSH server is found on the node. Source: RFC 4253, section 4.1"""

QUICK = 60
"""Time limit of a command, in seconds."""


class Node:
    """The node: its commands, files and sockets."""

    def run(self, *command: str, text: str | None = None) -> tuple[int, str]:
        """Exit code and output of a command, with its errors if it failed.

        Raises FirewallError if the command hangs or is missing.
        """
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        try:
            result = subprocess.run(
                command,
                input=text or "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=QUICK,
                env=environment,
                cwd="/",
                check=False,
            )
        except (subprocess.TimeoutExpired, FileNotFoundError) as error:
            raise FirewallError(f"{command[0]}: {error}") from error
        return result.returncode, (result.stdout + (result.stderr if result.returncode else "")).strip()

    def must(self, *command: str, text: str | None = None) -> str:
        """A command's output. Raises FirewallError."""
        code, output = self.run(*command, text=text)
        if code:
            raise FirewallError(f"{' '.join(command)} failed ({code}): {output}")
        return output

    def listing(self) -> str | None:
        """The running table of this module, or None if there is none."""
        code, output = self.run(str(NFT), "--stateless", "list", "table", "inet", nftables.TABLE)
        return f"{output}\n" if code == 0 else None

    def expected(self, text: str) -> tuple[bool, str]:
        """How the kernel would list the table: whether it loads, and the listing or nft's errors.

        An empty network namespace is like the node at its boot: it has no interface but lo.
        """
        script = f"{NFT} -f - && {NFT} --stateless list table inet {nftables.TABLE}"
        code, output = self.run("unshare", "--net", "sh", "-c", script, text=text)
        return code == 0, f"{output}\n"

    def units(self) -> dict[str, dict[str, str]]:
        """The units of firewalls and of SSH. Raises FirewallError."""
        names = "--property=Id,ActiveState,UnitFileState,MainPID,Listen"
        return nftables.units(
            self.must("systemctl", "show", names, SERVICE, "ssh.service", "ssh.socket", *nftables.OTHERS)
        )

    def sockets(self) -> list[nftables.Socket]:
        """All TCP sockets of the node."""
        texts = (files.text(PROC / "net" / name) or "" for name in ("tcp", "tcp6"))
        return [found for text in texts for found in nftables.sockets(text)]

    def ssh_ports(self, units: dict[str, dict[str, str]]) -> tuple[int, ...]:
        """The ports of the SSH server's main process: sessions that forward ports listen as well."""
        found: set[int] = set()
        socket_unit = units.get("ssh.socket", {})
        if socket_unit.get("ActiveState") == "active":
            found.update(nftables.socket_ports(socket_unit.get("Listen", "")))
        inodes: set[str] = set()
        for link in (PROC / units.get("ssh.service", {}).get("MainPID", "0") / "fd").glob("*"):
            with suppress(FileNotFoundError):  # Closed meanwhile.
                inodes.update(re.findall(r"^socket:\[([0-9]+)\]$", os.readlink(link)))
        found.update(item.port for item in self.sockets() if item.listening and item.inode in inodes)
        return tuple(sorted(found)) or (SSH_PORT,)

    def foreign_bridges(self) -> tuple[str, ...]:
        """Network bridges that are not Docker's, but whose names begin like those of Docker's bridges."""
        names = (path.name for path in INTERFACES.glob("br-*"))
        return tuple(sorted(name for name in names if not nftables.DOCKER_BRIDGE.fullmatch(name)))

    def default_main(self) -> bool:
        """Whether /etc/nftables.conf is unchanged since Debian's package installed it."""
        return pristine(lambda argv: (*self.run(*argv), ""), "nftables", MAIN)


def _name(part: Path) -> str:
    """The path of a part in PARTS."""
    return str(part.relative_to(PARTS))


def _parts() -> dict[str, str]:
    """All parts of the node, by their paths in PARTS."""
    return {
        _name(path): files.text(path) or ""
        for inner in ("", f"{nftables.ENGINES}/")
        for path in PARTS.glob(f"{inner}*.nft")
    }


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock of the trial, also against the rollback script."""
    RUN.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (RUN / "lock").open("a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


class Manager:
    """One run."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.node = Node()

    # --- Inspect

    def inspect(self) -> dict[str, Any]:
        """Read the node, check the input, and return the differences. Raises FirewallError and InputError."""
        rules, base = nftables.parse(self.module.params, self.session())
        units = self.node.units()
        self.refuse_others(units)
        base = replace(
            base,
            ssh_ports=base.ssh_ports or self.node.ssh_ports(units),
            foreign_bridges=self.node.foreign_bridges(),
        )
        name = self.module.params["name"]
        own, of_engines = (PARTS / inner / f"50-inference-{name}.nft" for inner in ("", nftables.ENGINES))
        users = {ids_or_root(user)[0] for user in self.module.params["engine_users"]} - {0}
        if base.engine_allow and not self.module.params["engine_users"]:
            raise FirewallError(
                "common_firewall_engine_allow needs common_firewall_engine_users. With baremetal.inference.site, use"
                " firewall_engine_allow. Nothing was changed."
            )
        self.files: dict[Path, str | None] = {
            own: nftables.part_text(name, rules),
            of_engines: nftables_engines.text(
                name,
                users,
                base.engine_allow,
                log=base.log,
                first_port=nftables_engines.first_own_port(files.text(PROC / PORT_RANGE) or ""),
            ),
            MAIN: nftables.main_text(base),
            DROP_IN: DROP_IN_TEXT,
        }
        self.before = {path: files.text(path) for path in self.files}
        self.foreign_main = self.refuse_foreign_main()
        own_parts = {_name(path): self.files[path] for path in (own, of_engines)}
        foreign = {name: text for name, text in _parts().items() if name not in own_parts}
        self.refuse_shared_users(users, foreign)
        parts = {**foreign, **{name: text for name, text in own_parts.items() if text is not None}}
        self.text = nftables.complete(str(self.files[MAIN]), parts)
        self.flows = [item for item in self.node.sockets() if item.established and item.port in base.ssh_ports]
        installed = NFT.exists()
        self.running = self.node.listing() if installed else None
        wanted = self.judged(foreign) if installed else None
        service = units.get(SERVICE, {})
        self.service_off = (service.get("UnitFileState"), service.get("ActiveState")) != ("enabled", "active")
        differs = [f"{path} differs" for path, content in self.files.items() if content != self.before[path]]
        if wanted != self.running or not installed:
            differs.append(f"the table inet {nftables.TABLE} is not loaded, or differs from the files")
        if self.service_off:
            differs.append(f"{SERVICE} is not on")
        result: dict[str, Any] = {
            "changed": bool(differs),
            "installed": installed,
            "differs": differs,
            "ssh_ports": list(base.ssh_ports),
            "ssh_clients": sorted({flow.peer for flow in self.flows}),
        }
        if self.module._diff:
            result["diff"] = self.diff(wanted)
        return result

    def session(self) -> ssh_session.Login | None:
        """The SSH session of this run, whose client must be let in. None where files of the site may let it in."""
        if not all(nftables.is_ours(text) for text in _parts().values()):
            return None
        found = ssh_session.login()
        # OpenSSH writes UNKNOWN for a session that does not come over the network.
        return found if found and found.address != "UNKNOWN" else None

    def diff(self, wanted: str | None) -> list[dict[str, str]]:
        """The diff of the files; if no file differs, of the running table."""
        pairs = {str(path): (self.before[path], self.files[path]) for path in self.files}
        differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if not differing and wanted != self.running:
            differing = {f"nft list table inet {nftables.TABLE}": (self.running, wanted)}
        return [
            {"before_header": name, "after_header": name, "before": old or "", "after": new or ""}
            for name, (old, new) in differing.items()
        ]

    def refuse_others(self, units: dict[str, dict[str, str]]) -> None:
        others = nftables.conflicts({name: units.get(name, {}) for name in nftables.OTHERS}, files.text(UFW) or "")
        if others:
            off = "; ".join("ufw disable" if name == "ufw" else f"systemctl disable --now {name}" for name in others)
            raise FirewallError(
                f"{', '.join(others)} manages this node's firewall, and a node can have only one manager. Declare what"
                f" it allows in common_firewall_allow, run `{off}` on the node, and try again. Or keep the other"
                " firewall, with `common_firewall_enabled: false`. Nothing was changed."
            )

    def refuse_foreign_main(self) -> bool:
        """Whether the main file has foreign rules. Raises FirewallError unless the file may be replaced."""
        text = self.before[MAIN]
        if text is None or nftables.is_ours(text) or not nftables.has_rules(text) or self.node.default_main():
            return False
        if not self.module.params["replace"]:
            raise FirewallError(
                f"{MAIN} has rules that this role did not write. Declare what they allow in common_firewall_allow, or"
                f" move them to {PARTS}/NAME.nft. Then set `common_firewall_replace: true` to replace the file; a copy"
                " is kept. Nothing was changed."
            )
        return True

    def refuse_shared_users(self, users: set[int], foreign: dict[str, str]) -> None:
        """Raise FirewallError if another part of the collection has rules for one of the users.

        Each part ends with the refusal of all other connections of its users, so only the first part would work.
        """
        for name, text in sorted(foreign.items()):
            shared = sorted(users & nftables_engines.users(text)) if nftables.is_ours(text) else []
            if shared:
                raise FirewallError(
                    f"{PARTS}/{name} already has the rules for connections of user {', '.join(map(str, shared))}, and"
                    " only one part of the firewall can have them. Declare all these connections in one part (with"
                    " baremetal.inference.site: in firewall_engine_allow), without common_firewall_engine_users in the"
                    f" other part. If no playbook declares the part of {PARTS}/{name} any more, delete this file."
                    " Nothing was changed."
                )

    def judged(self, foreign: dict[str, str]) -> str:
        """How the kernel would list the rules. Raises FirewallError with nft's errors."""
        good, words = self.node.expected(self.text)
        if good:
            return words
        for name, text in sorted(foreign.items()):
            good, said = self.node.expected(nftables.wrapped(text))
            if not good:
                raise FirewallError(
                    f"{PARTS}/{name} cannot be loaded: it must have lines of a chain, without a table around them, and"
                    " must use iifname for interfaces, because no interface exists yet at a boot. Correct the file, or"
                    f" move it away. Nothing was changed. nft said:\n{said.strip()}"
                )
        raise FirewallError(f"nft refuses the rules. Nothing was changed. nft said:\n{words.strip()}")

    # --- Change

    def apply(self) -> dict[str, Any]:
        """Load and write the rules at once. Raises FirewallError, InputError and OSError."""
        result = self.inspect()
        if self.module.check_mode or not result["changed"]:
            return result
        self.require_nft(result)
        with locked():
            self.end_left_trial()
            self.node.must(str(NFT), "--check", "-f", "-", text=self.text)
            result |= self.keep(self.text, {str(path): text for path, text in self.files.items()}, self.running)
        return result

    def require_nft(self, result: dict[str, Any]) -> None:
        if not result["installed"]:
            raise FirewallError(f"{NFT} is missing: install the package nftables first. Nothing was changed.")

    def end_left_trial(self) -> None:
        """End a trial that an earlier run has left. The caller must hold the lock."""
        if (RUN / "trial.json").exists():
            self.node.must(str(NFT), "-f", str(RUN / "old.nft"))
            self.disarm()
            self.running = self.node.listing()

    def trial(self) -> dict[str, Any]:
        """Load the rules without writing files, and start the timer of the rollback. Raises FirewallError."""
        result = self.inspect()
        if self.module.check_mode or not result["changed"]:
            return result
        self.require_nft(result)
        text = nftables.with_flows(self.text, self.flows)
        with locked():
            self.end_left_trial()
            self.node.must(str(NFT), "--check", "-f", "-", text=text)
            files.write(RUN / "old.nft", self.way_back(), 0o600)
            files.write(RUN / "rollback", ROLLBACK.format(directory=RUN, nft=NFT), 0o700)
            texts = {str(path): content for path, content in self.files.items()}
            plan = {"schema": 1, "text": self.text, "files": texts, "foreign_main": self.foreign_main}
            files.write(RUN / "trial.json", json.dumps(plan), 0o600)
            try:
                self.arm()
                self.node.must(str(NFT), "-f", "-", text=text)
            except FirewallError:
                self.disarm()
                raise
        return result

    def way_back(self) -> str:
        """Rules that restore the running table. Raises FirewallError if nft cannot load any."""
        old = nftables.listed(self.running)
        code, _words = self.node.run(str(NFT), "--check", "-f", "-", text=old)
        if code == 0:
            return old
        # Old versions of nft list some expressions in a form that they cannot read.
        main = self.before[MAIN] or ""
        old = nftables.complete(main, _parts())
        code, words = self.node.run(str(NFT), "--check", "-f", "-", text=old)
        if code or not nftables.is_ours(main):
            raise FirewallError(
                f"the running table inet {nftables.TABLE} could not be restored after a trial: nft can read neither its"
                f" own listing of the table nor {MAIN}. Correct {MAIN}. Nothing was changed. nft said:\n{words}"
            )
        return old

    def arm(self) -> None:
        """Start a timer of systemd that loads the old rules, also if this connection breaks."""
        self.node.run("systemctl", "stop", f"{TIMER}.timer")
        self.node.must(
            *("systemd-run", "--quiet", "--collect", f"--unit={TIMER}"),
            *("--description=Load the firewall's old rules unless the new rules are confirmed",),
            *(f"--on-active={self.module.params['seconds']}s", "--timer-property=AccuracySec=100ms"),
            *("/bin/sh", str(RUN / "rollback")),
        )

    def disarm(self) -> None:
        (RUN / "trial.json").unlink(missing_ok=True)
        self.node.run("systemctl", "stop", f"{TIMER}.timer")

    def confirm(self) -> dict[str, Any]:
        """Make the tried rules permanent. Raises FirewallError if the trial is over."""
        if self.module.check_mode:
            return {"changed": (RUN / "trial.json").exists()}
        with locked():
            text = files.text(RUN / "trial.json")
            if text is None:
                raise FirewallError(
                    "the trial ended before it was confirmed, so the timer has loaded the old rules:"
                    f" `journalctl --unit={TIMER}.service` shows whether this failed. Allow more time by"
                    " common_firewall_confirm_seconds."
                )
            rules, texts = self.read_plan(text)
            result = self.keep(rules, texts, None)
            self.disarm()
        return {"changed": True, **result}

    def read_plan(self, text: str) -> tuple[str, dict[str, str | None]]:
        """The tried rules and the files to write, from the record of a trial. Raises FirewallError."""
        try:
            plan = json.loads(text)
            self.foreign_main = plan["foreign_main"]
            rules, texts = plan["text"], plan["files"]
            good = isinstance(rules, str) and isinstance(texts, dict) and str(DROP_IN) in texts
        except (ValueError, KeyError, TypeError, RecursionError):
            good = False
        if not good:
            raise FirewallError(
                f"{RUN}/trial.json is damaged: it must have the tried rules. Nothing was confirmed, and the timer loads"
                " the old rules. Run again."
            )
        return rules, texts

    def keep(self, text: str, texts: dict[str, str | None], running: str | None) -> dict[str, str]:
        """Load the rules and write the files. On an error, puts back what it can and raises FirewallError.

        ``running`` is the table to put back without a trial. A trial has its own rollback.
        """
        backup: dict[str, str] = {}
        before = {Path(name): files.text(Path(name)) for name in texts}
        try:
            self.node.must(str(NFT), "-f", "-", text=text)
            if self.foreign_main:
                backup = {"backup_file": self.module.backup_local(str(MAIN))}
            for name, content in texts.items():
                if content != before[Path(name)]:
                    files.write(Path(name), content)
            if before[DROP_IN] != DROP_IN_TEXT:
                self.node.must("systemctl", "daemon-reload")
            self.node.must("systemctl", "enable", "--quiet", SERVICE)
            self.node.must("systemctl", "start", SERVICE)
        except (FirewallError, OSError) as error:
            words = f"The rules could not be made permanent; the old files are back: {error}"
            # No second error must replace the first one.
            try:
                for path, content in before.items():
                    if files.text(path) != content:
                        files.write(path, content)
            except OSError as second:
                words = f"The rules could not be made permanent: {error}\nNot all old files could be restored: {second}"
            with suppress(FirewallError):
                self.node.run("systemctl", "daemon-reload")
            if not (RUN / "trial.json").exists():
                try:
                    self.node.must(str(NFT), "-f", "-", text=nftables.listed(running))
                except FirewallError as second:
                    words += f"\nThe old rules could not be loaded again: {second}"
            raise FirewallError(words) from error
        return backup

    def rollback(self) -> dict[str, Any]:
        """Load the old rules now, if a trial is under way. Raises FirewallError."""
        if self.module.check_mode:
            return {"changed": (RUN / "trial.json").exists(), "rolled_back": False}
        ended = ""
        if (RUN / "rollback").exists():
            # The script takes the lock, as the timer may run it now. It prints a line only if it ends a trial.
            ended = self.node.must("/bin/sh", str(RUN / "rollback"))
        if not ended:
            return {"changed": False, "rolled_back": False}
        with locked():
            # Another run may have begun a trial since.
            if not (RUN / "trial.json").exists():
                self.disarm()
        return {"changed": True, "rolled_back": True}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "phase": {"type": "str", "choices": ["apply", "trial", "confirm", "rollback"], "default": "apply"},
            "name": {"type": "str", "default": "site"},
            "allow": {"type": "list", "elements": "raw", "default": []},
            "engine_users": {"type": "list", "elements": "str", "default": []},
            "engine_allow": {"type": "list", "elements": "raw", "default": []},
            "ssh_sources": {"type": "list", "elements": "raw", "default": []},
            "ssh_ports": {"type": "list", "elements": "raw", "default": []},
            "trusted_interfaces": {"type": "list", "elements": "str", "default": []},
            "log": {"type": "bool", "default": True},
            "replace": {"type": "bool", "default": False},
            "seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    manager = Manager(module)
    phases = {
        "apply": manager.apply,
        "trial": manager.trial,
        "confirm": manager.confirm,
        "rollback": manager.rollback,
    }
    try:
        result = phases[module.params["phase"]]()
    except InputError as error:
        module.fail_json(msg="\n- ".join(["Nothing was changed.", *map(str, error.problems)]))
    except (FirewallError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
