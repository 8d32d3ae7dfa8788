# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a running HAProxy gets a certificate."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import certificates, handing_over
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.authority import Authority
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.runtime import RuntimeRefusal

NAMES = ["gw1"]


class HAProxy:
    """Answers as HAProxy 2.6 and 3.0 do."""

    def __init__(self, serves: str) -> None:
        self.serves = serves
        self.coming = ""
        self.calls: list[str] = []
        self.takes = True

    def __call__(self, command: str) -> str:
        self.calls.append(command)
        if command.startswith("show ssl cert"):
            return (
                f"Filename: tls.pem\nStatus: Used\nSHA1 FingerPrint: {self.serves}\nSubject: /CN=x"
                if self.serves
                else "Can't"
            )
        if command.startswith("set ssl cert tls.pem <<\n"):
            if not self.takes:
                return "Can't load the payload"
            self.coming = command.partition("\n")[2]
            return "Transaction created for certificate tls.pem!"
        if command.startswith("commit"):
            work = Path(self.coming_to)
            work.write_text(self.coming)
            self.serves = certificates.fingerprint(work)
            return "Committing tls.pem.\nSuccess!"
        return ""

    coming_to = ""


@pytest.fixture
def own(tmp_path: Path) -> Authority:
    found, now = Authority(tmp_path / "own"), datetime.now(UTC)
    found.make_root("gw1", now)
    found.install(found.sign(found.request(), "gw1", NAMES))
    found.renew(NAMES, now)
    return found


@pytest.fixture
def haproxy(tmp_path: Path) -> HAProxy:
    found = HAProxy("0" * 40)
    found.coming_to = str(tmp_path / "coming.pem")
    return found


def test_a_renewed_certificate_is_handed_over(own: Authority, haproxy: HAProxy) -> None:
    assert handing_over.differs(haproxy, own.served)
    handing_over.hand_over(haproxy, own.served, None)
    assert haproxy.serves == certificates.fingerprint(own.served) and not handing_over.differs(haproxy, own.served)
    # HAProxy gets certificate, issuer and key. An empty line would end the command.
    assert haproxy.coming.count("BEGIN CERTIFICATE") == 2 and haproxy.coming.count("PRIVATE KEY") == 2
    assert "\n\n" not in haproxy.coming.rstrip("\n")


def test_certificate_and_key_may_be_two_files(own: Authority, haproxy: HAProxy, tmp_path: Path) -> None:
    blocks = [found[0] for found in certificates.BLOCK.finditer(own.served.read_text())]
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text("\n".join(blocks[:2]))
    key.write_text(blocks[2])
    handing_over.hand_over(haproxy, chain, key)
    assert haproxy.coming.count("PRIVATE KEY") == 2


def test_a_certificate_that_haproxy_refuses_is_an_error_and_undone(own: Authority, haproxy: HAProxy) -> None:
    haproxy.takes = False
    with pytest.raises(RuntimeRefusal, match=r"Can't load the payload") as caught:
        handing_over.hand_over(haproxy, own.served, None)
    assert haproxy.calls[-1] == "abort ssl cert tls.pem" and "PRIVATE" not in str(caught.value)


def test_without_tls_or_without_an_answer_nothing_differs(own: Authority, haproxy: HAProxy) -> None:
    haproxy.serves = ""
    assert not handing_over.differs(haproxy, own.served)

    def silent(_command: str) -> str:
        raise ConnectionRefusedError

    assert handing_over.served(silent) == ""
