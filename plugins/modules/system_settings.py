#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Not replaced by Ansible's modules: one call replaces at least 14 tasks, one per file, with 40 ms CPU each. It
# verifies the values that services have, and supports check mode on a node without chrony. ansible.posix.sysctl needs
# one task per key, and neither reads values back nor restores them.

DOCUMENTATION = r"""
module: system_settings
short_description: Configure a node's kernel, clock, names, logs, and the limits of its services, in one call
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Checks everything first, and changes nothing if there is any mistake.
  - Reads the kernel's values back. If the kernel refuses a value, the module restores files and values, and fails with
    the declared and the found value. Never reboots.
  - Installs nothing. Check mode also works on a node without chrony.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Check mode cannot check whether the kernel accepts a value.
      - It does not wait for the clock, and does not check chrony's settings if chrony is not installed yet.
  diff_mode:
    support: full
options:
  kernel:
    description:
      - Values of the running kernel, set now and at every boot. If omitted, values and files stay unchanged.
      - Before any change, the module fails with all keys that do not exist, that cannot be written, or that another
        file sets to another value at boot.
      - A key that is no longer declared is removed from the files. Its value stays until the next boot.
    type: dict
    suboptions:
      sysctl:
        description:
          - The sysctls by name. Separate several numbers by blanks.
          - V(null) excludes a sysctl of O(kernel.sysctl_where_present).
        type: dict
        default: {}
      sysctl_where_present:
        description: Sysctls that are only set if the kernel has them. O(kernel.sysctl) overrides them.
        type: dict
        default: {}
      hugepages:
        description: The number of hugepages by size, V(2M) or V(1G). They must fit into the free memory.
        type: dict
        default: {}
      transparent_hugepage:
        description: The policy for transparent hugepages. If empty, it stays unchanged.
        type: str
        choices: ["", always, madvise, never]
        default: ""
      cpu_governor:
        description: The governor of every CPU. If empty, or without frequency scaling, it stays unchanged.
        type: str
        default: ""
  cmdline:
    description:
      - The parameters of the kernel's command line, in order. A name may occur twice, as in C(hugepagesz=1G hugepages=4
        hugepagesz=2M hugepages=64). An empty list removes the file. If omitted, the file stays unchanged.
      - Writes C(/etc/default/grub.d/50-inference.cfg), in addition to other files, and GRUB's menu. The new menu is
        written to another name first. It replaces the old menu if GRUB accepts it and it has every parameter. After
        an error, the old files are put back.
    type: list
    elements: str
  reboot_flag:
    description:
      - The name in C(/run/reboot-required.pkgs) with which an earlier run has requested the reboot for O(cmdline). Then
        the pending reboot is not returned as a difference. Empty if runs do not request reboots.
    type: str
    default: ""
  clock:
    description:
      - chrony's configuration. If omitted, chrony stays unchanged.
      - Writes C(/etc/chrony/sources.d/inference.sources) and C(/etc/chrony/conf.d/inference.conf), which chronyd checks
        before. Afterwards, verifies that chronyd has the sources and the right time.
    type: dict
    suboptions:
      servers:
        description:
          - The NTP servers, each optionally followed by chrony's options.
          - If servers or pools are declared, the sources in C(/etc/chrony/chrony.conf) are disabled (Debian's pool, and
            servers from DHCP). They are enabled again when nothing is declared any more.
        type: list
        elements: str
        default: []
      pools:
        description: Names that resolve to several NTP servers.
        type: list
        elements: str
        default: []
      config:
        description: Further directives of chrony.conf, one per item.
        type: list
        elements: str
        default: []
      sync_seconds:
        description: How long to wait until the clock is synchronised, in seconds. 0 skips this check.
        type: int
        default: 60
      max_offset:
        description: The allowed offset of a synchronised clock, in seconds.
        type: float
        default: 0.5
  timezone:
    description: The time zone, as a name from C(/usr/share/zoneinfo). If empty, it stays unchanged.
    type: str
    default: ""
  names:
    description: The host name and C(/etc/hosts). If omitted, both stay unchanged.
    type: dict
    suboptions:
      hostname:
        description: The host name. If empty, it stays unchanged.
        type: str
        default: ""
      manage_hosts:
        description: Whether to manage C(/etc/hosts).
        type: bool
        default: true
      address:
        description:
          - The address of the node's own name, which must not be 127.0.1.1. If empty, the node's address on its default
            route.
        type: str
        default: ""
      hosts:
        description: Further entries, as mappings with C(address) and C(names).
        type: list
        elements: raw
        default: []
  journal:
    description: journald's limits. The journal is kept over reboots. If omitted, journald stays unchanged.
    type: dict
    suboptions:
      max_use:
        description: The largest size of the journal, such as V(4G).
        type: str
        required: true
      keep_free:
        description: The disk space that the journal must leave free.
        type: str
        required: true
      max_retention:
        description: The age after which entries are removed, as a time span of systemd. V(0) sets no limit of the age.
        type: str
        required: true
      rate_limit_interval:
        description: The time span of O(journal.rate_limit_burst).
        type: str
        required: true
      rate_limit_burst:
        description:
          - The number of messages that a service may write in O(journal.rate_limit_interval). Further messages are
            dropped. All containers count as one service.
          - V(0) sets no limit.
        type: int
        required: true
  services:
    description:
      - Limits of every service and login, the hardware watchdog, and reports of kernel crashes. If omitted, they stay
        unchanged. Running processes keep the limits with which they were started.
      - Writes C(60-inference.conf) in C(/etc/systemd/system.conf.d), C(/etc/systemd/user.conf.d) and
        C(/etc/security/limits.d), and C(/etc/tmpfiles.d/systemd-pstore.conf). A file without content is removed.
      - With O(services.keep_pstore), enables C(systemd-pstore.service). Afterwards, verifies the limits in systemd.
    type: dict
    suboptions:
      memlock:
        description:
          - The memory that a process may lock, V(infinity) or bytes with a suffix such as V(64G). If empty, it stays
            unchanged.
        type: str
        default: ""
      nofile:
        description:
          - The number of files that a process may have open, from 1024 to the value of C(/proc/sys/fs/nr_open). With
            V(0), it stays unchanged.
        type: int
        default: 0
      watchdog_seconds:
        description:
          - The seconds after which the hardware resets the machine if systemd hangs. V(0) switches the watchdog off.
        type: int
        default: 0
      keep_pstore:
        description: Keep crash reports of the kernel until a person deletes them, instead of Debian's 14 days.
        type: bool
        default: false
  logrotate:
    description: Limits for log files. If omitted, logrotate stays unchanged.
    type: dict
    suboptions:
      max_size:
        description: The size above which a log is rotated early, such as V(200M).
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Synchronise the clock with the site's servers
  baremetal.inference.system_settings:
    clock:
      servers: [ntp1.example.com, ntp2.example.com iburst nts]
    timezone: Etc/UTC

- name: Resolve the node's name to an address that other nodes reach
  baremetal.inference.system_settings:
    names:
      hosts:
        - address: 192.0.2.20
          names: [storage.example.com, storage]

- name: Reboot after a kernel panic, and bypass the IOMMU's translation for devices of the host
  baremetal.inference.system_settings:
    kernel:
      sysctl:
        kernel.panic: 30
      transparent_hugepage: madvise
    cmdline: [iommu=pt]

- name: Allow services to lock as much memory as RDMA needs
  baremetal.inference.system_settings:
    services:
      memlock: infinity
      nofile: 1048576
      watchdog_seconds: 60
"""

