# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services and files that a removal takes from a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import removal
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.names import CONFIG, HEADER


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name, path in (("DIRECTORY", "haproxy"), ("FLOATING", "keepalived.conf"), ("STATE", "gateway.json")):
        monkeypatch.setattr(removal, name, tmp_path / path)
    (tmp_path / "haproxy").mkdir()
    return tmp_path


def test_files_of_earlier_runs_and_links_to_certificates_are_removed(root: Path) -> None:
    (root / "gateway.json").write_text('{"schema": 1, "files": ["haproxy.cfg", "old.acl"]}')
    (root / "haproxy/tls.pem").symlink_to("/etc/ssl/chain.pem")
    holder, haproxy = removal.everything()
    assert [holder] == list(removal.holder()) and holder.services == [removal.KEEPALIVED]
    assert list(haproxy.configs) == [root / "haproxy" / CONFIG]
    assert {root / "haproxy/old.acl", root / "haproxy/tls.pem", root / "gateway.json"} <= set(haproxy.others)
    assert root / "haproxy" / CONFIG not in haproxy.others


def test_whether_a_gateway_serves_tls_is_read_from_its_configuration(root: Path) -> None:
    path = root / "haproxy" / CONFIG
    assert removal.serves() == ""
    for text, serves in (("bind :8000", "plain"), ("bind :8000 ssl crt tls.pem alpn h2", "tls")):
        path.write_text(f"{HEADER}\n{text}\n")
        assert removal.serves() == serves
    path.write_text("bind :8000 ssl crt tls.pem\n")
    assert removal.serves() == ""


def test_the_floating_address_is_read_from_the_machine(root: Path) -> None:
    assert removal.floating_address() == ""
    removal.FLOATING.write_text(f"{HEADER}\nvirtual_ipaddress {{\n    192.0.2.10/24\n}}\n")
    assert removal.floating_address() == "192.0.2.10/24"
