# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module kernel_settings: the running kernel and the boot parameters, each only where its options are given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_cmdline as kc
from ansible_collections.baremetal.inference.plugins.modules import kernel_settings

Call = Callable[..., dict[str, Any]]

MENU = "### BEGIN /etc/grub.d/10_linux ###\nlinux /boot/vmlinuz-6.1 root=LABEL=root ro {}\n"


class Node:
    """A node below a temporary root, with a GRUB that writes what its drop-in file says."""

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
    monkeypatch.setattr(kernel_settings, "ROOT", tmp_path)
    for name, path in (("DROP_IN", node.drop_in), ("MENU", node.menu), ("CMDLINE", node.cmdline)):
        monkeypatch.setattr(kc, name, path)
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _module, name: name)
    monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda _module, argv: node.run_command(argv))
    return node


@pytest.fixture
def call(node: Node, run_module: Call) -> Call:
    return partial(run_module, kernel_settings)


def test_without_options_nothing_is_read_or_changed(call: Call, node: Node) -> None:
    node.sysctl_file.parent.mkdir(parents=True)
    node.drop_in.parent.mkdir(parents=True)
    node.sysctl_file.write_text("ours\n")
    node.drop_in.write_text("ours\n")
    node.cmdline.unlink()
    before = node.files()
    result = call()
    assert {**result, "invocation": 0} == {
        "changed": False,
        "differs": [],
        "set": [],
        "missing": [],
        "surplus": [],
        "diff": [],
        "invocation": 0,
    }
    assert node.files() == before


def test_values_are_set_once_and_predicted(call: Call, node: Node) -> None:
    before = node.files()
    predicted = call(check=True, sysctl={"vm.swappiness": 10})
    assert node.files() == before
    made = call(sysctl={"vm.swappiness": 10})
    assert (predicted["changed"], predicted["set"], predicted["diff"]) == (True, made["set"], made["diff"])
    assert made["set"] == [{"name": "vm.swappiness", "value": "10"}]
    kernel, file = made["diff"]
    assert (kernel["before"], kernel["after"]) == ("vm.swappiness = 60\n", "vm.swappiness = 10\n")
    assert file["after_header"] == str(node.sysctl_file)
    assert node.swappiness.read_text() == "10"
    again = call(sysctl={"vm.swappiness": 10})
    assert (again["changed"], again["set"], again["diff"]) == (False, [], [])


def test_an_empty_value_takes_the_file_along_but_no_boot_parameter(call: Call, node: Node) -> None:
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
    assert "iommu=pt" in node.menu.read_text()
    node.cmdline.write_text("root=LABEL=root ro iommu=pt\n")
    again = call(cmdline=["iommu=pt"])
    assert (again["changed"], again["missing"], again["diff"]) == (False, [], [])


def test_parameters_that_left_the_list_are_surplus(call: Call, node: Node) -> None:
    call(cmdline=["iommu=pt", "quiet"])
    node.cmdline.write_text("root=LABEL=root ro iommu=pt quiet\n")
    node.site = "quiet"
    assert call(check=True, cmdline=[])["surplus"] == ["iommu=pt", "quiet"]
    made = call(cmdline=[])
    assert (made["changed"], made["surplus"]) == (True, ["iommu=pt"]), "another file still asks for quiet"
    assert not node.drop_in.exists()


def test_a_file_without_a_menu_is_removed(call: Call, node: Node) -> None:
    call(cmdline=["iommu=pt"])
    node.menu.unlink()
    assert call(cmdline=[])["changed"] is True
    assert not node.drop_in.exists()


def test_a_parameter_that_another_file_overrules_is_a_warning(
    call: Call, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _module, text: warnings.append(text))
    node.site = "iommu=off"
    call(cmdline=["iommu=pt"])
    (warning,) = warnings
    assert "also says iommu=off, behind common_kernel_cmdline" in warning


def test_all_mistakes_are_named_and_nothing_changes(call: Call, node: Node) -> None:
    before = node.files()
    result = call(sysctl={"vm.swapiness": 1, "vm.swappiness": 10}, cmdline=["a b"])
    assert result["failed"] is True
    first, sysctl, parameter = result["msg"].split("\n- ")
    assert first == "kernel_settings: nothing was changed."
    assert "Did you mean vm.swappiness?" in sysctl
    assert parameter == "'a b': one parameter an item, without blanks or quotes"
    assert node.files() == before


def test_a_node_without_grub_is_refused(call: Call, node: Node) -> None:
    node.menu.unlink()
    before = node.files()
    assert "this machine does not boot by GRUB" in call(cmdline=["iommu=pt"])["msg"]
    assert node.files() == before


def test_a_menu_without_grubs_programs_is_refused(call: Call, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda _module, name: None)
    assert "no grub-mkconfig and no grub-script-check" in call(check=True, cmdline=["iommu=pt"])["msg"]
    assert call(cmdline=[])["changed"] is False
