# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_signing: what it does, refuses and returns."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signer import (
    Signer,
    SigningError,
    Wish,
)
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_signing

from ..driver_node import answer, answer_with_stdin, driver_node
from .conftest import RunModule


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return driver_node(tmp_path)


def test_the_signings_result_is_documented(root: Path) -> None:
    signer = Signer(Reader(root, answer, 7), answer_with_stdin, Wish(), 7, check_mode=True)
    assert set(yaml.safe_load(nvidia_driver_signing.RETURN)) == {
        *nvidia_driver_signing.apply(signer, existing=True)
    } - {"changed"}


class Signing:
    """Replaces the signer: records its steps. Signing may fail."""

    def __init__(self) -> None:
        self.actions: list[str] = []
        self.steps: list[str] = []
        self.certificate = "/var/lib/dkms/mok.pub"
        self.fails = ""

    def __call__(self, *_given: object) -> Signing:
        return self

    def configure(self) -> None:
        self.steps.append("configure")
        self.actions.append("wrote a file of DKMS")

    def make_key(self) -> None:
        self.steps.append("make_key")

    def sign(self) -> None:
        self.steps.append("sign")
        if self.fails:
            raise SigningError(self.fails)

    def enrol(self) -> str:
        self.steps.append("enrol")
        return "pending"


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> Signing:
    found = Signing()
    monkeypatch.setattr(nvidia_driver_signing, "Signer", found)
    return found


def test_modules_are_signed_before_the_key_is_enrolled(signing: Signing, run_module: RunModule) -> None:
    found = run_module(nvidia_driver_signing)
    assert signing.steps == ["configure", "make_key", "sign", "enrol"]
    assert (found["changed"], found["enrolment"]) == (True, "pending")


def test_before_the_first_build_dkms_is_configured_and_nothing_is_signed(
    signing: Signing, run_module: RunModule
) -> None:
    found = run_module(nvidia_driver_signing, existing=False)
    assert (signing.steps, found["enrolment"]) == (["configure"], None)


def test_an_error_names_the_actions_before(signing: Signing, run_module: RunModule) -> None:
    signing.fails = "the build broke"
    found = run_module(nvidia_driver_signing)
    assert found["msg"] == "the build broke. Done before that: wrote a file of DKMS."


def test_an_invalid_key_changes_nothing(signing: Signing, run_module: RunModule) -> None:
    found = run_module(nvidia_driver_signing, key="SECRET nonsense")
    assert "cannot be used. Nothing was changed." in found["msg"]
    assert "SECRET" not in found["msg"] and signing.steps == []


def test_an_error_in_check_mode_claims_no_change(signing: Signing, run_module: RunModule) -> None:
    signing.fails = "the module cannot be read"
    assert run_module(nvidia_driver_signing, check=True)["msg"] == "the module cannot be read."