RETURN = r"""
differs:
  description:
    - The differences between node and input, one phrase each, with parameters that need a reboot, and a clock that is
      not synchronised.
  returned: success
  type: list
  elements: str
missing:
  description: Declared parameters that the running kernel does not have.
  returned: with O(cmdline)
  type: list
  elements: str
surplus:
  description: Parameters that this call has removed from O(cmdline), but that the running kernel has.
  returned: with O(cmdline)
  type: list
  elements: str
notes:
  description: Remarks for the operator.
  returned: success
  type: list
  elements: str
clock:
  description: The time sources of chronyd, one line each.
  returned: if the module waited for the clock
  type: list
  elements: str
"""

import ipaddress
import os
import re
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError, Problem
from ansible_collections.baremetal.inference.plugins.module_utils.debian import (
    chrony,
    hosts,
    journald,
    service_limits,
)
from ansible_collections.baremetal.inference.plugins.module_utils.debian.kernel_parts import CommandLine, Kernel
from ansible_collections.baremetal.inference.plugins.module_utils.debian.node_settings import (
    Change,
    Node,
    Part,
    SettingsError,
)

HEADER = "Managed by Ansible, module baremetal.inference.system_settings: changes made here are lost."

JOURNAL_MESSAGE = "ec387f577b844b8fa948f33cad9a75e6"
"""The ID of journald's message on the journal's size. Source: SD_MESSAGE_JOURNAL_USAGE, systemd/sd-messages.h."""

