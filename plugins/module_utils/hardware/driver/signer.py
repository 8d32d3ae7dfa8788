# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs the driver's modules by DKMS, and asks the firmware to enrol the key. Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core import files
from ...core.commands import Outcome
from . import certificates, dkms, enrolment, kernel_check, secure_boot, signing
from .facts import Reader


class SigningError(Exception):
    """The modules could not be signed; the text is for the operator."""


@dataclass(frozen=True)
class Wish:
    """A site's own key and certificate in PEM; empty for a key that is created on the node."""

    key: str = ""
    certificate: str = ""
    password: str = ""
    """Password that confirms the enrolment; empty for no request."""

    def problems(self) -> list[str]:
        """All mistakes in key, certificate and password."""
        found = []
        if bool(self.key) != bool(self.certificate):
            found.append("only one of key and certificate is set: set both, or none")
        elif self.key:
            try:
                certificates.to_der(self.certificate)
                certificates.check_pair(self.key, self.certificate)
            except certificates.CertificateError as error:
                found.append(str(error))
        problem = enrolment.password_problem(self.password) if self.password else None
        return [*found, problem] if problem else found

    @property
    def der(self) -> bytes:
        return certificates.to_der(self.certificate) if self.certificate else b""


@dataclass
class Signer:
    """One run, which changes nothing in check mode. A build gets `build_timeout` seconds."""

    reader: Reader
    run: enrolment.Run
    wish: Wish
    build_timeout: float
    check_mode: bool = False
    actions: list[str] = field(default_factory=list)
    """Changes that were made, or would be made outside check mode, one sentence each."""

    def configure(self) -> None:
        """Write the site's own key for DKMS, or remove it. Raises OSError."""
        for name, (content, mode) in signing.own_files(self.wish.key, self.wish.der).items():
            path = self.path(name)
            same = not path.exists() if content is None else files.same(path, content, mode)
            if not same:
                self.actions.append(f"{'removed' if content is None else 'wrote'} {name}")
                if not self.check_mode:
                    files.write(path, content, mode)

    def make_key(self) -> None:
        """Create a missing key, as DKMS does at its first build. Raises SigningError."""
        key, certificate = secure_boot.signing_key(self.configuration), self.certificate
        if (
            self.wish.key
            or key.startswith(signing.TOKEN)
            or (self.path(key).exists() and self.path(certificate).exists())
        ):
            return
        self.actions.append(f"made the key {key}")
        if self.check_mode:
            return
        before = os.umask(0o077)
        try:
            self.do(signing.openssl_request(str(self.path(key)), str(self.path(certificate))), self.reader.timeout)
        finally:
            os.umask(before)

    def sign(self) -> None:
        """Rebuild the modules that lack the key's signature, because DKMS signs only at the end of a build.

        Raises SigningError if a module still lacks the signature afterwards.
        """
        serial = self.serial()
        for module in self.foreign(serial):
            name = f"{module.name}/{module.version}"
            self.actions.append(f"signed {name} for {module.kernel}")
            if self.check_mode:
                continue
            # The kernel finds the old module until the new one is installed.
            for verb in ("build", "install"):
                self.do(["dkms", verb, name, "-k", str(module.kernel), "--force"], self.build_timeout)
        remaining = [] if self.check_mode else self.foreign(serial)
        if remaining:
            names = ", ".join(f"{one.name}/{one.version} for {one.kernel}" for one in remaining)
            raise SigningError(
                f"{names}: still not signed with {self.certificate}. See make.log below /var/lib/dkms, and check that "
                "the package linux-kbuild with sign-file is installed"
            )

    def enrol(self) -> str | None:
        """Ask the firmware to enrol the key, if a password is set.

        Returns the state of the key afterwards: enrolled, pending or missing; None if unknown, or without Secure Boot.
        Raises EnrolmentError.
        """
        if not self.reader.boot_state().enabled:
            return None
        there = self.reader.serial(self.certificate)
        # In check mode the certificate may not be written yet.
        coming = self.check_mode and (there is None or there != self.serial())
        state = secure_boot.MISSING if coming else self.reader.enrolment(self.certificate)
        if state != secure_boot.MISSING or not self.wish.password:
            return state
        self.actions.append(f"asked for the enrolment of {self.certificate} at the next boot")
        if self.check_mode:
            return secure_boot.PENDING
        enrolment.request(self.ask_shim, self.certificate, self.wish.password, self.reader.timeout)
        return self.reader.enrolment(self.certificate)

    @property
    def certificate(self) -> str:
        if self.wish.certificate:
            return signing.OWN_CERTIFICATE
        return secure_boot.certificate(self.configuration)

    @property
    def configuration(self) -> str:
        """DKMS's configuration, without the site's own key if `configure` removes it, which check mode does not do."""
        text = self.reader.dkms_configuration()
        return text if self.wish.key else text.replace(signing.CONFIGURATION_TEXT, "")

    def serial(self) -> str | None:
        """The serial number of the key that signs modules; None without a readable certificate."""
        return certificates.serial(self.wish.der) if self.wish.der else self.reader.serial(self.certificate)

    def foreign(self, serial: str | None) -> list[dkms.Module]:
        """The installed modules of the driver without the key's signature."""
        installed = [
            one for one in self.reader.dkms_modules() if one.is_nvidia_driver and one.state in kernel_check.READY
        ]
        signed = {one: self.reader.signature(str(one.kernel), one) for one in installed}
        return [one for one, by in signed.items() if by is None or by.key != serial]

    def ask_shim(self, command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
        """Run mokutil with the firmware's variables of this machine."""
        return self.run(self.reader.mokutil(*command[1:]), timeout, stdin=stdin)

    def do(self, command: list[str], timeout: float) -> None:
        """Run a program. Raises SigningError with the end of its output."""
        outcome = self.run(command, timeout)
        if outcome.code != 0:
            words = outcome.message or "\n".join(f"{outcome.stdout}\n{outcome.stderr}".strip().splitlines()[-5:])
            raise SigningError(f"{' '.join(command)} failed ({outcome.code}): {words}")

    def path(self, name: str) -> Path:
        """A file below the node's root."""
        return self.reader.root / name.lstrip("/")
