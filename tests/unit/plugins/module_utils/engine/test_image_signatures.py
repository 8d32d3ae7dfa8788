# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures of images: real keys and signatures, and an image registry that answers what a test sets."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands
from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_signatures
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_registry import Access
from ansible_collections.baremetal.inference.plugins.module_utils.engine.image_signatures import SignatureError, names

from .image_server import ImageServer

sys.path.insert(0, str(Path(__file__).parents[5] / "molecule/shared"))

import signing
from signing import SigningKey

RECORDED = Path(__file__).parent / "data/cosign-2.5.0.json"
DIGEST, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SigningKey]:
    """Key pairs, by name."""
    kinds = {"ours": "EC", "next": "EC", "strange": "EC", "rsa": "RSA", "ed25519": "ED25519"}
    return {name: SigningKey(tmp_path_factory.mktemp(name), kind) for name, kind in kinds.items()}


@dataclass
class Site:
    """An image registry with an image, and the node that verifies the image."""

    server: ImageServer
    root: Path

    @property
    def image(self) -> str:
        return f"{self.server.name}/a/vllm@{DIGEST}"

    @property
    def record(self) -> Path:
        return self.root / "image-signatures.json"

    def tag(self, *layers: tuple[SigningKey, bytes]) -> None:
        """Put signatures at the tag of cosign 2."""
        for _key, content in layers:
            self.server.put(f"/v2/a/vllm/blobs/{signing.descriptor('', content)['digest']}", content)
        made = signing.manifest(*(signing.layer(key, content) for key, content in layers))
        self.server.put(f"/v2/a/vllm/manifests/{DIGEST.replace(':', '-')}.sig", made)

    def refer(self, content: bytes, artifact: str = signing.BUNDLE) -> None:
        """Put a file among the referrers, as cosign 3 does."""
        layer = signing.descriptor(signing.BUNDLE, content)
        manifest = signing.manifest(layer)
        reference = {**signing.descriptor(signing.MANIFEST, manifest), "artifactType": artifact}
        self.server.put(f"/v2/a/vllm/blobs/{layer['digest']}", content)
        self.server.put(f"/v2/a/vllm/manifests/{reference['digest']}", manifest)
        path = f"/v2/a/vllm/referrers/{DIGEST}"
        known = json.loads(self.server.answers[path][2])["manifests"] if path in self.server.answers else []
        self.server.put(path, json.dumps({"manifests": [*known, reference]}).encode())

    def verify(self, *given: SigningKey | str, keep: bool = True, **more: Any) -> int | None:
        """The number of the key that has signed the image."""
        entries = [{"prefix": "", "key": one if isinstance(one, str) else one.pem} for one in given]
        image = more.pop("image", self.image)
        access = Access(self.root / "none")
        found = image_signatures.verify(image, more.pop("entries", entries), access, self.record, keep=keep)
        return found.entry if found else None

    def refusal(self, *given: SigningKey | str, **more: Any) -> str:
        """Why the image is refused."""
        with pytest.raises(SignatureError) as refused:
            self.verify(*given, **more)
        return str(refused.value)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    server = ImageServer()
    yield Site(server, tmp_path)
    server.close()


@pytest.mark.parametrize("form", ["tag", "referrer", "bundle", "statement"])
def test_signatures_that_cosign_has_written_are_verified(site: Site, keys: dict[str, SigningKey], form: str) -> None:
    """The answers are recorded, with Debian's cosign 2.5.0 and docker-registry 2.8.

    `cosign sign` has written `tag` and, with --registry-referrers-mode oci-1-1, `referrer`. `cosign attest` with
    --new-bundle-format has written `bundle`, of the type of statement that cosign 3 signs, and `statement`, of another
    type: it is no signature.
    """
    recorded = json.loads(RECORDED.read_text())
    for path, content in recorded["answers"].items():
        site.server.put(path, content.encode())
    image = f"{site.server.name}/a/vllm@{recorded['images'][form]}"
    if form == "statement":
        assert "Found: none at" in site.refusal(recorded["key"], image=image)
        return
    assert site.verify(keys["ours"], recorded["key"], image=image) == 2
    site.record.unlink()
    assert "Found: 1 of other keys." in site.refusal(keys["ours"], image=image)


