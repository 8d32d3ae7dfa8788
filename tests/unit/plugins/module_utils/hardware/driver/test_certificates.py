# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers of certificates, and errors of unusable keys and certificates."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import certificates
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.certificates import CertificateError
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.driver.pairs import SERIAL, Pair


def test_the_serial_number_is_in_hexadecimal(pair: Pair, other_pair: Pair) -> None:
    assert certificates.serial(pair.der) == f"{SERIAL:X}"
    assert certificates.serial(other_pair.der) == "07"


def test_a_certificate_in_pem_is_converted_to_der(pair: Pair) -> None:
    assert certificates.to_der(pair.certificate) == pair.der
    assert certificates.to_der(f"subject=CN = Site key\n{pair.certificate}\n") == pair.der


def test_a_text_without_exactly_one_certificate_is_an_error(pair: Pair, other_pair: Pair) -> None:
    damaged = pair.certificate.replace(pair.certificate.splitlines()[2], "")
    for text, words in (
        ("", "no certificate in PEM"),
        (pair.key, "no certificate in PEM"),
        (pair.certificate + other_pair.certificate, "2 certificates"),
        (damaged, "not a certificate in DER"),
        (pair.certificate.replace("-----END", "----"), "damaged"),
    ):
        with pytest.raises(CertificateError, match=words):
            certificates.to_der(text)


@given(st.binary())
def test_any_bytes_are_an_error_or_have_a_serial_number(data: bytes) -> None:
    with suppress(CertificateError):
        assert certificates.serial(data)


def test_a_certificate_that_is_cut_off_is_an_error(pair: Pair) -> None:
    for length in range(len(pair.der)):
        with pytest.raises(CertificateError):
            certificates.serial(pair.der[:length])


def test_a_key_is_accepted_only_without_a_passphrase_and_with_its_own_certificate(pair: Pair, other_pair: Pair) -> None:
    certificates.check_pair(pair.key, pair.certificate)
    for key, words in (
        (other_pair.key, "does not match the key"),
        (pair.protected, "passphrase"),
        ("no key", "or not in PEM"),
    ):
        with pytest.raises(CertificateError, match=words):
            certificates.check_pair(key, pair.certificate)


def test_the_error_of_a_damaged_certificate_is_about_the_certificate(pair: Pair) -> None:
    """Damages each byte after the serial number in turn. Some pairs are accepted: the signature is not checked."""
    found = set()
    for place in range(pair.der.index(SERIAL.to_bytes(4)) + 4, len(pair.der)):
        damaged = bytearray(pair.der)
        damaged[place] ^= 0x15
        try:
            certificates.check_pair(pair.key, ssl.DER_cert_to_PEM_cert(bytes(damaged)))
        except CertificateError as error:
            found.add(str(error).partition(":")[0])
    # Another byte in the certificate's key may make it a valid key that does not match.
    assert found - {"the certificate does not match the key"} == {"the certificate is damaged"}
