# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifies the signatures of images that cosign has made with a key. Private to the collection.

Debian 12 does not have cosign, and skopeo and podman verify only while they copy the whole image. openssl is on every
node that trusts certificates. Source: the cosign repository, specs/SIGNATURE_SPEC.md and specs/BUNDLE_SPEC.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import commands, files
from . import image_registry
from .image_registry import Access, Image, Registry, RegistryError

SECONDS = 20
"""Seconds for each call of openssl, which takes milliseconds."""

MOST = 100
"""The most referrers of an image, and the most signatures of a manifest, that are read: an image registry could list
any number."""

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
SIMPLE_SIGNATURE = "dev.cosignproject.cosign/signature"
BUNDLE = "application/vnd.dev.sigstore.bundle"
BUNDLE_STATEMENT, BUNDLE_PREDICATE = "application/vnd.in-toto+json", "https://sigstore.dev/cosign/sign/v1"
ARTIFACTS = (BUNDLE, "application/vnd.dev.cosign.artifact.sig.", "application/vnd.oci.empty.")
"""Beginnings of the types of referrers that can have a signature: cosign 3 and cosign 2 --registry-referrers-mode.

Where cosign itself writes the list of referrers, it gives its bundles the third type.
"""

ED25519 = bytes.fromhex("302a300506032b6570032100")
"""The beginning of a public key of this kind in DER, which openssl verifies by another command."""

NO_SIGNATURE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What a signature in an unknown form raises."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")


class SignatureError(Exception):
    """An image must not be used, or a key cannot be used. The message says what to do."""


@dataclass(frozen=True)
class Key:
    """A public key of the site."""

    entry: int
    """The number of its entry in engine_image_keys, from 1."""
    pem: str
    fingerprint: str
    """SHA-256 of the key in DER, in hexadecimal digits."""
    ed25519: bool

    @property
    def words(self) -> str:
        """The key in a message."""
        return f"entry {self.entry} (SHA-256 {self.fingerprint[:16]}…)"


@dataclass(frozen=True)
class Signature:
    """A signature, with what it signs."""

    signed: bytes
    value: bytes
    digest: str
    """The digest of the image that was signed."""


def entries(declared: object) -> list[dict[str, str]]:
    """The entries of engine_image_keys, each with `prefix` and `key`. Raises SignatureError for any other form.

    The message does not have a value: a key may be a private one.
    """
    form = "engine_image_keys must be a list of mappings with key and prefix; "
    if not isinstance(declared, list):
        raise SignatureError(f"{form}it is {_kind(declared)}.")
    for number, one in enumerate(declared, 1):
        if not isinstance(one, dict):
            raise SignatureError(f"{form}entry {number} is {_kind(one)}.")
        if unknown := sorted(str(name) for name in one if name not in ("key", "prefix")):
            raise SignatureError(f"{form}entry {number} also has {', '.join(unknown)}.")
    return [{name: str(one.get(name) or "") for name in ("prefix", "key")} for one in declared]


def _kind(value: object) -> str:
    """What a value is, in a message."""
    kinds = {str: "a string", list: "a list", dict: "a mapping", type(None): "empty"}
    return kinds.get(type(value), f"of the type {type(value).__name__}")


def names(entries: Sequence[Mapping[str, str]], image: str) -> list[tuple[int, str]]:
    """Number, from 1, and key of each entry of engine_image_keys whose prefix names an image."""
    name = image_registry.parse(image).name
    return [(number, one["key"]) for number, one in enumerate(entries, 1) if _covers(one["prefix"], name)]


def _covers(prefix: str, name: str) -> bool:
    """Whether a prefix is a name, or the part of a name before a slash. The empty prefix covers each name.

    Names of Docker Hub's own images may lack their "library/".
    """
    if not prefix.strip("/"):
        return True
    parts = "/".join(image_registry.located(f"{prefix.rstrip('/')}/")).rstrip("/")
    library = f"{image_registry.HUB}/library/"
    spelt = {name, f"{image_registry.HUB}/{name.removeprefix(library)}" if name.startswith(library) else name}
    return any(one == parts or one.startswith(f"{parts}/") for one in spelt)


