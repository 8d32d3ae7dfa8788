# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role rdma on two rails: their settings after a run, after a device was added again, and after a reboot.

The rails are RoCE devices in software, on network devices with DCB (images/machine/module). No packet leaves them.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from node import PROJECT, changed_tasks, changes, wait_for
from virtual import Machine

RAILS = ("rail0", "rail1")
DEVICES = ("roce0", "roce1")

UNIT = """[Unit]
Description=RoCE devices in software
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'modprobe -a rails rdma_rxe; for number in 0 1; do ip link set rail$number up; \
  rdma link add roce$number type rxe netdev rail$number; done'
ExecStop=modprobe -r rails
[Install]
WantedBy=multi-user.target
"""

READ = """
for number in 0 1; do
  rail=rail$number
  cat /sys/class/net/$rail/mtu
  ip -j -4 address show dev $rail
  dcb -j pfc show dev $rail
  dcb -j app show dev $rail dscp-prio
  dcb -j ets show dev $rail
  cat /sys/kernel/config/rdma_cm/roce$number/ports/1/default_roce_tos
  cat /proc/sys/net/ipv4/conf/$rail/arp_ignore
  ip -j route get 10.7.0.100 from 10.7.0.$((number + 1))
done
"""
"""Prints eight lines of JSON for each rail."""

TOS = "cat /sys/kernel/config/rdma_cm/roce0/ports/1/default_roce_tos"


class Railed(Machine):
    """The machine; site() sets up its rails alone."""

    playbook = str(PROJECT / "molecule/shared/rails.yml")


@pytest.fixture(scope="session")
def bare() -> Railed:
    """The machine with RoCE devices that nothing has set up."""
    machine = Railed()
    machine.run(f"printf %s {shlex.quote(UNIT)} >/etc/systemd/system/roce.service && systemctl enable --now roce")
    return machine