@pytest.mark.parametrize("name", ["ours", "rsa", "ed25519"])
def test_a_signature_of_cosign_2_is_verified(site: Site, keys: dict[str, SigningKey], name: str) -> None:
    site.tag((keys[name], signing.payload(DIGEST)))
    assert site.verify(keys[name]) == 1
    site.record.unlink()
    assert "Found: 1 of other keys." in site.refusal(keys["next"])


@pytest.mark.parametrize("name", ["ours", "rsa", "ed25519"])
def test_a_signature_of_cosign_3_is_verified(site: Site, keys: dict[str, SigningKey], name: str) -> None:
    site.refer(signing.bundle(keys[name], DIGEST))
    assert site.verify(keys[name]) == 1
    site.record.unlink()
    assert "Found: 1 of other keys." in site.refusal(keys["next"])


def test_a_signature_by_one_of_several_keys_is_enough(site: Site, keys: dict[str, SigningKey]) -> None:
    """While a site changes its key, images of the old and of the new key are used."""
    site.tag((keys["strange"], signing.payload(DIGEST)), (keys["next"], signing.payload(DIGEST)))
    assert site.verify(keys["ours"], keys["rsa"], keys["next"]) == 3
    site.refer(signing.bundle(keys["ours"], DIGEST))
    assert site.verify(keys["ours"]) == 1


def test_an_image_without_a_signature_is_refused(site: Site, keys: dict[str, SigningKey]) -> None:
    said = site.refusal(keys["ours"])
    assert f"The image {site.image} must have a signature by a key of engine_image_keys: entry 1 (SHA-256 " in said
    assert f"Found: none at {site.server.name}/a/vllm." in said and "cosign sign --key" in said
    assert not site.record.exists()


def test_a_signature_of_another_image_is_refused(site: Site, keys: dict[str, SigningKey]) -> None:
    """Anybody who can write to the image registry can copy a signature."""
    site.tag((keys["ours"], signing.payload(OTHER)))
    said = site.refusal(keys["next"], keys["ours"])
    assert "Found: a signature of another image: entry 2 (SHA-256 " in said and f"has signed {OTHER}" in said
    assert "Find out who copied the signature of that image before you use this image." in said
    site.refer(signing.bundle(keys["ours"], OTHER))
    assert "a signature of another image" in site.refusal(keys["ours"])


def test_a_changed_payload_is_refused(site: Site, keys: dict[str, SigningKey]) -> None:
    changed = signing.layer(keys["ours"], signing.payload(OTHER))
    content = signing.payload(DIGEST)
    site.server.put(f"/v2/a/vllm/blobs/{signing.descriptor('', content)['digest']}", content)
    layer = {**signing.descriptor(signing.SIMPLE, content), "annotations": changed["annotations"]}
    site.server.put(f"/v2/a/vllm/manifests/{DIGEST.replace(':', '-')}.sig", signing.manifest(layer))
    assert "Found: 1 of other keys." in site.refusal(keys["ours"])


def test_other_statements_of_the_same_key_are_no_signature(site: Site, keys: dict[str, SigningKey]) -> None:
    site.tag((keys["ours"], signing.payload(DIGEST, "atomic container signature")))
    site.refer(signing.bundle(keys["ours"], DIGEST, "https://spdx.dev/Document"))
    site.refer(signing.bundle(keys["ours"], DIGEST), "application/vnd.example.report")
    assert "Found: none at" in site.refusal(keys["ours"])


@pytest.mark.parametrize(
    "manifest",
    [
        b"{}",
        b'{"layers": 1}',
        b'{"layers": [1, {"digest": "odd"}, {"digest": "sha256:0"}]}',
        json.dumps({"layers": [{"mediaType": signing.SIMPLE, "digest": DIGEST}]}).encode(),
        json.dumps({"layers": [{"mediaType": signing.SIMPLE, "digest": OTHER, "annotations": {}}]}).encode(),
        json.dumps({"layers": [{"mediaType": signing.BUNDLE, "digest": DIGEST}]}).encode(),
        json.dumps({"layers": [{"mediaType": signing.BUNDLE, "digest": OTHER}]}).encode(),
    ],
)
def test_odd_answers_count_as_no_signature(site: Site, keys: dict[str, SigningKey], manifest: bytes) -> None:
    site.server.put(f"/v2/a/vllm/blobs/{DIGEST}", b'{"critical": [], "dsseEnvelope": {"payload": 1}}')
    site.server.put(f"/v2/a/vllm/manifests/{DIGEST.replace(':', '-')}.sig", manifest)
    assert "Found: none at" in site.refusal(keys["ours"])