JOURNAL_SECONDS = 10
JOURNAL_SLACK = 2**20
"""Bytes by which journald may round a limit."""

ROUTED = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses that no host has (RFC 5737, RFC 3849): their route is the default route. Nothing is sent to them."""

ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")

CLOUD_HOSTS = re.compile(r"^manage_etc_hosts:\s*['\"]?(\w+)", re.MULTILINE)
CLOUD_FALSE = ("false", "no", "off")

REBOOT_FLAGS = ("/run/reboot-required", "/run/reboot-required.pkgs")
"""The files in which Debian's packages request a reboot: flag, and names of the packages. A reboot removes them."""


class Clock(Part):
    """chrony's files and service."""

    MAIN = "/etc/chrony/chrony.conf"
    SOURCES = "/etc/chrony/sources.d/inference.sources"
    MORE = "/etc/chrony/conf.d/inference.conf"

    def inspect(self) -> None:
        servers, pools, config = (self.options[key] for key in ("servers", "pools", "config"))
        self.problems += chrony.mistakes(servers, pools, config)
        if self.options["sync_seconds"] < 0 or self.options["max_offset"] <= 0:
            message = "sync_seconds must be 0 or more, max_offset more than 0"
            self.problems.append(Problem("clock", message))
        if self.problems:
            return
        lines = chrony.source_lines(servers, pools)
        main = self.node.read(self.MAIN)
        if main is not None:
            self.want(self.MAIN, chrony.main_text(main, bool(lines)))
        self.want(self.SOURCES, "\n".join([f"# {HEADER}", *lines]) + "\n" if lines else None)
        # Debian's chrony.conf has these two lines, but an edited chrony.conf may lack them.
        self.more = "\n".join([f"# {HEADER}", "rtcsync", "makestep 1 3", *config]) + "\n"
        self.want(self.MORE, self.more)
        if main is not None and self.changes:
            self.judge(chrony.main_text(main, bool(lines)), lines)
        if not self.changes:
            self.look_at_service()

    def look_at_service(self) -> None:
        """Check that chronyd runs with the current files: a run may have been cut off after writing them."""
        started = self.node.started("chrony.service")
        paths = [self.node.path(path) for path in (self.MAIN, self.MORE)]
        # The files may be missing if the package was purged.
        written = [path.stat().st_mtime for path in paths if path.exists()]
        if not started:
            self.orders.append("start chrony.service")
        elif max(written) >= started + 1 or self.unknown(self.sources()):
            self.orders.append("restart chrony.service, which is older than its configuration")
        elif not self.node.on("chrony.service"):
            self.orders.append("enable chrony.service at boot")
        elif self.options["sync_seconds"] and not self.is_right(self.sources()):
            self.awaits.append("the clock is not synchronised")

    def is_right(self, sources: list[chrony.Source]) -> bool:
        """Whether the clock is right, a source answers, and chronyd has every declared name."""
        # Arguments of waitsync: one try, the largest correction in seconds, any skew.
        code, self.said = self.node.run("chronyc", "waitsync", "1", str(self.options["max_offset"]), "0")
        return not code and not self.unknown(sources) and any(source.state == "*" for source in sources)

    def sources(self) -> list[chrony.Source]:
        """The sources of chronyd, including those without an address."""
        return chrony.parse_sources(self.node.run("chronyc", "-c", "-N", "sources", "-a")[1])

    def unknown(self, sources: list[chrony.Source]) -> list[str]:
        """The declared servers and pools that chronyd does not have."""
        declared = chrony.declared_names(self.options["servers"], self.options["pools"])
        return [name for name in declared if name not in {source.name for source in sources}]

    def judge(self, main: str, lines: list[str]) -> None:
        """Let chronyd check the whole new configuration. AppArmor allows it to read only its own directory."""
        directory = self.node.path(self.MORE).parent
        included = ["confdir", str(directory)]
        text = "".join(line for line in main.splitlines(keepends=True) if line.split() != included)
        others = sorted(path for path in directory.glob("*.conf") if path.name != Path(self.MORE).name)
        text += "".join(f"include {path}\n" for path in others)
        handle, name = tempfile.mkstemp(dir=self.node.path("/etc/chrony"), prefix=".inference-", suffix=".candidate")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text + self.more + "\n".join(lines) + "\n")
            code, output = self.node.run("chronyd", "-p", "-f", name)
        finally:
            os.unlink(name)
        if code:
            words = output.replace(name, "the new configuration").splitlines()
            fatal = [line for line in words if "rror" in line] or words[-1:]
            self.problems.append(Problem("clock", f"chronyd refuses it: {'; '.join(fatal)}"))

    def apply(self) -> None:
        self.write()
        touched = {change.path for change in self.changes}
        if touched == {self.node.path(self.SOURCES)} and self.node.started("chrony.service"):
            # After a reload of the sources, chronyd keeps its measurements of the clock.
            self.node.do("chronyc", "reload", "sources")
        else:
            self.node.do("systemctl", "enable", "--quiet", "chrony.service")
            self.node.do("systemctl", "restart", "chrony.service")
        code, state = self.node.run("systemctl", "is-active", "chrony.service")
        if code:
            raise SettingsError(
                f"chrony.service does not run ({state}): look at `systemctl status chrony`. A container uses the clock"
                " of its host: set common_time_enabled to false there"
            )

    def give_back(self) -> str:
        """Restore the earlier configuration, if this run has changed it. Returns a sentence for the message."""
        if not self.changes:
            return ""
        try:
            self.undo()
        except OSError as error:
            # The caller also reports why the clock is not synchronised, so this error must not replace it.
            return f" The earlier configuration could not be restored: {error}"
        self.node.run("systemctl", "restart", "chrony.service")
        return " The earlier configuration was restored"

    def wait(self) -> list[str]:
        """Wait until the clock is right and a source answers. Returns the sources. Raises SettingsError.

        The clock alone is not enough: chronyd reports itself synchronised for some time after its sources are gone.
        """
        seconds, offset = self.options["sync_seconds"], self.options["max_offset"]
        deadline = time.monotonic() + seconds
        while not self.is_right(sources := self.sources()):
            if time.monotonic() > deadline:
                missing = self.unknown(sources)
                gone = (f"{name}: chronyd does not have it (journalctl -u chrony)" for name in missing)
                raise SettingsError(
                    f"the clock is not synchronised after {seconds} s (allowed: {offset} s off)."
                    f" Sources: {'; '.join([*map(str, sources), *gone]) or 'none'}."
                    f" chronyc said: {(self.said.splitlines() or ['nothing'])[-1]}."
                    " Declare servers that this node reaches by UDP port 123 (common_ntp_servers, common_ntp_pools)"
                )
            time.sleep(1)
        declared = chrony.declared_names(self.options["servers"], self.options["pools"])
        foreign = sorted({source.name for source in sources} - set(declared)) if declared else []
        if foreign:
            self.notes.append(
                f"chronyd also uses {', '.join(foreign)}, which is not declared: remove it from conf.d or sources.d in"
                " /etc/chrony, or declare it"
            )
        return [str(source) for source in sources]