@pytest.fixture(scope="session")
def foreseen(bare: Railed, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> set[str]:
    """The tasks that a run in check mode reports as changes. CI leaves this run out."""
    if pytestconfig.getoption("markexpr") == "not full":
        return set()
    found = changed_tasks(bare, tmp_path_factory.mktemp("foreseen"), "--check")[0]
    assert bare.run("cat /sys/class/net/rail*/mtu").split() == ["1500", "1500"]
    return found


@pytest.fixture(scope="session")
def done(bare: Railed, foreseen: set[str], tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The tasks that changed the machine. In CI, the run changes the machine without a comparison (rdma_due)."""
    due: dict[str, Any] = {} if foreseen else {"rdma_due": True}
    return changed_tasks(bare, tmp_path_factory.mktemp("done"), **due)[0]


@pytest.fixture(scope="session")
def rails(bare: Railed, done: set[str]) -> Railed:
    """The machine with the settings of its rails."""
    return bare


def have_all_settings(machine: Machine) -> None:
    lines = [json.loads(line) for line in machine.run(READ).splitlines()]
    for number, rail in enumerate(RAILS):
        mtu, addresses, pfc, dscp, ets, tos, arp, route = lines[8 * number : 8 * number + 8]
        assert mtu == 9000
        assert [entry["local"] for entry in addresses[0]["addr_info"]] == [f"10.7.0.{number + 1}"]
        assert [priority for priority, lossless in enumerate(pfc["prio_pfc"]) if lossless] == [3]
        assert [entry[:2] for entry in dscp["dscp_prio"]] == [[26, 3], [48, 6]]
        assert (ets["tc_bw"], ets["prio_tc"]) == ([50, 0, 0, 50, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0, 6, 0])
        assert (tos, arp, route[0]["dev"]) == (106, 1, rail)


def in_json(machine: Machine, command: str) -> Any:
    return json.loads(machine.run(command, check=False))


def ended(machine: Machine, *devices: str) -> list[str]:
    """When the unit of each device last ended, in microseconds after the boot; 0 if the unit never ran."""
    units = " ".join(f"inference-rdma@{device}" for device in devices)
    return machine.run(f"systemctl show --value --property=InactiveEnterTimestampMonotonic {units}").split()


def wait_for_units(machine: Machine, before: list[str], *devices: str) -> None:
    """Wait until the unit of each device has ended again: up to its end, a unit repairs what a test changes. `before`:
    when the units had ended before."""
    wait_for("the end of the units", lambda: not set(before) & set(ended(machine, *devices)), 240)
    units = " ".join(f"inference-rdma@{device}" for device in devices)
    assert set(machine.run(f"systemctl show --value --property=Result {units}").split()) == {"success"}


def made_by_units(machine: Machine, since: str) -> str:
    """The journal of the units, which name each setting that they made."""
    said = machine.run(f"journalctl --quiet --output=cat {since} --unit='inference-rdma*'")
    for number, device in enumerate(DEVICES):
        assert f"rail {number} ({device}/1): pfc: none -> 3" in said, said
    return said


def test_the_rails_have_all_settings(rails: Railed) -> None:
    have_all_settings(rails)
    assert "active_mtu:\t\t4096" in rails.run("ibv_devinfo -d roce1")
    assert rails.run("inferctl rdma check") == "rails with all recorded settings: 2"


def test_a_device_that_is_added_again_gets_its_settings(rails: Railed) -> None:
    before = ended(rails, "roce0")
    rails.run("rdma link delete roce0 && rdma link add roce0 type rxe netdev rail0")
    wait_for_units(rails, before, "roce0")
    assert rails.run(TOS) == "106"


@pytest.mark.full
def test_check_mode_foresees_the_run_and_a_second_run_changes_nothing(
    rails: Railed, done: set[str], foreseen: set[str]
) -> None:
    assert foreseen == done != set()
    for options in ((), ("--check",)):
        output = rails.site(*options)
        assert not changes(output), output


@pytest.mark.full
def test_a_driver_that_is_loaded_again_gets_all_settings(rails: Railed) -> None:
    """The new devices have the kernel's defaults. udev alone sets the MTU, and the units make the other settings."""
    before, now = ended(rails, *DEVICES), rails.run("date +%s")
    rails.run("systemctl restart roce.service")
    wait_for_units(rails, before, *DEVICES)
    have_all_settings(rails)
    assert ": mtu: " not in made_by_units(rails, f"--since=@{now}")


@pytest.mark.full
def test_a_difference_is_found_and_repaired(rails: Railed) -> None:
    rails.run("dcb pfc set dev rail1 prio-pfc all:off && ip link set rail1 mtu 1500")
    found = {(change["rail"], change["setting"]) for change in in_json(rails, "inferctl rdma check --json")["changes"]}
    assert found == {(1, "pfc"), (1, "mtu")}
    assert "rail 1 (roce1/1): pfc: none -> 3" in rails.run("inferctl doctor rdma-settings", check=False)
    rails.run("inferctl rdma apply")
    have_all_settings(rails)


@pytest.mark.full
def test_mistakes_are_refused_at_once(rails: Railed) -> None:
    wrong: dict[str, Any] = {"rdma_addresses": ["10.7.0.1/24", "10.7.0.1/24"], "rdma_mtu": 9999, "rdma_dscp": 106}
    management = in_json(rails, "ip -json -4 route get 192.0.2.1")[0]["dev"]
    rails.run(f"rdma link add other type rxe netdev {management}")
    listed = [{"netdev": "rail0"}, {"netdev": management}]
    output = " ".join(rails.site(check=False, rdma_rails=listed, **wrong).split())
    for words in (
        f"rdma_rails: 'netdev: {management}': {management} is the management interface",
        "the DSCP is 26",
        "is the address of two rails",
        "rdma_mtu: 9999: rail0 takes at most 9978",
    ):
        assert words in output, output
    have_all_settings(rails)
    rails.run("rdma link delete other")


REGISTERS = """
import json, sys
from pathlib import Path
sys.path.insert(0, "/usr/local/lib")
from inference.hardware import pci, pci_config
from inference.hardware.rdma import settings
from inference.hardware.rdma_settings import apply, rails
from inference.hardware.rdma_settings.desired import Rail
from inference.hardware.rdma_settings.differences import Difference

root, nic, found = Path("/"), sys.argv[1], {}
(bridge,) = pci.device(root, nic).upstream[1:]
register = pci_config.acs_control(pci_config.read(root, bridge))
apply._write_register(root, bridge, register.offset, register.value | pci_config.ACS_REDIRECTS)
port = rails.Port("none", 1, nic, "none", None, "ethernet", True, {}, {})

def make(setting, before, after):
    apply.apply(root, Difference(0, "none/1", setting, before, after), Rail(port.key, "ethernet"), port, "none", None)

found["bridges"] = settings.pcie(root, nic).acs_bridges
make("acs_bridges", found["bridges"], [])
found["bridges after"] = settings.pcie(root, nic).acs_bridges
before = settings.pcie(root, nic).max_read_request
make("max_read_request", before, 4096)
found["read request stays"] = settings.pcie(root, nic).max_read_request == before
print(json.dumps({"bridge": bridge, **found}))
"""


@pytest.mark.full
def test_acs_of_a_bridge_is_switched_off(rails: Railed) -> None:
    """ACS of the emulated root port goes off. The emulated NIC keeps its old maximum read request size."""
    netdev = in_json(rails, "ip -json -4 route get 192.0.2.1")[0]["dev"]
    # virtio0 is below the PCI function.
    nic = Path(rails.run(f"readlink -f /sys/class/net/{netdev}/device/..")).name
    found = in_json(rails, f"python3 -c {shlex.quote(REGISTERS)} {nic}")
    assert found["bridges"] == [found["bridge"]] and found["bridges after"] == []
    assert found["read request stays"]


def test_the_settings_are_there_after_a_reboot(rails: Railed, rebooted: Machine) -> None:
    rebooted.run("systemctl start inference-rdma.service")
    have_all_settings(rebooted)
    # The MTU is that of the .link file.
    assert ": mtu: " not in made_by_units(rebooted, "--boot")
    assert rebooted.run("systemctl is-failed 'inference-rdma*'", check=False) != "failed"