def test_a_signature_with_too_many_levels_counts_as_no_signature(site: Site, keys: dict[str, SigningKey]) -> None:
    site.refer(b"[" * 100_000)
    assert "Found: none at" in site.refusal(keys["ours"])
    site.server.put(f"/v2/a/vllm/manifests/{DIGEST.replace(':', '-')}.sig", b"[" * 100_000)
    assert "must answer with a JSON object" in site.refusal(keys["ours"])


def test_all_images_that_must_not_be_used_are_named(site: Site, keys: dict[str, SigningKey]) -> None:
    site.tag((keys["ours"], signing.payload(DIGEST)))
    declared, access = [{"key": keys["ours"].pem}], Access(site.root / "none")
    unsigned, silent = (f"{site.server.name}/a/vllm@sha256:{digit * 64}" for digit in "23")
    site.server.put(f"/v2/a/vllm/manifests/sha256-{'3' * 64}.sig", b"", 503)
    with pytest.raises(SignatureError) as refused:
        image_signatures.verify_all([unsigned, site.image, silent], declared, access, site.record, keep=True)
    said = str(refused.value)
    assert f"The image {unsigned} must have a signature" in said and site.image not in said
    assert f"The signature of the image {silent} cannot be verified" in said
    found = image_signatures.verify_all([site.image], declared, access, site.record, keep=True)
    assert {image: key.entry for image, key in found.items() if key} == {site.image: 1}
    with pytest.raises(SignatureError) as refused:
        image_signatures.verify_all([unsigned, silent], [{"key": "none"}], access, site.record, keep=True)
    assert str(refused.value).count("the key of entry 1 must be a public key") == 1, "a mistake in an entry, once"


def test_an_error_of_the_image_registry_is_a_refusal(site: Site, keys: dict[str, SigningKey]) -> None:
    site.server.put(f"/v2/a/vllm/manifests/{DIGEST.replace(':', '-')}.sig", b"", 503)
    said = site.refusal(keys["ours"])
    assert f"The signature of the image {site.image} cannot be verified: {site.server.name} refuses a/vllm" in said
    assert "HTTP 503" in said and said.endswith("engine_image_keys asks for a signature.")


def test_a_recorded_digest_is_not_asked_again_while_its_key_is_listed(site: Site, keys: dict[str, SigningKey]) -> None:
    site.tag((keys["ours"], signing.payload(DIGEST)))
    assert site.verify(keys["ours"], keep=False) == 1 and not site.record.exists()
    assert site.verify(keys["ours"]) == 1
    number = len(site.server.asked)
    assert site.verify(keys["next"], keys["ours"]) == 2 and len(site.server.asked) == number
    # A key that the site has removed no longer counts.
    assert "of other keys" in site.refusal(keys["next"]) and len(site.server.asked) > number
    site.record.write_text("damaged")
    assert site.verify(keys["ours"]) == 1 and DIGEST in json.loads(site.record.read_text())


def test_a_record_that_is_no_file_counts_as_none_and_cannot_be_written(site: Site, keys: dict[str, SigningKey]) -> None:
    site.tag((keys["ours"], signing.payload(DIGEST)))
    site.record.mkdir()
    assert site.verify(keys["ours"], keep=False) == 1
    with pytest.raises(OSError, match=site.record.name):
        site.verify(keys["ours"])


def test_nothing_is_recorded_without_a_directory_for_the_record(site: Site, keys: dict[str, SigningKey]) -> None:
    """Before the first run, the node has no directory for its state."""
    site.tag((keys["ours"], signing.payload(DIGEST)))
    entries = [{"prefix": "", "key": keys["ours"].pem}]
    record = site.root / "none/image-signatures.json"
    assert image_signatures.verify(site.image, entries, Access(site.root / "none"), record, keep=True)
    assert not record.parent.exists()