class Zone(Part):
    """The time zone."""

    def inspect(self) -> None:
        name = self.options
        known = ZONE.fullmatch(name) and self.node.path(f"/usr/share/zoneinfo/{name}").is_file()
        if not known:
            message = "is not in /usr/share/zoneinfo: use a name of `timedatectl list-timezones` (package tzdata)"
            self.problems.append(Problem("timezone", f"{name!r} {message}"))
            return
        link = self.node.path("/etc/localtime")
        before = os.readlink(link) if link.is_symlink() else None
        if before is None or before.rpartition("zoneinfo/")[2] != name:
            self.orders.append(f"time zone {(before or 'unknown').rpartition('zoneinfo/')[2]} -> {name}")
        # Debian 12 has this second file, Debian 13 does not.
        if self.node.read("/etc/timezone") is not None:
            self.want("/etc/timezone", f"{name}\n")

    def apply(self) -> None:
        self.write()
        if self.orders:
            files.link(self.node.path("/etc/localtime"), f"/usr/share/zoneinfo/{self.options}")


class Names(Part):
    """The host name and /etc/hosts."""

    HOSTS = "/etc/hosts"
    CLOUD = "/etc/cloud/cloud.cfg.d/99-inference.cfg"

    def inspect(self) -> None:
        wanted, address = self.options["hostname"], self.options["address"]
        if wanted and not hosts.valid_name(wanted, hosts.HOSTNAME_MAX):
            message = "must have only letters, digits, - and ., and at most 64 characters: correct common_hostname"
            self.problems.append(Problem("names", message, "hostname", wanted))
            return
        before = socket.gethostname()
        hostname = wanted or before
        if hostname != before or (wanted and (self.node.read("/etc/hostname") or "").strip() != wanted):
            self.orders.append(f"host name {before} -> {hostname}")
        if not self.options["manage_hosts"]:
            return
        entries, problems = hosts.parse_entries(self.options["hosts"], "names.hosts")
        self.problems += problems
        for entry in entries:
            if not hosts.loopback(entry.address):
                continue
            if hostname in entry.names:
                message = f"{entry.address} must not have this node's name {hostname}: other machines cannot reach it"
                self.problems.append(Problem("names.hosts", message))
            elif hostname.lower() in map(str.lower, entry.names):
                self.notes.append(
                    f"names.hosts: {entry.address} has this node's name {hostname} in other upper or lower case,"
                    " and other machines cannot reach this address. Remove the name from common_hosts"
                )
        if hostname.partition(".")[0] == "localhost":
            self.problems.append(Problem("names", "this node's host name is localhost: set common_hostname"))
        address = self.own_address(address)
        if not self.problems:
            text = self.node.read(self.HOSTS) or "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
            self.want(self.HOSTS, hosts.render(text, hostname, address, entries))
            self.look_at_cloud_init()

    def own_address(self, address: str) -> str:
        """The address that the node's name must resolve to, in canonical form. Adds to `problems` if it is unusable."""
        if not address:
            for family, target in ROUTED.items():
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    try:
                        probe.connect((target, 9))
                        return str(probe.getsockname()[0])
                    except OSError:
                        continue
            message = "the node has no default route, so set common_hosts_address to the address that other nodes use"
            self.problems.append(Problem("names.address", message))
            return ""
        try:
            parsed = ipaddress.ip_address(address)
            if parsed.is_loopback or parsed.is_unspecified:
                raise ValueError("no other machine can reach it")
            family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((str(parsed), 0))
        except (ValueError, OSError) as error:
            message = f"must be one of the node's own addresses (ip address): {error}"
            self.problems.append(Problem("names", message, "address", address))
            return ""
        return str(parsed)

    def look_at_cloud_init(self) -> None:
        """Switch off cloud-init's management of /etc/hosts, which would write 127.0.1.1 at every boot."""
        directory = self.node.path("/etc/cloud/cloud.cfg.d")
        if not directory.is_dir():
            return
        texts = [self.node.read("/etc/cloud/cloud.cfg") or ""]
        ours = self.node.path(self.CLOUD)
        texts += [path.read_text(errors="replace") for path in sorted(directory.glob("*.cfg")) if path != ours]
        if self.manages(texts):
            self.want(self.CLOUD, f"# {HEADER}\nmanage_etc_hosts: false\n")
        user_data = [self.node.read(f"/var/lib/cloud/instance/{name}") or "" for name in ("cloud-config.txt",)]
        if self.manages(user_data):
            self.notes.append(
                "the machine's cloud-init user data sets manage_etc_hosts, which overrides this node's files: at the"
                " next boot, cloud-init writes /etc/hosts with 127.0.1.1. Remove manage_etc_hosts from the user data"
            )

    @staticmethod
    def manages(texts: list[str]) -> bool:
        """Whether the last text with manage_etc_hosts lets cloud-init write /etc/hosts."""
        values = [match.lower() for text in texts for match in CLOUD_HOSTS.findall(text)]
        return bool(values) and values[-1] not in CLOUD_FALSE

    def apply(self) -> None:
        if self.orders:
            self.node.do("hostnamectl", "set-hostname", self.options["hostname"])
        for change in self.changes:
            text = change.after or ""
            try:
                files.write(change.path, text)
            except OSError:
                # In a container, the file is a mount point, which cannot be replaced.
                if not os.path.ismount(change.path):
                    raise
                change.path.write_text(text, encoding="utf-8")