def prefix_problems(entries: Sequence[Mapping[str, str]]) -> list[str]:
    """Prefixes that name no image: a text for each."""
    return [
        f"engine_image_keys: the prefix of entry {number} is '{prefix}'. It must be the beginning of an image's name "
        "without scheme, tag and digest, such as registry.example.com or registry.example.com/inference. Leave it out "
        "for all engine images"
        for number, prefix in ((number, one["prefix"]) for number, one in enumerate(entries, 1))
        if prefix and (not _PREFIX.fullmatch(prefix) or "//" in prefix or ":" in prefix.partition("/")[2])
    ]


def verify_all(
    images: Iterable[str], declared: object, access: Access, record: Path, *, keep: bool
) -> dict[str, Key | None]:
    """Verify images as `verify` does. Returns what `verify` returns, by image. `declared` is engine_image_keys.

    Raises SignatureError with the messages of all images that must not be used, and OSError.
    """
    found: dict[str, Key | None] = {}
    problems: list[str] = []
    listed = entries(declared)
    for image in images:
        try:
            found[image] = verify(image, listed, access, record, keep=keep)
        except SignatureError as error:
            problems.append(str(error))
    if problems:
        # A mistake in an entry is found at each image.
        raise SignatureError("\n".join(dict.fromkeys(problems)))
    return found


def verify(image: str, entries: Sequence[Mapping[str, str]], access: Access, record: Path, *, keep: bool) -> Key | None:
    """Verify that a key of the site has signed an image. Returns this key.

    None if no entry of engine_image_keys names the image. `record` has the digests that earlier calls verified, with
    the keys. For such a digest and key, the image registry is not asked again: a digest always names the same image.
    `keep` adds to the record if the record's directory exists.
    Raises SignatureError, and OSError where the record or a temporary file cannot be written.
    """
    if problems := prefix_problems(entries):
        raise SignatureError("\n".join(problems))
    named = names(entries, image)
    if not named:
        return None
    parsed = image_registry.parse(image)
    if not _DIGEST.fullmatch(parsed.digest):
        raise SignatureError(f"The image {image} must be named by its digest: a signature is for a digest.")
    with tempfile.TemporaryDirectory(prefix="inference-signature-") as directory:
        work = Path(directory)
        keys = [_key(number, text, work) for number, text in named]
        verified = _recorded(record)
        known = verified.get(parsed.digest, [])
        key = next((one for one in keys if one.fingerprint in known), None)
        if key is None:
            key = _signer(image, parsed, keys, access, work)
            if keep and record.parent.is_dir():
                files.write_json(record, {**verified, parsed.digest: [*known, key.fingerprint]})
    return key


def _recorded(record: Path) -> dict[str, list[str]]:
    """The fingerprints of keys by verified digest. A record that is damaged or cannot be read counts as none."""
    with suppress(OSError, ValueError):
        found = files.read_json(record, {})
        if isinstance(found, dict):
            return {digest: keys for digest, keys in found.items() if isinstance(keys, list)}
    return {}


def _key(entry: int, text: str, work: Path) -> Key:
    """Read a public key. Raises SignatureError, whose message does not have the key: the key may be a private one."""
    if "PRIVATE KEY" in text:
        raise SignatureError(
            f"engine_image_keys: the key of entry {entry} is a private key. Use its public key. Make a new key pair if "
            "others could read this one."
        )
    path = work / "given.pem"
    path.write_text(text)
    shown = commands.run(["openssl", "pkey", "-pubin", "-pubout", "-in", str(path)], SECONDS)
    if shown.failure:
        raise SignatureError(f"Signatures cannot be verified: {shown.message}. Install the package openssl.")
    if shown.code != 0:
        raise SignatureError(
            f"engine_image_keys: the key of entry {entry} must be a public key in PEM, or the absolute path of one on "
            "the controller."
        )
    der = base64.b64decode("".join(line for line in shown.stdout.split("\n") if not line.startswith("-----")))
    return Key(entry, shown.stdout, hashlib.sha256(der).hexdigest(), der.startswith(ED25519))


