# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's own CA with the real openssl: what it signs, for whom, and what it keeps."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import certificates
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.authority import (
    RENEW_DAYS,
    ROOT_BEGIN,
    Authority,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.certificates import CertificateError

NAMES = ["192.0.2.1", "2001:db8::1", "gpu_1", "gw1.example.com"]
OTHERS = ["192.0.2.2"]
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two gateways: `lead` has signed for itself and for `other`. Tests work on copies."""
    root = tmp_path_factory.mktemp("authorities")
    lead, other = Authority(root / "lead"), Authority(root / "other")
    lead.make_root("gw1", NOW)
    lead.install(lead.sign(lead.request(), "gw1", NAMES))
    lead.renew(NAMES, NOW)
    other.install(lead.sign(other.request(), "gw2", OTHERS))
    other.renew(OTHERS, NOW)
    return root


@pytest.fixture
def lead(made: Path, tmp_path: Path) -> Authority:
    """The gateway with the root."""
    return Authority(shutil.copytree(made / "lead", tmp_path / "lead"))


@pytest.fixture
def other(made: Path, tmp_path: Path) -> Authority:
    """Another gateway, for which the lead has signed once."""
    return Authority(shutil.copytree(made / "other", tmp_path / "other"))


def verified(root: Path, own: Authority) -> str:
    """The output of openssl about a gateway's certificate, by the strict rules that Python 3.13 applies."""
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", str(root)]
    command += ["-untrusted", str(own.issuer), str(own.served)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_clients_that_trust_the_root_trust_each_gateway(lead: Authority, other: Authority) -> None:
    for own, names in ((lead, NAMES), (other, OTHERS)):
        assert verified(lead.root, own).endswith(": OK\n")
        assert set(certificates.read(own.served).names) == set(names)
        # HAProxy and Python load the pair from one file.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(own.served)
    assert lead.fingerprint() == other.fingerprint() != ""


def test_keys_are_for_root_alone_and_stay_on_their_gateway(lead: Authority, other: Authority) -> None:
    assert lead.is_lead() and not other.is_lead()
    for own in (lead, other):
        assert own.directory.stat().st_mode & 0o777 == 0o700
        for path in own.directory.rglob("*"):
            assert path.is_dir() or "PRIVATE" not in path.read_text() or path.stat().st_mode & 0o777 == 0o600, path
        assert not list(own.directory.glob(".work-*"))
    assert "PRIVATE" not in other.request() + lead.sign(other.request(), "gw2", OTHERS)


def test_an_issuer_signs_for_its_own_names_alone(lead: Authority, other: Authority) -> None:
    other.renew(["bank.example.com"], NOW)
    assert "permitted subtree violation" in verified(lead.root, other)
    other.renew(["192.0.2.9"], NOW)
    assert "permitted subtree violation" in verified(lead.root, other)


def test_a_certificate_is_renewed_before_its_end_and_for_other_names(lead: Authority) -> None:
    assert not lead.needs_leaf(NAMES, NOW) and not lead.needs_issuer(reversed(NAMES))
    soon = certificates.read(lead.served).end - timedelta(days=RENEW_DAYS) + timedelta(hours=1)
    assert lead.needs_leaf(NAMES, soon)
    assert lead.needs_leaf(OTHERS, NOW) and lead.needs_issuer(OTHERS)
    before = certificates.read(lead.served).fingerprint
    lead.renew(NAMES, NOW)
    assert certificates.read(lead.served).fingerprint != before
    # A client whose clock is minutes behind accepts the certificate.
    assert certificates.read(lead.served).begin < NOW - timedelta(minutes=30)


def test_a_certificate_ends_with_its_root_at_the_latest(lead: Authority) -> None:
    root = certificates.read(lead.root)
    lead.renew(NAMES, root.end - timedelta(days=3))
    assert certificates.read(lead.served).end == certificates.read(lead.issuer).end == root.end


def test_a_certificate_that_ends_with_its_root_is_not_renewed_again_and_again(lead: Authority) -> None:
    """A further certificate would end at the same time as the root."""
    end = certificates.read(lead.root).end
    lead.renew(NAMES, end - timedelta(days=100))
    late = end - timedelta(days=20)
    assert lead.needs_leaf(NAMES, late)
    lead.renew(NAMES, late)
    assert not lead.needs_leaf(NAMES, late) and not lead.needs_leaf(NAMES, end - timedelta(hours=1))
    assert lead.needs_leaf(OTHERS, late)
    lead.issuer.unlink()
    assert lead.needs_leaf(NAMES, late)


def test_a_clock_that_was_ahead_leaves_no_certificate_of_the_future(tmp_path: Path) -> None:
    """Root and issuer are valid at once. The gateway's certificate is renewed as soon as the clock is right."""
    own, ahead = Authority(tmp_path / "ahead"), NOW + timedelta(days=400)
    own.make_root("gw1", ahead)
    own.install(own.sign(own.request(), "gw1", NAMES))
    own.renew(NAMES, ahead)
    assert certificates.read(own.root).begin == certificates.read(own.issuer).begin == ROOT_BEGIN < NOW
    assert own.needs_leaf(NAMES, NOW) and not own.needs_leaf(NAMES, ahead)
    own.renew(NAMES, NOW)
    assert not own.needs_leaf(NAMES, NOW) and verified(own.root, own).endswith(": OK\n")


def test_the_root_is_made_once(lead: Authority) -> None:
    before = lead.fingerprint()
    lead.make_root("gw1", NOW)
    assert lead.fingerprint() == before


def test_an_incomplete_answer_of_the_lead_is_refused(lead: Authority, tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="1 certificates came from the lead"):
        Authority(tmp_path / "third").install(lead.root.read_text())
    assert Authority(tmp_path / "third").fingerprint() == ""