class Journal(Part):
    """journald's file and service."""

    UNIT = "systemd-journald.service"
    PLACES = ("/etc", "/run", "/usr/local/lib", "/usr/lib")

    def inspect(self) -> None:
        self.problems += journald.mistakes(self.options)
        if self.problems:
            return
        wanted = journald.settings(self.options)
        self.problems += journald.overrides(self.later(), wanted)
        path = f"/etc/systemd/journald.conf.d/{journald.DROP_IN}"
        self.want(path, journald.render(wanted, HEADER))
        # A run may have been cut off after writing the file.
        if not self.changes and self.node.path(path).stat().st_mtime >= self.node.started(self.UNIT) + 1:
            self.orders.append("restart journald, which is older than its configuration")

    def later(self) -> list[tuple[str, str]]:
        """The drop-ins that are read after this module's. A drop-in in /etc replaces others of the same name."""
        found: dict[str, Path] = {}
        for place in self.PLACES:
            for path in self.node.path(f"{place}/systemd/journald.conf.d").glob("*.conf"):
                found.setdefault(path.name, path)
        names = sorted(name for name in found if name > journald.DROP_IN)
        return [(str(found[name]), found[name].read_text(errors="replace")) for name in names]

    def apply(self) -> None:
        self.write()
        # Services keep their log streams: systemd holds them during the restart.
        self.node.do("systemctl", "restart", self.UNIT)
        self.node.do("journalctl", "--flush")
        pid = self.node.do("systemctl", "show", "--value", "--property=MainPID", self.UNIT)
        asked = journald.size(self.options["max_use"])
        deadline = time.monotonic() + JOURNAL_SECONDS
        found = "nothing"
        while time.monotonic() < deadline:
            query = ("journalctl", "--boot", "--output=json", f"MESSAGE_ID={JOURNAL_MESSAGE}", f"_PID={pid}")
            try:
                kind, most = journald.limit(self.node.do(*query))
            except (ValueError, KeyError) as error:
                found = str(error)
            else:
                if kind == "System Journal" and abs(most - asked) <= JOURNAL_SLACK:
                    return
                found = f"{kind}, at most {most} bytes"
            time.sleep(0.5)
        raise SettingsError(
            f"journald was restarted, but does not keep its journal on disk with max_use {self.options['max_use']}"
            f" ({asked} bytes). It reports: {found}. Look at `systemd-analyze cat-config systemd/journald.conf`, and"
            " check that /var/log/journal is writable"
        )


