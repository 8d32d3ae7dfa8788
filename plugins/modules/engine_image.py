#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_image
short_description: Pull the engines' images to a node
version_added: 0.1.0
description:
  - Pulls images by their digests, unless the node has them. A pull needs Docker on the node.
  - Does not change running containers.
  - Pulls one image after the other. If an image cannot be pulled, pulls the other images, and then fails with the
    reason for each image that cannot be pulled.
  - With O(background), only begins the pulls, each in a transient unit of systemd. A later call without O(background)
    waits for the images. Docker joins two pulls of one image. The later call reports why an image cannot be pulled.
  - With O(wait_seconds), only waits for pulls in the background, and pulls nothing.
  - With O(signatures), first verifies that a key of the site has signed each image that a C(prefix) names, also if the
    node has the image. Fails with all images that must not be used, and then pulls none. The answers are kept on the
    node by digest. Needs C(openssl).
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  names:
    description: The images by digest, C(REPOSITORY@sha256:…).
    type: list
    elements: str
    required: true
  client_config:
    description: The configuration file of Docker's client, with the credentials of the image registry.
    type: path
    default: /root/.docker/config.json
  background:
    description: Begin the pulls, and do not wait for their ends.
    type: bool
    default: false
  begun:
    description:
      - The result RV(pulls) of an earlier call with O(background) in the same run. That call has reported the
        change, so the pull of such an image is no change, also if the pull in the background has failed.
    type: list
    elements: str
    default: []
  wait_seconds:
    description:
      - For how long the module waits, at most, until no image of O(names) is pulled in the background. If a pull still
        runs then, RV(under_way) names the image. RV(missing) has the images that the node lacks after the wait.
      - A call with a time limit shows progress, and costs the controller less than polls of a task with C(async).
    type: int
    default: 0
  signatures:
    description: The keys that sign images, and how the node reaches image registries before Docker is set up.
    type: dict
    default: {}
    suboptions:
      keys:
        description:
          - The site's variable C(engine_image_keys), a list of mappings.
          - An image that no prefix names needs no signature. With O(verify_only), the module warns of such an image.
          - C(prefix) is the beginning of the names of the images. Empty for all images.
          - C(key) is the public key in PEM. One of the keys whose prefix names an image must have signed this image.
        type: raw
        default: []
      credentials:
        description: Logins in addition to those in O(client_config).
        type: list
        elements: dict
        default: []
        suboptions:
          registry: &registry
            description: The image registry, as HOST or HOST:PORT.
            type: str
            required: true
          username:
            description: Name of the user.
            type: str
            default: ""
          password:
            description: Password or token.
            type: str
            default: ""
          state: &state
            description: Whether the entry counts.
            type: str
            choices: [present, absent]
            default: present
      authorities:
        description: Certificate authorities in addition to those below C(/etc/docker/certs.d).
        type: list
        elements: dict
        default: []
        suboptions:
          registry: *registry
          ca:
            description: The certificate in PEM.
            type: str
            default: ""
          state: *state
      insecure:
        description: Image registries without TLS, or with a certificate that is not checked.
        type: list
        elements: str
        default: []
      proxies:
        description: The proxies of Docker's daemon, as C(http) and C(https).
        type: dict
        default: {}
      no_proxy:
        description: Hosts, domains and networks that are reached without a proxy.
        type: list
        elements: str
        default: []
  verify_only:
    description: Only verify the signatures, and pull nothing.
    type: bool
    default: false
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Pull the engine's image
  baremetal.inference.engine_image:
    names: [registry.example.com/vllm@sha256:0f4e5c…]
"""

RETURN = r"""
ids:
  description: The IDs on the node of the images that the node has, by image.
  returned: success, without O(verify_only)
  type: dict
  sample: {"registry.example.com/vllm@sha256:0f4e5c…": "sha256:9b1d…"}
keys:
  description:
    - The keys that have signed the images, each as SHA-256 of its DER, by image. Images that no prefix names are left
      out.
  returned: success
  type: dict
missing:
  description: The images that the node did not have when the module began.
  returned: success, without O(verify_only)
  type: list
  elements: str
pulls:
  description:
    - The images that this call has pulled, or whose pull in the background this call has begun. In check mode, the call
      would do so. Leaves out the images of O(begun), and images whose pull by an earlier call with O(background) still
      ran.
  returned: success, without O(verify_only)
  type: list
  elements: str
under_way:
  description: The images whose pull in the background still ran after O(wait_seconds).
  returned: success, with O(wait_seconds)
  type: list
  elements: str
