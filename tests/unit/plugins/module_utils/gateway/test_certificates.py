# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from certificates and keys, and every mistake of a site's own pair."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import certificates
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.certificates import CertificateError

NOW = datetime.now(UTC) + timedelta(hours=12)


def pair(directory: Path, name: str, *words: str, names: str = "DNS:gw.example.com,DNS:*.api.example.com") -> Path:
    """A certificate `name.pem` with the key `name.key`."""
    command = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=gw"]
    more = ["-addext", f"subjectAltName={names}"] if names else []
    key, path = directory / f"{name}.key", directory / f"{name}.pem"
    files = ["-keyout", str(key), "-out", str(path)]
    subprocess.run(["openssl", *command, *(words or ["-nodes"]), *more, *files], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two pairs, and a key with a passphrase."""
    directory = tmp_path_factory.mktemp("pairs")
    pair(directory, "one")
    pair(directory, "two", names="")
    pair(directory, "secret", "-passout", "pass:word")
    (directory / "both.pem").write_text((directory / "one.key").read_text() + (directory / "one.pem").read_text())
    (directory / "none.pem").write_text("nothing")
    return directory


def found(made: Path, certificate: str, key: str, *names: str, now: datetime = NOW) -> list[str]:
    return certificates.problems(str(made / certificate), str(made / key) if key else "", names, now)


def test_a_sound_pair_has_no_mistake(made: Path) -> None:
    assert found(made, "one.pem", "one.key", "gw.example.com", "eu.api.example.com", "GW.example.com") == []
    assert found(made, "both.pem", "") == []
    known = certificates.read(made / "both.pem")
    assert known.names == ("gw.example.com", "*.api.example.com") and 1 < known.days_left(NOW) < 2
    shown = certificates.openssl("x509", "-noout", "-fingerprint", "-sha1", "-in", str(made / "one.pem"))
    assert (
        shown.strip().rpartition("=")[2].replace(":", "")
        == known.fingerprint
        == certificates.fingerprint(made / "one.pem")
    )
    # A certificate may have no names.
    assert certificates.read(made / "two.pem").names == ()


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        ("gone.pem", "one.key", ["gone.pem': there is no such file"]),
        ("gone.pem", "gone.key", ["gone.pem': there is no such file", "gone.key': there is no such file"]),
        ("none.pem", "", ["is no certificate in PEM"]),
        ("one.pem", "", ["has no private key in PEM: append the key, or set gateway_tls_key"]),
        ("one.pem", "two.key", ["does not belong to the certificate"]),
        ("one.pem", "none.pem", ["gateway_tls_key", "has no private key"]),
        ("secret.pem", "secret.key", ["has a passphrase"]),
    ],
)
def test_each_mistake_of_the_files_is_named(made: Path, certificate: str, key: str, words: list[str]) -> None:
    mistakes = "\n".join(found(made, certificate, key))
    assert all(word in mistakes for word in words) and "BEGIN" not in mistakes, mistakes


def test_all_mistakes_are_named_at_once(made: Path) -> None:
    lines = found(made, "one.pem", "two.key", "other.example.com", "a.b.api.example.com", now=NOW + timedelta(days=9))
    assert [next(word for word in ("ended on", "lacks", "belong") if word in line) for line in lines] == [
        "ended on",
        "lacks",
        "belong",
    ]
    assert "lacks other.example.com, a.b.api.example.com of gateway_tls_names" in lines[1]
    (early,) = found(made, "one.pem", "one.key", now=NOW - timedelta(days=9))
    assert "begins on" in early


def test_a_file_without_a_certificate_is_named(made: Path) -> None:
    (made / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for name in ("none.pem", "broken.pem"):
        with pytest.raises(CertificateError, match=rf"^{made}/{name} is no certificate in PEM"):
            certificates.read(made / name)
        (mistake, *_others) = found(made, name, "one.key")
        assert mistake.startswith(f"gateway_tls_certificate: {made}/{name} is no certificate in PEM")
        assert mistake.endswith(": install the certificate, or correct the path")


def test_a_key_that_everybody_can_read_is_found(made: Path) -> None:
    (made / "one.key").chmod(0o600)
    assert not certificates.open_to_all(made / "one.key") and not certificates.open_to_all(made / "gone")
    (made / "one.key").chmod(0o644)
    assert certificates.open_to_all(made / "one.key")


def test_a_refusal_of_openssl_is_an_error(made: Path) -> None:
    with pytest.raises(CertificateError, match="openssl x509"):
        certificates.openssl("x509", "-in", str(made / "none.pem"))
    with pytest.raises(CertificateError, match="notAfter"):
        certificates.date("nothing", "notAfter")
