# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures of modules and the enrolment of the key, on a machine of fakes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import secure_boot, signing
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signer import (
    Signer,
    SigningError,
    Wish,
)
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_signing
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.driver.pairs import (
    SERIAL,
    Pair,
    make_pair,
)

OLD, NEW = "6.1.0-70-amd64", "6.1.0-77-amd64"
PASSWORD = "typed-by-a-person"
DKMS_SERIAL = 0x0D


class Machine:
    """Fakes of openssl, of the firmware behind mokutil, and of DKMS, which signs the modules that it builds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.signed: dict[str, str | None] = {OLD: None, NEW: None}
        """By kernel: the key that has signed the module."""
        self.enrolled: list[bytes] = []
        self.requested: list[bytes] = []
        self.builds: list[str] = []
        self.signs = True
        (root / "etc/dkms").mkdir(parents=True)
        (root / "var/lib/dkms").mkdir(parents=True)

    def firmware(self) -> None:
        """Turn Secure Boot on."""
        directory = self.root / secure_boot.VARIABLES
        directory.mkdir(parents=True)
        (directory / f"SecureBoot-{secure_boot.GLOBAL}").write_bytes(bytes([6, 0, 0, 0, 1]))

    def reader(self) -> Reader:
        return Reader(self.root, self, 7)

    def signer(self, wish: Wish = Wish(), check_mode: bool = False) -> Signer:  # noqa: B008
        return Signer(self.reader(), self, wish, 7, check_mode)

    def apply(self, wish: Wish = Wish(), check_mode: bool = False) -> list[str]:  # noqa: B008
        """The actions of the module. A second run must do nothing."""
        done = nvidia_driver_signing.apply(self.signer(wish, check_mode), existing=True)["actions"]
        if not check_mode:
            again = nvidia_driver_signing.apply(self.signer(wish), existing=True)
            assert again["changed"] is False, again
        return [str(action) for action in done]

    def __call__(self, command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
        verb = command[1]
        if command[0] == "dkms" and verb == "status":
            return Outcome(0, "".join(f"nvidia/580.7.01, {one}, x86_64: installed\n" for one in self.signed))
        if command[0] == "dkms":
            return self.dkms(verb, command[4])
        if command[0] == "modinfo":
            key = self.signed[command[2]]
            signature = f"sig_id:         PKCS#7\nsigner:         x\nsig_key:        {key}\n" if key else ""
            return Outcome(0, f"version:        580.7.01\n{signature}")
        if command[0] == "openssl":
            made = make_pair(DKMS_SERIAL)
            Path(command[command.index("-keyout") + 1]).write_text(made.key, encoding="utf-8")
            Path(command[command.index("-out") + 1]).write_bytes(made.der)
            return Outcome(0)
        assert command[0] == "mokutil", command
        return self.mokutil(command, stdin)

    def dkms(self, verb: str, kernel: str) -> Outcome:
        self.builds += [f"{verb} {kernel}"]
        serial = self.reader().serial(secure_boot.certificate(self.reader().dkms_configuration()))
        if verb == "install" and self.signs:
            self.signed[kernel] = serial
        return Outcome(0)

    def mokutil(self, command: Sequence[str], stdin: str) -> Outcome:
        if command[1] == "--generate-hash":
            assert stdin == f"{PASSWORD}\n{PASSWORD}\n"
            return Outcome(0, "input password: \n$6$a7$b/c\n")
        if command[1] == "--sb-state":
            return Outcome(0, "SecureBoot enabled\n")
        certificate = (self.root / command[2].lstrip("/")).read_bytes()
        if command[1] == "--import":
            self.requested.append(certificate)
            return Outcome(0)
        if certificate in self.enrolled:
            return Outcome(1, f"{command[2]} is already enrolled\n")
        waits = certificate in self.requested
        return Outcome(0, f"{command[2]} is {'already in the enrollment request' if waits else 'not enrolled'}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_dkms_signs_with_its_own_key(machine: Machine) -> None:
    assert machine.apply() == [
        "made the key /var/lib/dkms/mok.key",
        f"signed nvidia/580.7.01 for {OLD}",
        f"signed nvidia/580.7.01 for {NEW}",
    ]
    assert set(machine.signed.values()) == {f"{DKMS_SERIAL:02X}"}
    assert machine.builds == [f"build {OLD}", f"install {OLD}", f"build {NEW}", f"install {NEW}"]


def test_only_modules_with_another_key_are_built_again(machine: Machine, pair: Pair) -> None:
    machine.signed[NEW] = f"{SERIAL:X}"
    done = machine.apply(Wish(pair.key, pair.certificate))
    assert done[-1] == f"signed nvidia/580.7.01 for {OLD}"
    assert machine.builds == [f"build {OLD}", f"install {OLD}"]


def test_dkms_signs_with_a_sites_own_key(machine: Machine, pair: Pair) -> None:
    machine.apply(Wish(pair.key, pair.certificate))
    assert set(machine.signed.values()) == {f"{SERIAL:X}"}
    key = machine.root / signing.OWN_KEY.lstrip("/")
    assert key.stat().st_mode & 0o777 == 0o600
    assert (machine.root / signing.OWN_CERTIFICATE.lstrip("/")).read_bytes() == pair.der
    assert not (machine.root / "var/lib/dkms/mok.key").exists()


def test_a_key_that_is_no_longer_declared_is_replaced_and_removed(machine: Machine, pair: Pair) -> None:
    machine.apply(Wish(pair.key, pair.certificate))
    predicted = machine.apply(check_mode=True)
    assert predicted == machine.apply()
    assert set(machine.signed.values()) == {f"{DKMS_SERIAL:02X}"}
    assert list((machine.root / "etc/dkms").rglob("inference*")) == []


def test_check_mode_predicts_and_changes_nothing(machine: Machine, pair: Pair) -> None:
    machine.firmware()
    wish = Wish(pair.key, pair.certificate, PASSWORD)
    before = sorted(machine.root.rglob("*"))
    predicted = machine.apply(wish, check_mode=True)
    assert sorted(machine.root.rglob("*")) == before
    assert machine.builds == [] and machine.requested == []
    assert predicted == machine.apply(wish)


def test_check_mode_predicts_a_new_key(machine: Machine) -> None:
    machine.firmware()
    wish = Wish(password=PASSWORD)
    assert machine.apply(wish, check_mode=True) == machine.apply(wish)


def test_enrolment_is_requested_once(machine: Machine, pair: Pair) -> None:
    machine.firmware()
    signer = machine.signer(Wish(pair.key, pair.certificate, PASSWORD))
    assert nvidia_driver_signing.apply(signer, existing=True)["enrolment"] == "pending"
    assert machine.requested == [pair.der]
    assert machine.apply(Wish(pair.key, pair.certificate, PASSWORD)) == []
    machine.enrolled.append(pair.der)
    assert machine.signer(Wish(pair.key, pair.certificate, PASSWORD)).enrol() == "enrolled"


def test_without_a_password_or_secure_boot_no_enrolment_is_requested(machine: Machine, pair: Pair) -> None:
    machine.apply(Wish(pair.key, pair.certificate, PASSWORD))
    machine.firmware()
    assert machine.requested == []
    assert machine.signer(Wish(pair.key, pair.certificate)).enrol() == "missing"
    assert machine.requested == []


def test_dkms_that_does_not_sign_is_an_error(machine: Machine) -> None:
    machine.signs = False
    with pytest.raises(SigningError, match=f"nvidia/580.7.01 for {OLD}.*still not signed"):
        machine.apply()


def test_a_key_in_a_token_is_left_to_dkms(machine: Machine, pair: Pair) -> None:
    text = "mok_signing_key='pkcs11:object=x'\nmok_certificate=/etc/dkms/token.der\n"
    (machine.root / "etc/dkms/framework.conf").write_text(text, encoding="utf-8")
    (machine.root / "etc/dkms/token.der").write_bytes(pair.der)
    assert machine.apply()[0] == f"signed nvidia/580.7.01 for {OLD}"


@pytest.mark.parametrize("part", ["key", "certificate"])
def test_a_key_without_certificate_or_a_certificate_without_key_is_a_problem(pair: Pair, part: str) -> None:
    assert "only one of key and certificate is set" in Wish(**{part: getattr(pair, part)}).problems()[0]


def test_all_mistakes_are_found_at_once(pair: Pair, other_pair: Pair) -> None:
    problems = Wish(pair.key, other_pair.certificate, "short").problems()
    assert [("does not match the key" in one, "8 to 256" in one) for one in problems] == [(True, False), (False, True)]
    assert Wish(pair.key, pair.certificate, PASSWORD).problems() == []