class Services(Part):
    """The limits of every service and login, the watchdog, and crash reports of the kernel."""

    PSTORE = "systemd-pstore.service"
    """The unit that moves crash reports from the firmware to files at boot."""

    def inspect(self) -> None:
        self.problems += [Problem("services", text) for text in service_limits.problems(self.options, self.node.root)]
        if self.problems:
            return
        self.asked = service_limits.limits(self.options)
        for name, text in service_limits.files(self.options).items():
            path = self.node.path(name)
            if not (files.same(path, text) if text else not path.exists()):
                self.changes.append(Change(path, self.node.read(name), text or None))
        if self.differing():
            self.orders.append("reload systemd's files")
        if self.keeps_pstore_off():
            self.orders.append(f"enable {self.PSTORE}")
        guard = service_limits.watchdog(self.node.root)[0]
        if (self.changes or self.orders) and self.options["watchdog_seconds"] and not guard:
            self.notes.append(
                "there is no watchdog device (/sys/class/watchdog is empty), so nothing resets a machine that hangs."
                " If the hardware has a watchdog, load its driver by /etc/modules-load.d"
                " (ipmi_watchdog, iTCO_wdt, sp5100_tco)"
            )

    def keeps_pstore_off(self) -> bool:
        """Whether the unit for crash reports must be enabled. Raises SettingsError."""
        if not self.options["keep_pstore"]:
            return False
        return self.node.show(self.PSTORE, "UnitFileState")["UnitFileState"] != "enabled"

    def differing(self) -> dict[str, str]:
        """The values of systemd that differ from the declared values. Raises SettingsError."""
        if not self.asked:
            return {}
        shown = self.node.do("systemctl", "show", *(f"--property={name}" for name in self.asked))
        return service_limits.differing(self.asked, shown)

    def apply(self) -> None:
        self.write()
        self.node.do("systemctl", "daemon-reload")
        if self.keeps_pstore_off():
            self.node.do("systemctl", "enable", "--quiet", self.PSTORE)
        wrong = [f"{name}: declared {self.asked[name]}, systemd has {has}" for name, has in self.differing().items()]
        if wrong:
            raise SettingsError(
                "\n- ".join(
                    [
                        "systemd has other values. Remove them from files of /etc/systemd/system.conf.d that sort after"
                        " 60-inference.conf.",
                        *wrong,
                    ]
                )
            )