"""

import hashlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_registry, image_signatures

LOOK_SECONDS = 0.3
"""Between two looks at the pulls in the background."""

DECLARED = "engine_image, or image of the instance"
"""The variables that name images."""

# Advice for the usual errors of image registries, by a part of the message.
ADVICE = (
    ("manifest unknown", f"The image registry has no image with this digest: correct {DECLARED}."),
    ("not found", f"The image registry has no image with this name or digest: correct {DECLARED}."),
    ("unauthorized", "The image registry needs credentials: set docker_registry_credentials."),
    ("denied", "The image registry refuses access: check the image's name and docker_registry_credentials."),
    ("no basic auth credentials", "The image registry needs credentials: set docker_registry_credentials."),
    ("no such host", "The node cannot resolve the image registry's name: check its DNS and the image's name."),
    ("x509", "The node does not trust the image registry's certificate: set docker_registry_cas."),
    ("server gave HTTP response", "The image registry uses plain HTTP: add it to docker_insecure_registries."),
    (
        "connection refused",
        "Nothing answers at the image registry's address: start the image registry, or correct the image's name.",
    ),
    ("no space left", "The disk below Docker's data-root is full: free space, or move docker_data_root."),
)


def advice(message: str) -> str:
    """What the operator must do about an image registry's error."""
    known = (text for pattern, text in ADVICE if pattern.lower() in message.lower())
    return next(known, "Check the image's name, and whether the node reaches the image registry.")


def pull(docker: str, name: str) -> list[str]:
    """The command that pulls an image."""
    return [docker, "pull", "--quiet", name]


def unit(name: str) -> str:
    """The transient unit that pulls an image in the background."""
    return f"inference-pull-{hashlib.sha256(name.encode()).hexdigest()[:12]}.service"


def begin(module: AnsibleModule, docker: str, name: str, environment: dict[str, str]) -> bool:
    """Begin a pull in the background. Returns whether it has begun.

    A pull that cannot begin, or that fails later, is no failure here: the task that needs the image pulls it again,
    and reports the reason.
    """
    settings = [f"--setenv={key}={value}" for key, value in environment.items()]
    # --collect: systemd removes the unit at its end, also after a failure.
    command = ["systemd-run", "--quiet", "--collect", f"--unit={unit(name)}", f"--description=Pull {name}", *settings]
    code, _output, error = module.run_command([*command, *pull(docker, name)])
    if code != 0:
        module.warn(f"The image {name} is not pulled in the background: {error.strip()}")
    return code == 0


def under_way(module: AnsibleModule, name: str) -> bool:
    """Whether an earlier call has begun a pull in the background that has not ended."""
    return module.run_command(["systemctl", "is-active", "--quiet", unit(name)])[0] == 0


def wait_for_background(module: AnsibleModule, names: Iterable[str], seconds: int) -> list[str]:
    """Wait until no image is pulled in the background. Returns the images that are still pulled after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := [name for name in names if under_way(module, name)]) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return left


def identity(module: AnsibleModule, docker: str, name: str) -> str:
    """The ID of an image on the node; empty if the node does not have the image."""
    code, output, _error = module.run_command([docker, "image", "inspect", "--format", "{{.Id}}", name])
    return output.strip() if code == 0 else ""


def verified(module: AnsibleModule, names: Iterable[str], paths: Paths) -> dict[str, str]:
    """Verify the images' signatures. Returns the fingerprints of the keys by image, except for images that need none.

    Ends the module if an image must not be used.
    """
    given = module.params["signatures"]
    access = image_registry.Access(
        client_config=Path(module.params["client_config"]),
        logins={
            one["registry"]: image_registry.login(one["username"], one["password"])
            for one in present(given["credentials"])
        },
        authorities={one["registry"]: one["ca"] for one in present(given["authorities"])},
        insecure=given["insecure"],
        proxies=given["proxies"],
        no_proxy=given["no_proxy"],
    )
    hide(module, given["keys"])
    record, keep = paths.image_signatures, not module.check_mode
    try:
        found = image_signatures.verify_all(names, given["keys"], access, record, keep=keep)
    except (image_signatures.SignatureError, OSError) as error:
        module.fail_json(msg=str(error))
    if module.params["verify_only"]:
        for name in (name for name, key in found.items() if key is None):
            module.warn(
                f"No entry of engine_image_keys names {name}: its signature is not verified. Correct prefix, or leave"
                " it out for all engine images."
            )
    return {name: key.fingerprint for name, key in found.items() if key}


def hide(module: AnsibleModule, keys: object) -> None:
    """Keep keys out of the module's result, because a key may be a private one. The option has no fixed form."""
    listed = keys if isinstance(keys, list) else [keys]
    texts = (one.get("key") if isinstance(one, dict) else one for one in listed)
    module.no_log_values.update(text for text in texts if text and isinstance(text, str))