def _signer(image: str, parsed: Image, keys: Sequence[Key], access: Access, work: Path) -> Key:
    """The key that has signed an image. Raises SignatureError."""
    strange, moved = 0, set()
    try:
        for signature in signatures(Registry(parsed, access), parsed.digest):
            key = next((one for one in keys if signed_by(one, signature, work)), None)
            if key and signature.digest == parsed.digest:
                return key
            if key:
                moved.add(f"{key.words} has signed {signature.digest}")
            else:
                strange += 1
    except RegistryError as error:
        raise SignatureError(
            f"The signature of the image {image} cannot be verified: {error}\nengine_image_keys asks for a signature."
        ) from error
    allowed = ", ".join(one.words for one in keys)
    if moved:
        found, advice = (
            f"a signature of another image: {', '.join(sorted(moved))}",
            "Find out who copied the signature of that image before you use this image.",
        )
    elif strange:
        found, advice = (
            f"{strange} of other keys",
            "Sign the image with one of these keys, or add the signer's public key to engine_image_keys.",
        )
    else:
        found, advice = (
            f"none at {parsed.name}",
            "Sign exactly this digest (cosign sign --key cosign.key IMAGE@DIGEST), or correct the inventory.",
        )
    raise SignatureError(
        f"The image {image} must have a signature by a key of engine_image_keys: {allowed}. Found: {found}.\n{advice}"
    )


def signatures(registry: Registry, digest: str) -> Iterator[Signature]:
    """The signatures of an image in its repository. Raises RegistryError."""
    yield from _of_manifest(registry, registry.manifest(f"{digest.replace(':', '-')}.sig"))
    for referrer in registry.referrers()[:MOST]:
        kind, where = str(referrer.get("artifactType", "")), str(referrer.get("digest"))
        if kind.startswith(ARTIFACTS) and _DIGEST.fullmatch(where):
            yield from _of_manifest(registry, registry.manifest(where))


def _of_manifest(registry: Registry, manifest: Mapping[str, Any] | None) -> Iterator[Signature]:
    layers = (manifest or {}).get("layers")
    for layer in layers[:MOST] if isinstance(layers, list) else []:
        if not isinstance(layer, dict) or not _DIGEST.fullmatch(str(layer.get("digest"))):
            continue
        kind = str(layer.get("mediaType", ""))
        if kind != SIMPLE and not kind.startswith(BUNDLE):
            continue
        content = registry.blob(layer["digest"])
        # A signature in an unknown form counts as none.
        with suppress(*NO_SIGNATURE):
            if content is not None:
                yield _simple(content, layer["annotations"][SIMPLE_SIGNATURE]) if kind == SIMPLE else _bundled(content)


def _simple(payload: bytes, signature: str) -> Signature:
    """A signature of cosign 1 and 2. Raises NO_SIGNATURE."""
    critical = json.loads(payload)["critical"]
    if critical["type"] != "cosign container image signature":
        raise ValueError("no signature of an image")
    return Signature(payload, _decoded(signature), str(critical["image"]["docker-manifest-digest"]))


def _bundled(bundle: bytes) -> Signature:
    """A signature of cosign 3. Raises NO_SIGNATURE."""
    envelope = json.loads(bundle)["dsseEnvelope"]
    kind, payload = envelope["payloadType"], _decoded(envelope["payload"])
    # The encoding that is signed, of the protocol DSSE.
    signed = b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(payload), payload)
    statement = json.loads(payload)
    # Other statements about the image, such as a list of its packages, are no signature of the image.
    if (kind, statement["predicateType"]) != (BUNDLE_STATEMENT, BUNDLE_PREDICATE):
        raise ValueError("no signature of an image")
    digest = f"sha256:{statement['subject'][0]['digest']['sha256']}"
    return Signature(signed, _decoded(envelope["signatures"][0]["sig"]), digest)


def _decoded(text: str) -> bytes:
    """Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def signed_by(key: Key, signature: Signature, work: Path) -> bool:
    """Whether a key has made a signature."""
    paths = {"key": key.pem.encode(), "signed": signature.signed, "signature": signature.value}
    for name, content in paths.items():
        (work / name).write_bytes(content)
    at = {name: str(work / name) for name in paths}
    command = ["dgst", "-sha256", "-verify", at["key"], "-signature", at["signature"], at["signed"]]
    if key.ed25519:
        command = ["pkeyutl", "-verify", "-pubin", "-inkey", at["key"], "-rawin"]
        command += ["-in", at["signed"], "-sigfile", at["signature"]]
    return commands.run(["openssl", *command], SECONDS).code == 0
