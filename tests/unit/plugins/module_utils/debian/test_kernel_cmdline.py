# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line: drop-in, menu and missing parameters. The scenario vm boots with such parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import kernel_cmdline as module
from ansible_collections.baremetal.inference.plugins.module_utils.debian.kernel_cmdline import (
    PARAMETER,
    Boot,
    BootError,
    in_menu,
    lacking,
    overruled,
    parameters_of,
    render,
)

MENU = """
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian' {
    linux /boot/vmlinuz-6.1 root=LABEL=root ro quiet iommu=pt
    initrd /boot/initrd.img
}
menuentry 'Debian (recovery)' {
    linux /boot/vmlinuz-6.1 root=LABEL=root ro single iommu=pt
}
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/20_memtest86+ ###
menuentry 'Memory test' {
    linux /boot/mt86+x64
}
### END /etc/grub.d/20_memtest86+ ###
"""
OLD = "### BEGIN /etc/grub.d/10_linux ###\nlinux /boot/vmlinuz-6.1 root=LABEL=root ro\n"


def test_the_drop_in_adds_its_parameters_to_those_of_other_files() -> None:
    assert render(["iommu=pt", "pci=noacs"]).endswith('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt pci=noacs"\n')
    assert render([]) == ""


@pytest.mark.parametrize(
    ("parameters", "there"), [(["iommu=pt"], True), (["iommu=pt", "quiet"], False), (["iommu"], False), ([], True)]
)
def test_every_kernel_of_the_menu_must_have_the_parameters(parameters: list[str], there: bool) -> None:
    assert in_menu(parameters, MENU) is there


def test_a_menu_without_a_kernel_does_not_have_the_parameters() -> None:
    assert not in_menu(["iommu=pt"], "set timeout=0\n")


def test_a_parameter_that_is_wanted_twice_must_occur_twice() -> None:
    pages = ["hugepagesz=1G", "hugepages=4", "hugepagesz=2M", "hugepages=4"]
    assert lacking(pages, ["hugepagesz=1G", "hugepages=4", "hugepagesz=2M"]) == ["hugepages=4"]
    assert lacking(pages, [*pages, "quiet"]) == []


def test_a_later_value_overrides_a_parameter() -> None:
    assert overruled(["iommu=pt", "quiet"], ["ro", "iommu=pt", "quiet", "iommu=off"]) == ["iommu=off"]
    assert overruled(["iommu=pt"], ["iommu=off", "iommu=pt"]) == []
    assert overruled(["console=ttyS0"], ["console=ttyS0", "console=tty0"]) == []


def test_the_parameters_of_a_drop_in_are_read_back() -> None:
    assert parameters_of(render(["iommu=pt", "quiet"])) == ["iommu=pt", "quiet"]
    assert parameters_of("") == []


class Grub:
    """A node with or without GRUB's programs; grub-mkconfig writes a menu."""

    def __init__(self, menu: str, check: int = 0, installed: bool = True) -> None:
        self.menu, self.check, self.installed = menu, check, installed

    def get_bin_path(self, name: str) -> str | None:
        return name if self.installed else None

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        if argv[0] == "grub-mkconfig":
            Path(argv[2]).write_text(self.menu)
            return 0, "", ""
        return self.check, "", "syntax error"


def boot(grub: Grub) -> Boot:
    return Boot(grub.get_bin_path, grub.run_command)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    menu, drop_in = tmp_path / "grub.cfg", tmp_path / "50-inference.cfg"
    menu.write_text(OLD)
    monkeypatch.setattr(module, "MENU", menu)
    monkeypatch.setattr(module, "DROP_IN", drop_in)
    return menu, drop_in


def test_a_new_menu_replaces_the_old_menu(files: tuple[Path, Path]) -> None:
    menu, drop_in = files
    boot(Grub(MENU)).renew(["iommu=pt"], "")
    assert (menu.read_text(), drop_in.read_text()) == (MENU, render(["iommu=pt"]))


def test_a_menu_with_a_name_in_another_encoding_is_replaced(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    menu, foreign = files[0], b"menuentry 'Syst\xe8me'\n"
    menu.write_bytes(foreign + OLD.encode())
    grub = Grub(MENU)

    def write(argv: list[str]) -> tuple[int, str, str]:
        if argv[0] == "grub-mkconfig":
            Path(argv[2]).write_bytes(foreign + MENU.encode())
        return 0, "", ""

    monkeypatch.setattr(grub, "run_command", write)
    line = module.CommandLine(["iommu=pt"], boot(grub))
    assert line.changed
    line.apply()
    assert menu.read_bytes() == foreign + MENU.encode()


@pytest.mark.parametrize(
    ("grub", "words"),
    [
        (Grub(MENU, check=1), "the old menu stays: syntax error"),
        (Grub(OLD), "the new menu does not have iommu=pt"),
        (Grub(MENU, installed=False), "without the programs grub-mkconfig and grub-script-check"),
    ],
)
def test_a_failure_leaves_the_old_files(files: tuple[Path, Path], grub: Grub, words: str) -> None:
    menu, drop_in = files
    with pytest.raises(BootError, match=words):
        boot(grub).renew(["iommu=pt"], "")
    assert menu.read_text() == OLD
    assert not drop_in.exists()
    assert sorted(path.name for path in menu.parent.iterdir()) == ["grub.cfg"]


@pytest.mark.parametrize(
    "text", ["iommu=pt", "default_hugepagesz=1G", "console=ttyS0,115200n8", "quiet", "pci=realloc=on"]
)
def test_a_kernel_parameter_is_accepted(text: str) -> None:
    assert PARAMETER.fullmatch(text)


@pytest.mark.parametrize("text", ["", "a b", "x=$(reboot)", 'x="1"', "x='1'", "a\nb", "x=`id`"])
def test_a_text_that_is_not_a_kernel_parameter_is_refused(text: str) -> None:
    assert not PARAMETER.fullmatch(text)


def test_a_section_without_a_name_has_no_kernels() -> None:
    assert module.kernel_lines(f"### BEGIN \nlinux /boot/other\n{OLD}") == [OLD.splitlines()[1].split()]