@pytest.mark.parametrize(
    ("prefix", "image", "named"),
    [
        ("", "registry.example.com/vllm", True),
        ("registry.example.com", "registry.example.com/a/vllm", True),
        ("registry.example.com/", "registry.example.com/a/vllm", True),
        ("registry.example.com/a/vllm", "registry.example.com/a/vllm:v1", True),
        ("registry.example.com/a/vllm", "registry.example.com/a/vllm-cpu", False),
        ("registry.example.com", "registry.example.com.other.org/vllm", False),
        ("registry.example.com", "registry.example.com:5000/vllm", False),
        ("vllm", "vllm/vllm-openai", True),
        ("docker.io/vllm", "index.docker.io/vllm/vllm-openai", True),
        ("docker.io", "debian", True),
        ("index.docker.io/vllm", "vllm/vllm-openai", True),
        ("index.docker.io", "debian", True),
        ("docker.io/debian", "debian", True),
        ("debian", "docker.io/library/debian:13", True),
        ("docker.io/library", "debian", True),
        ("library/debian", "debian", True),
        ("docker.io/deb", "debian", False),
        ("library", "registry.example.com/library/debian", False),
        ("localhost", "localhost/vllm", True),
    ],
)
def test_a_prefix_names_the_images_below_it(prefix: str, image: str, named: bool) -> None:
    assert bool(names([{"prefix": prefix, "key": "k"}], f"{image}@{DIGEST}")) == named


def test_an_image_that_no_prefix_names_needs_no_signature(site: Site, keys: dict[str, SigningKey]) -> None:
    assert site.verify(entries=[{"prefix": "registry.example.com", "key": keys["ours"].pem}]) is None
    assert site.verify() is None and site.server.asked == []


@pytest.mark.parametrize("prefix", ["https://registry.example.com", "r.org/vllm:v1", "r.org/vllm@sha256:0", "r.org/*"])
def test_a_prefix_that_can_name_no_image_is_refused(site: Site, keys: dict[str, SigningKey], prefix: str) -> None:
    said = site.refusal(entries=[{"prefix": "", "key": keys["ours"].pem}, {"prefix": prefix, "key": keys["ours"].pem}])
    assert f"the prefix of entry 2 is '{prefix}'" in said


@pytest.mark.parametrize(
    ("declared", "wrong"),
    [
        ("/etc/cosign.pub", "it is a string."),
        ({"key": "k"}, "it is a mapping."),
        ([{"key": "k"}, "/etc/cosign.pub"], "entry 2 is a string."),
        ([3], "entry 1 is of the type int."),
        ([{"key": "k", "prefx": "registry.example.com"}], "entry 1 also has prefx."),
    ],
)
def test_keys_of_another_form_are_refused(declared: Any, wrong: str) -> None:
    with pytest.raises(image_signatures.SignatureError) as raised:
        image_signatures.entries(declared)
    assert str(raised.value) == f"engine_image_keys must be a list of mappings with key and prefix; {wrong}"


def test_a_value_that_an_entry_leaves_out_is_empty() -> None:
    found = image_signatures.entries([{"key": "k"}, {"prefix": "r.org", "key": None}])
    assert found == [{"prefix": "", "key": "k"}, {"prefix": "r.org", "key": ""}]


def test_a_key_that_cannot_be_used_is_refused(site: Site, keys: dict[str, SigningKey]) -> None:
    said = site.refusal(keys["ours"], "/nowhere/cosign.pub")
    assert "the key of entry 2 must be a public key in PEM, or the absolute path of one on the controller" in said
    secret = keys["ours"].private.read_text()
    said = site.refusal(secret)
    assert "entry 1 is a private key" in said and secret.split("\n")[1] not in said


def test_an_image_that_is_not_named_by_its_digest_is_refused(site: Site, keys: dict[str, SigningKey]) -> None:
    assert "must be named by its digest" in site.refusal(keys["ours"], image=f"{site.server.name}/vllm:v1")


def test_a_node_without_openssl_is_an_error(
    site: Site, keys: dict[str, SigningKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = commands.Outcome(None, failure=commands.NOT_INSTALLED, message="openssl is not installed")
    monkeypatch.setattr(commands, "run", lambda *_words: missing)
    assert "openssl is not installed. Install the package openssl" in site.refusal(keys["ours"])
