# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads signatures of kernel modules, and computes DKMS's files of a key. Private to the collection."""

from __future__ import annotations

import re
from dataclasses import dataclass

OWN_KEY = "/etc/dkms/inference-mok.key"
OWN_CERTIFICATE = "/etc/dkms/inference-mok.der"
OWN_CONFIGURATION = "/etc/dkms/framework.conf.d/inference-signing.conf"
"""Files of a site's own key. Source of the directory: read_framework_conf of DKMS 3.0.10 and 3.2.2."""

CONFIGURATION_TEXT = f"""\
# Managed by Ansible: baremetal.inference.dkms_signing
mok_signing_key={OWN_KEY}
mok_certificate={OWN_CERTIFICATE}
"""
"""Names a module that no longer exists: with another text, every node with a site's key would get a new file without
need."""

TOKEN = "pkcs11:"
"""Prefix of the name of a key in a hardware token, which is not a file."""

FIELD = re.compile(r"^(signer|sig_key|sig_id):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Signature:
    """The signature of a module."""

    signer: str
    """The name in the certificate. All keys of DKMS have the same name."""
    key: str
    """The serial number of the certificate, as from `certificates.serial`; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.signer or 'an unnamed key'} ({self.key or 'no number'})"


def signature(modinfo: str) -> Signature | None:
    """The signature of a module in the output of ``modinfo``; None without a signature or a module."""
    fields = dict(FIELD.findall(modinfo))
    if not fields:
        return None
    return Signature(fields.get("signer", ""), fields.get("sig_key", "").replace(":", "").upper())


def own_files(key: str, certificate: bytes) -> dict[str, tuple[str | bytes | None, int]]:
    """The files with which DKMS signs with a site's own key, and their modes. Without a key, the files must not exist.

    `key` is in PEM, `certificate` in DER, the only form that shim accepts.
    """
    if not key:
        return dict.fromkeys((OWN_CONFIGURATION, OWN_KEY, OWN_CERTIFICATE), (None, 0))
    # The configuration last, because DKMS creates its own key if the named key is missing.
    return {
        OWN_KEY: (key.strip() + "\n", 0o600),
        OWN_CERTIFICATE: (certificate, 0o644),
        OWN_CONFIGURATION: (CONFIGURATION_TEXT, 0o644),
    }


def openssl_request(key: str, certificate: str) -> list[str]:
    """The command that creates a new key as DKMS does. Source: prepare_signing of /usr/sbin/dkms 3.0.10, and
    prepare_mok of 3.2.2, which adds the purpose of the key."""
    form = ["-x509", "-nodes", "-batch", "-days", "36500", "-newkey", "rsa:2048", "-outform", "DER"]
    use = ["-subj", "/CN=DKMS module signing key", "-addext", "extendedKeyUsage=codeSigning"]
    return ["openssl", "req", "-new", *form, *use, "-keyout", key, "-out", certificate]