def present(declared: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Declared entries without those that are absent."""
    return [one for one in declared if one["state"] == "present"]


def specification() -> dict[str, Any]:
    """The module's options."""
    login = {"username": {"type": "str", "default": ""}, "password": {"type": "str", "default": "", "no_log": True}}
    signatures = {
        # `hide` keeps the texts of keys out of the result.
        "keys": {"type": "raw", "default": [], "no_log": False},
        "credentials": registries(login),
        "authorities": registries({"ca": {"type": "str", "default": ""}}),
        "insecure": {"type": "list", "elements": "str", "default": []},
        # The address of a proxy can have a password.
        "proxies": {"type": "dict", "default": {}, "no_log": True},
        "no_proxy": {"type": "list", "elements": "str", "default": []},
    }
    return {
        "names": {"type": "list", "elements": "str", "required": True},
        "client_config": {"type": "path", "default": defaults.DOCKER_CLIENT_CONFIG},
        "background": {"type": "bool", "default": False},
        "begun": {"type": "list", "elements": "str", "default": []},
        "wait_seconds": {"type": "int", "default": 0},
        "signatures": {"type": "dict", "default": {}, "options": signatures},
        "verify_only": {"type": "bool", "default": False},
    }


def registries(options: dict[str, Any]) -> dict[str, Any]:
    """The specification of a list with an entry for each image registry."""
    state = {"type": "str", "choices": ["present", "absent"], "default": "present"}
    options = {"registry": {"type": "str", "required": True}, **options, "state": state}
    return {"type": "list", "elements": "dict", "default": [], "options": options}


class Pulls:
    """The pulls of one call. The pull of an image that an earlier call has begun in the background is no change: that
    call has reported the change."""

    def __init__(self, module: AnsibleModule, docker: str, names: Iterable[str]) -> None:
        self._module = module
        self._docker = docker
        self._environment = {"DOCKER_CONFIG": str(Path(module.params["client_config"]).parent)}
        found = {name: identity(module, docker, name) if docker else "" for name in names}
        self._ids = {name: known for name, known in found.items() if known}
        self._missing = [name for name, known in found.items() if not known]
        begun = module.params["begun"]
        self._new = [name for name in self._missing if name not in begun and not under_way(module, name)]

    def begin(self) -> None:
        """Begin the pulls in the background. An image whose pull cannot begin stays missing."""
        if not self._module.check_mode:
            self._new = [name for name in self._new if begin(self._module, self._docker, name, self._environment)]

    def wait(self) -> None:
        """Pull the missing images. If a pull has failed, ends the module after the pulls of the other images."""
        problems = [] if self._module.check_mode else [text for name in self._missing if (text := self._pull(name))]
        if problems:
            self._new = [name for name in self._new if name in self._ids]
            self._module.fail_json(msg="\n".join(problems), **self.result())

    def _pull(self, name: str) -> str:
        """Pull an image. Returns why that failed, and what to do; empty if the node has the image."""
        code, _output, error = self._module.run_command(pull(self._docker, name), environ_update=self._environment)
        if code != 0:
            return f"The image {name} cannot be pulled: {error.strip()}\n{advice(error)}"
        self._ids[name] = identity(self._module, self._docker, name)
        return ""

    def result(self) -> dict[str, Any]:
        """A part of the module's result."""
        return {"changed": bool(self._new), "ids": self._ids, "missing": self._missing, "pulls": self._new}


def main() -> None:
    module = QuietModule(argument_spec=specification(), supports_check_mode=True)
    names = list(dict.fromkeys(module.params["names"]))
    keys = verified(module, names, Paths()) if module.params["signatures"].get("keys") else {}
    if module.params["verify_only"]:
        module.exit_json(changed=False, keys=keys)
    docker = module.get_bin_path("docker")
    if docker is None and not module.check_mode:
        module.fail_json(msg="Docker is not installed on this node: run the role docker first.")
    limit = module.params["wait_seconds"]
    left = wait_for_background(module, names, limit) if limit else []
    # In check mode, a fresh node has no Docker yet, and no image: a real run would have installed Docker before.
    pulls = Pulls(module, docker or "", names)
    if limit:
        result = {**pulls.result(), "changed": False, "pulls": [], "under_way": left}
        if left:
            # Ansible shows this message after the last retry.
            units = " ".join(map(unit, left))
            result["msg"] = f"The pull of {', '.join(left)} has not ended. See: systemctl status {units}"
        module.exit_json(**result, keys=keys)
    if module.params["background"]:
        pulls.begin()
    else:
        pulls.wait()
    module.exit_json(**pulls.result(), keys=keys)


if __name__ == "__main__":
    main()
