# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command inference-gateway-certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import certificate_program, serving
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.serving import Serving

from .test_handing_over import HAProxy
from .test_serving import certified, haproxy, own

__all__ = ["certified", "haproxy", "own"]


@pytest.fixture
def command(own: Serving, haproxy: HAProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "load", lambda: own)
    monkeypatch.setattr(certificate_program.runtime, "ask", lambda _path: haproxy)
    monkeypatch.setattr(certificate_program.os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("command")
def test_the_command_update_serves_a_renewed_certificate_and_the_command_status_reports_a_damaged_one(
    own: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certificate_program.main(["update"]) == 0 and capsys.readouterr().out == ""
    assert certificate_program.main(["update", "--renew"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "HAProxy serves the new certificate"
    assert certificate_program.main(["status"]) == 0
    assert "PRIVATE" not in capsys.readouterr().out
    Path(own.certificate).write_text("nothing")
    assert certificate_program.main(["status"]) == 1
    assert f"{own.certificate} is no certificate in PEM" in capsys.readouterr().err
    Path(own.certificate).unlink()
    assert certificate_program.main(["status"]) == 1
    assert "served.pem" in capsys.readouterr().err


def test_other_users_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(certificate_program.os, "geteuid", lambda: 1000)
    assert certificate_program.main(["update"]) == 2
    assert "sudo inference-gateway-certificate update" in capsys.readouterr().err
