# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings and boot parameters by the module system_settings, which changes neither without its option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_cmdline as kc
from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_settings as ks
from ansible_collections.baremetal.inference.plugins.module_utils.debian import node_settings
from ansible_collections.baremetal.inference.plugins.modules import system_settings

Call = Callable[..., dict[str, Any]]

MENU = "### BEGIN /etc/grub.d/10_linux ###\nlinux /boot/vmlinuz-6.1 root=LABEL=root ro {}\n"


class Node:
    """A node below a temporary root, with a GRUB that writes the parameters of its drop-in into the menu."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.swappiness = root / "proc/sys/vm/swappiness"
        self.sysctl_file = root / "etc/sysctl.d/60-inference.conf"
        self.drop_in = root / "etc/default/grub.d/50-inference.cfg"
        self.menu = root / "boot/grub/grub.cfg"
        self.cmdline = root / "proc/cmdline"
        self.site = ""
        for path, text in (
            (self.swappiness, "60\n"),
            (self.menu, MENU.format("")),
            (self.cmdline, "root=LABEL=root ro\n"),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run_command(self, argv: list[str], **_options: Any) -> tuple[int, str, str]:
        if argv[0] == "grub-mkconfig":
            drop_in = self.drop_in.read_text() if self.drop_in.exists() else ""
            Path(argv[2]).write_text(MENU.format(" ".join([*kc.parameters_of(drop_in), self.site])))
        return 0, "", ""

    def files(self) -> dict[str, str]:
        return {str(path): path.read_text() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path)
    for name, path in (("DROP_IN", node.drop_in), ("MENU", node.menu), ("CMDLINE", node.cmdline)):
        monkeypatch.setattr(kc, name, path)
    return node


EMPTY: dict[str, Any] = {
    "sysctl": {},
    "sysctl_where_present": {},
    "hugepages": {},
    "transparent_hugepage": "",
    "cpu_governor": "",
}


@pytest.fixture
def call(node: Node) -> Call:
    def run(check: bool = False, find: Any = str, **given: Any) -> dict[str, Any]:
        kernel = {"kernel": {**EMPTY, "sysctl": given["sysctl"]}} if "sysctl" in given else {}
        line = {"cmdline": given["cmdline"]} if "cmdline" in given else {}
        params = {**dict.fromkeys(system_settings.PARTS), "reboot_flag": "ours", **kernel, **line}
        return system_settings.apply(params, node_settings.Node(node.run_command, find, node.root), check)

    return run


def test_without_options_nothing_is_read_or_changed(call: Call, node: Node) -> None:
    node.sysctl_file.parent.mkdir(parents=True)
    node.drop_in.parent.mkdir(parents=True)
    node.sysctl_file.write_text("ours\n")
    node.drop_in.write_text("ours\n")
    node.cmdline.unlink()
    before = node.files()
    assert call() == {"changed": False, "differs": [], "notes": [], "diff": []}
    assert node.files() == before


def test_values_are_set_once_and_predicted(call: Call, node: Node) -> None:
    before = node.files()
    predicted = call(check=True, sysctl={"vm.swappiness": 10})
    assert node.files() == before
    made = call(sysctl={"vm.swappiness": 10})
    assert predicted == made
    file, value = made["diff"]
    assert value["prepared"] == "vm.swappiness: 60 -> 10\n"
    assert file["after_header"] == str(node.sysctl_file) and "+" not in file["before"]
    assert made["differs"] == [f"{node.sysctl_file} differs", "vm.swappiness: 60 -> 10"]
    assert node.swappiness.read_text() == "10"
    again = call(sysctl={"vm.swappiness": 10})
    assert (again["changed"], again["differs"], again["diff"]) == (False, [], [])
    node.swappiness.write_text("60")
    assert call(check=True, sysctl={"vm.swappiness": 10})["differs"] == ["vm.swappiness: 60 -> 10"]


def test_a_value_that_the_kernel_does_not_accept_is_an_error(
    call: Call, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ks, "_set", lambda path, value: "Invalid argument")
    with pytest.raises(node_settings.SettingsError, match="wanted '10', but the kernel has '60' \\(Invalid argument"):
        call(sysctl={"vm.swappiness": 10})
    assert not node.sysctl_file.exists()


def test_without_values_the_sysctl_file_is_removed_and_the_boot_parameters_stay(call: Call, node: Node) -> None:
    call(sysctl={"vm.swappiness": 10}, cmdline=["iommu=pt"])
    assert call(sysctl={})["changed"] is True
    assert not node.sysctl_file.exists() and node.drop_in.exists()


def test_boot_parameters_are_set_once_and_wait_for_a_reboot(call: Call, node: Node) -> None:
    before = node.files()
    predicted = call(check=True, cmdline=["iommu=pt"])
    assert node.files() == before
    made = call(cmdline=["iommu=pt"])
    assert predicted["diff"] == made["diff"]
    assert [item["after"] for item in made["diff"]] == [kc.render(["iommu=pt"])]
    for result in (predicted, made):
        assert (result["changed"], result["missing"], result["surplus"]) == (True, ["iommu=pt"], [])
    waiting = call(check=True, cmdline=["iommu=pt"])
    assert (waiting["changed"], waiting["differs"]) == (False, ["the kernel runs without iommu=pt"])
    flag, names = node.root / "run/reboot-required", node.root / "run/reboot-required.pkgs"
    flag.parent.mkdir()
    flag.touch()
    names.write_text("libc6\nours-not\n")
    assert call(check=True, cmdline=["iommu=pt"])["differs"] == waiting["differs"], (
        "the flag of another program does not count"
    )
    names.write_text("libc6\nours\n")
    flagged = call(check=True, cmdline=["iommu=pt"])
    assert (flagged["differs"], flagged["missing"]) == ([], ["iommu=pt"])
    assert call(check=True, cmdline=["iommu=pt", "quiet"])["differs"] == [f"{node.drop_in} differs"]
    flag.unlink()
    assert call(check=True, cmdline=["iommu=pt"])["differs"] == waiting["differs"], (
        "without the flag, no operator sees that a reboot is due"
    )
    assert "iommu=pt" in node.menu.read_text()
    node.cmdline.write_text("root=LABEL=root ro iommu=pt\n")
    again = call(cmdline=["iommu=pt"])
    assert (again["changed"], again["missing"], again["diff"], again["differs"]) == (False, [], [], [])


def test_parameters_that_left_the_list_are_surplus(call: Call, node: Node) -> None:
    call(cmdline=["iommu=pt", "quiet"])
    node.cmdline.write_text("root=LABEL=root ro iommu=pt quiet\n")
    node.site = "quiet"
    assert call(check=True, cmdline=[])["surplus"] == ["iommu=pt", "quiet"]
    made = call(cmdline=[])
    assert (made["changed"], made["surplus"]) == (True, ["iommu=pt"]), "another file still sets quiet"
    assert not node.drop_in.exists()


def test_the_drop_in_of_a_machine_without_a_menu_is_removed(call: Call, node: Node) -> None:
    call(cmdline=["iommu=pt"])
    node.menu.unlink()
    assert call(cmdline=[])["changed"] is True
    assert not node.drop_in.exists()


def test_a_menu_that_has_lost_the_parameters_is_renewed(call: Call, node: Node) -> None:
    call(cmdline=["iommu=pt"])
    node.menu.write_text(MENU.format(""))
    assert call(check=True, cmdline=["iommu=pt"])["changed"]
    assert call(cmdline=["iommu=pt"])["changed"] and "iommu=pt" in node.menu.read_text()


def test_a_parameter_that_another_file_overrides_is_noted(call: Call, node: Node) -> None:
    node.site = "iommu=off"
    (note,) = call(cmdline=["iommu=pt"])["notes"]
    assert "also has iommu=off, after common_kernel_cmdline" in note
    assert call(check=True, cmdline=["iommu=pt"])["notes"] == [note]


def test_all_mistakes_are_named_and_nothing_changes(call: Call, node: Node) -> None:
    before = node.files()
    with pytest.raises(InputError) as refusal:
        call(sysctl={"vm.swapiness": 1, "vm.swappiness": 10}, cmdline=["a b"])
    sysctl, parameter = map(str, refusal.value.problems)
    assert "Did you mean vm.swappiness?" in sysctl
    assert parameter == "cmdline: 'a b': must be one parameter per item, without blanks or quotes"
    assert node.files() == before


def test_a_node_without_grub_is_refused(call: Call, node: Node) -> None:
    node.menu.unlink()
    before = node.files()
    with pytest.raises(InputError, match="this machine does not boot with GRUB"):
        call(cmdline=["iommu=pt"])
    assert node.files() == before


def test_a_menu_without_grubs_programs_is_refused(call: Call) -> None:
    with pytest.raises(InputError, match="without the programs grub-mkconfig and grub-script-check"):
        call(check=True, find=lambda _name: None, cmdline=["iommu=pt"])


def test_an_error_of_grub_mkconfig_keeps_the_old_menu(call: Call, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "run_command", lambda argv: (1, "", "no space left"))
    with pytest.raises(node_settings.SettingsError, match="the old menu stays: no space left"):
        call(cmdline=["iommu=pt"])
    assert not node.drop_in.exists()