class Logrotate(Part):
    """Limits of log files."""

    TIMER = "/etc/systemd/system/logrotate.timer.d/60-inference.conf"

    def inspect(self) -> None:
        limit = self.options["max_size"]
        if not re.fullmatch(r"[1-9][0-9]*[kMG]?", limit):
            message = "must be a size such as 200M (k, M or G)"
            self.problems.append(Problem("logrotate", message, "max_size", limit))
            return
        # 00: an option outside of braces applies to all files that are read after this one.
        self.want("/etc/logrotate.d/00-inference", f"# {HEADER}\nmaxsize {limit}\n")
        # Hourly: with Debian's daily timer, a log that grows fast could fill the disk.
        self.want(self.TIMER, f"# {HEADER}\n[Timer]\nOnCalendar=\nOnCalendar=hourly\n")
        if not self.changes and not self.node.on("logrotate.timer"):
            self.orders.append("start logrotate.timer, now and at boot")

    def apply(self) -> None:
        self.write()
        if self.node.run("logrotate", "--version")[0] == 127:
            self.undo()
            raise SettingsError("logrotate is not installed: install the package logrotate first")
        code, output = self.node.run("logrotate", "--debug", "/etc/logrotate.conf")
        if code:
            words = [line for line in output.splitlines() if "rror" in line]
            self.notes.append(f"logrotate reports mistakes in its configuration: {'; '.join(words)}. Correct them.")
        self.node.do("systemctl", "daemon-reload")
        self.node.do("systemctl", "enable", "--quiet", "logrotate.timer")
        self.node.do("systemctl", "restart", "logrotate.timer")


PARTS: dict[str, type[Part]] = {
    "kernel": Kernel,
    "cmdline": CommandLine,
    "clock": Clock,
    "timezone": Zone,
    "names": Names,
    "journal": Journal,
    "services": Services,
    "logrotate": Logrotate,
}


