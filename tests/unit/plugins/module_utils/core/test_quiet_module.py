# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module writes to the journal of the machine that it runs on."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule

SECRET = "s3cr3t-of-two-lines"
SPECIFICATION: dict[str, Any] = {"plan": {"type": "dict", "options": {"maps": {"type": "dict", "no_log": True}}}}


def journal(kind: type[AnsibleModule], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a module logs when it starts."""
    said: list[str] = []
    monkeypatch.setattr(AnsibleModule, "log", lambda _module, message, **_more: said.append(str(message) + str(_more)))
    with patch_module_args({"plan": {"maps": {"engines.map": f"one\ntwo {SECRET}\n"}}}):
        kind(argument_spec=SPECIFICATION)
    return "".join(said)


def test_a_quiet_module_keeps_secrets_out_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = journal(QuietModule, monkeypatch)
    assert said.startswith("Invoked") and SECRET not in said


def test_no_log_alone_does_not_keep_secrets_out_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason for QuietModule. If this test fails, QuietModule can be removed."""
    assert SECRET in journal(AnsibleModule, monkeypatch)
