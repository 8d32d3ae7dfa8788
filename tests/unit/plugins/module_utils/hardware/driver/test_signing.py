# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures in the output of modinfo, and DKMS's files for a site's own key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import secure_boot, signing
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.signing import Signature

SIGNED = """\
version:        580.7.01
parm:           NVreg_Note:the signer: of this is not meant (string)
sig_id:         PKCS#7
signer:         DKMS module signing key
sig_key:        0A:7F:00:C3
sig_hashalgo:   sha512
signature:      30:82:01:73
\t\t0A:0B
"""


def test_a_signature_has_signer_and_key() -> None:
    assert signing.signature(SIGNED) == Signature("DKMS module signing key", "0A7F00C3")
    assert signing.signature("version:        580.7.01\n") is None
    assert signing.signature("modinfo: ERROR: Module nvidia not found.\n") is None


def test_a_signature_without_signer_and_key_has_empty_fields() -> None:
    assert signing.signature("sig_id:         PKCS#7\nsigner:         \nsig_key:        \n") == Signature("", "")


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    signing.signature(text)


def test_the_written_configuration_names_the_written_key_and_certificate() -> None:
    files = signing.own_files("KEY", b"DER")
    configuration, _mode = files[signing.OWN_CONFIGURATION]
    assert secure_boot.signing_key(str(configuration)) == signing.OWN_KEY
    assert secure_boot.certificate(str(configuration)) == signing.OWN_CERTIFICATE
    assert files[signing.OWN_KEY] == ("KEY\n", 0o600)
    # The configuration is written last and removed first: it never names a missing key.
    assert list(files)[-1] == signing.OWN_CONFIGURATION
    assert next(iter(signing.own_files("", b""))) == signing.OWN_CONFIGURATION
