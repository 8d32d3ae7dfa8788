# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has the driver's modules signed with a key that the firmware knows. Private to the collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core import files
from ...core.commands import Outcome
from . import certificates, dkms, enrolment, gate, secure_boot, signing
from .facts import Reader


class SigningError(Exception):
    """The modules are not signed as they should be; the text is for the operator."""


@dataclass(frozen=True)
class Wish:
    """What was asked for: a site's own key and its certificate in PEM, or none, for one that is made on the node."""

    key: str = ""
    certificate: str = ""
    password: str = ""
    """With which the enrolment is confirmed; empty to ask for none."""

    def problems(self) -> list[str]:
        """All that is wrong with it."""
        found = []
        if bool(self.key) != bool(self.certificate):
            found.append("a key needs its certificate, and a certificate its key: give both, or none")
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
    """One run: look, and (outside check mode) act. A build gets `build_timeout` seconds."""

    reader: Reader
    run: enrolment.Run
    wish: Wish
    build_timeout: float
    check_mode: bool = False
    actions: list[str] = field(default_factory=list)
    """What was done, or would be in check mode, one sentence each."""

    def configure(self) -> None:
        """Give DKMS the site's own key, or take it away. Raises OSError."""
        for name, (content, mode) in signing.own_files(self.wish.key, self.wish.der).items():
            path = self.path(name)
            same = not path.exists() if content is None else files.same(path, content, mode)
            if not same:
                self.actions.append(f"{'removed' if content is None else 'wrote'} {name}")
                if not self.check_mode:
                    files.write(path, content, mode)

    def make_key(self) -> None:
        """Have a key to sign with, as DKMS makes one at its first build. Raises SigningError."""
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
        """Build anew what is not signed with the key: DKMS signs at the end of a build, and at no other time.

        Raises SigningError where a module is still not signed with it after that.
        """
        serial = self.serial()
        for module in self.foreign(serial):
            name = f"{module.name}/{module.version}"
            self.actions.append(f"signed {name} for {module.kernel}")
            if self.check_mode:
                continue
            # The old module stays where the kernel finds it until the new one is there.
            for verb in ("build", "install"):
                self.do(["dkms", verb, name, "-k", str(module.kernel), "--force"], self.build_timeout)
        remaining = [] if self.check_mode else self.foreign(serial)
        if remaining:
            names = ", ".join(f"{one.name}/{one.version} for {one.kernel}" for one in remaining)
            raise SigningError(
                f"{names}: still not signed with {self.certificate}. DKMS says in make.log below /var/lib/dkms why; "
                "sign-file of the package linux-kbuild must be there"
            )

    def enrol(self) -> str | None:
        """Ask the firmware to let the key in, where a password is there to do so.

        Returns how it stands with the key then: enrolled, pending, missing, or None where that is not known. Raises
        EnrolmentError.
        """
        if not self.reader.boot_state().enabled:
            return None
        there = self.reader.serial(self.certificate)
        # In check mode the certificate may still be to come.
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
        """That of DKMS, as it is after `configure`, which in check mode has removed nothing."""
        text = self.reader.dkms_configuration()
        return text if self.wish.key else text.replace(signing.CONFIGURATION_TEXT, "")

    def serial(self) -> str | None:
        """The number of the key that signs modules; None where the key is only made in this run."""
        return certificates.serial(self.wish.der) if self.wish.der else self.reader.serial(self.certificate)

    def foreign(self, serial: str | None) -> list[dkms.Module]:
        """The installed modules of the driver that are not signed with the key."""
        installed = [one for one in self.reader.dkms_modules() if one.is_nvidia_driver and one.state in gate.READY]
        signed = {one: self.reader.signature(str(one.kernel), one) for one in installed}
        return [one for one, by in signed.items() if by is None or by.key != serial]

    def ask_shim(self, command: Sequence[str], timeout: float, *, stdin: str = "") -> Outcome:
        """Runs mokutil on the firmware that is looked at."""
        return self.run(self.reader.mokutil(*command[1:]), timeout, stdin=stdin)

    def do(self, command: list[str], timeout: float) -> None:
        """Run a program. Raises SigningError with its last words."""
        outcome = self.run(command, timeout)
        if outcome.code != 0:
            words = outcome.message or "\n".join(f"{outcome.stdout}\n{outcome.stderr}".strip().splitlines()[-5:])
            raise SigningError(f"{' '.join(command)} failed ({outcome.code}): {words}")

    def path(self, name: str) -> Path:
        """A file below the node's root."""
        return self.reader.root / name.lstrip("/")
