# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of certbot, and what prevents a first certificate."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import acme
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.certificates import CertificateError

from .test_certificates import pair

ORDER = acme.Order(["gw.example.com", "llm.example.com"], "ops@example.com", "https://acme.invalid/directory")


def filled(etc: Path, server: str = ORDER.server) -> Path:
    """certbot's files after success."""
    live = etc / "live" / acme.NAME
    live.mkdir(parents=True)
    pair(live, "made", names="DNS:gw.example.com,DNS:llm.example.com").rename(live / "fullchain.pem")
    (etc / "renewal").mkdir()
    (etc / f"renewal/{acme.NAME}.conf").write_text(f"[renewalparams]\nserver = {server}\n")
    return etc


def test_a_certificate_fills_an_order_if_it_has_the_names_and_the_authority_of_the_order(tmp_path: Path) -> None:
    assert not ORDER.is_filled(tmp_path / "none")
    assert ORDER.is_filled(filled(tmp_path / "one"))
    assert not ORDER.is_filled(filled(tmp_path / "two", "https://other.invalid/"))
    assert not acme.Order(["gw.example.com"], "", ORDER.server).is_filled(tmp_path / "one")
    # A filled order has no problems: certbot renews the certificate.
    assert ORDER.problems(tmp_path / "one") == []


def test_unknown_names_and_a_taken_port_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acme, "_resolves", lambda name: name != "llm.example.com")
    monkeypatch.setattr(acme, "port_taken", lambda port: port == 80)
    unresolved, taken = ORDER.problems(tmp_path)
    assert "'llm.example.com' does not resolve" in unresolved and "listens on port 80" in taken
    monkeypatch.setattr(acme, "port_taken", lambda _port: False)
    monkeypatch.setattr(acme, "_resolves", lambda _name: True)
    assert ORDER.problems(tmp_path) == []


def test_a_port_with_a_listener_is_taken(port: int) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        assert acme.port_taken(port)
    assert not acme.port_taken(port)


def test_an_error_quotes_certbot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], _seconds: float) -> commands.Outcome:
        asked.append(command)
        return commands.Outcome(1, "", "Timeout during connect (likely firewall problem)")

    monkeypatch.setattr(commands, "run", run)
    with pytest.raises(CertificateError, match=r"llm\.example\.com") as caught:
        ORDER.fill(tmp_path)
    assert "likely firewall problem" in str(caught.value) and acme.LOG in str(caught.value)
    assert asked[0][:2] == ["certbot", "certonly"] and asked[0][-4:] == [
        "-d",
        "gw.example.com",
        "-d",
        "llm.example.com",
    ]
    assert "/usr/local/sbin/inference-gateway-certificate update" in asked[0]
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(0))
    ORDER.fill(tmp_path)


def test_a_valid_certificate_of_another_authority_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """certbot keeps a valid certificate with the same names, unless the command has --force-renewal."""
    etc = filled(tmp_path, "https://old.invalid/directory")
    conf = etc / f"renewal/{acme.NAME}.conf"

    def run(command: list[str], _seconds: float) -> commands.Outcome:
        if "--force-renewal" in command:
            conf.write_text(f"[renewalparams]\nserver = {command[command.index('--server') + 1]}\n")
        return commands.Outcome(0)

    with monkeypatch.context() as patched:
        patched.setattr(commands, "run", run)
        ORDER.fill(etc)
    assert ORDER.is_filled(etc)
    # For other names of the same authority, certbot itself asks for a new certificate.
    assert "--force-renewal" not in ORDER.command(etc) and "--keep-until-expiring" in ORDER.command(etc)


def test_an_error_is_raised_if_certbot_keeps_the_certificate_of_another_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = filled(tmp_path, "https://old.invalid/directory")
    monkeypatch.setattr(commands, "run", lambda *_given: commands.Outcome(0))
    with pytest.raises(CertificateError, match=r"gateway_acme_server: 'https://acme\.invalid/directory'") as caught:
        ORDER.fill(etc)
    assert "is still that of https://old.invalid/directory" in str(caught.value)