def reboot_requested(node: Node, name: str) -> bool:
    """Whether a reboot was already requested under a name."""
    flag, names = map(node.read, REBOOT_FLAGS)
    return bool(name) and flag is not None and name in (names or "").splitlines()


def apply(params: dict[str, Any], node: Node, check_mode: bool) -> dict[str, Any]:
    """The module's result. Raises InputError, SettingsError and OSError."""
    # An empty list in cmdline also counts: it removes the file of an earlier run.
    parts = {key: kind(node, params[key]) for key, kind in PARTS.items() if params[key] not in (None, "")}
    for part in parts.values():
        part.inspect()
    problems = [problem for part in parts.values() for problem in part.problems]
    if problems:
        raise InputError(problems)
    line = parts.get("cmdline")
    if line and reboot_requested(node, params["reboot_flag"]):
        line.awaits = []
    todo = [part for part in parts.values() if part.changes or part.orders]
    result: dict[str, Any] = {
        "changed": bool(todo),
        "differs": [f"{change.path} differs" for part in todo for change in part.changes]
        + [words for part in parts.values() for words in (*part.orders, *part.awaits)],
        "diff": [change.diff() for part in todo for change in part.changes]
        + [{"prepared": f"{order}\n"} for part in todo for order in part.orders],
    }
    if not check_mode:
        for part in todo:
            part.apply()
        clock = parts.get("clock")
        if isinstance(clock, Clock) and clock.options["sync_seconds"]:
            try:
                result["clock"] = clock.wait()
            except SettingsError as error:
                raise SettingsError(f"{error}.{clock.give_back()}") from None
    if isinstance(line, CommandLine):
        result["missing"], result["surplus"] = line.line.missing(), line.line.surplus(applied=not check_mode)
    result["notes"] = [note for part in parts.values() for note in part.notes]
    return result


def main() -> None:
    text = {"type": "str", "default": ""}
    needed = {"type": "str", "required": True}
    names = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "kernel": {
                "type": "dict",
                "options": {
                    "sysctl": {"type": "dict", "default": {}},
                    "sysctl_where_present": {"type": "dict", "default": {}},
                    "hugepages": {"type": "dict", "default": {}},
                    "transparent_hugepage": {**text, "choices": ["", "always", "madvise", "never"]},
                    "cpu_governor": text,
                },
            },
            "cmdline": {"type": "list", "elements": "str"},
            "reboot_flag": text,
            "clock": {
                "type": "dict",
                "options": {
                    "servers": names,
                    "pools": names,
                    "config": names,
                    "sync_seconds": {"type": "int", "default": 60},
                    "max_offset": {"type": "float", "default": 0.5},
                },
            },
            "timezone": text,
            "names": {
                "type": "dict",
                "options": {
                    "hostname": text,
                    "manage_hosts": {"type": "bool", "default": True},
                    "address": text,
                    "hosts": {"type": "list", "elements": "raw", "default": []},
                },
            },
            "journal": {
                "type": "dict",
                "options": {
                    "max_use": needed,
                    "keep_free": needed,
                    "max_retention": needed,
                    "rate_limit_interval": needed,
                    "rate_limit_burst": {"type": "int", "required": True},
                },
            },
            "services": {
                "type": "dict",
                "options": {
                    "memlock": text,
                    "nofile": {"type": "int", "default": 0},
                    "watchdog_seconds": {"type": "int", "default": 0},
                    "keep_pstore": {"type": "bool", "default": False},
                },
            },
            "logrotate": {"type": "dict", "options": {"max_size": needed}},
        },
        supports_check_mode=True,
    )
    module.run_command_environ_update = {"LC_ALL": "C"}
    try:
        result = apply(module.params, Node(module.run_command, module.get_bin_path), module.check_mode)
    except InputError as error:
        module.fail_json(msg="\n- ".join(["Nothing was changed.", *map(str, error.problems)]))
    except (SettingsError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    for note in result["notes"]:
        module.warn(note)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
