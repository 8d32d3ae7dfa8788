#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_image
short_description: Pull the engine's image to a node
version_added: 0.1.0
description:
  - Pulls an image by its digest unless the node has the image. Needs only Docker on the node.
  - Does not change running containers.
  - With O(background), only begins the pull, in a transient unit of systemd. A later call without O(background) waits
    for the image. Docker joins two pulls of one image. The later call reports why an image cannot be pulled.
  - With O(signatures), first verifies that a key of the site has signed the image, also if the node has the image. The
    answer is kept on the node by digest. Needs C(openssl).
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  name:
    description: The image by digest, C(REPOSITORY@sha256:…).
    type: str
    required: true
  client_config:
    description: The configuration file of Docker's client, with the credentials of the image registry.
    type: path
    default: /root/.docker/config.json
  background:
    description: Begin the pull, and do not wait for its end.
    type: bool
    default: false
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
          registry:
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
          state:
            description: Whether the login exists.
            type: str
            choices: [present, absent]
            default: present
      authorities:
        description: Certificate authorities in addition to those below C(/etc/docker/certs.d).
        type: list
        elements: dict
        default: []
        suboptions:
          registry:
            description: The image registry, as HOST or HOST:PORT.
            type: str
            required: true
          ca:
            description: The certificate in PEM.
            type: str
            default: ""
          state:
            description: Whether the authority exists.
            type: str
            choices: [present, absent]
            default: present
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
    description: Only verify the signature, and pull nothing.
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
    name: registry.example.com/vllm@sha256:0f4e5c…
"""

RETURN = r"""
id:
  description: The image's ID on the node.
  returned: if the node has the image
  type: str
key:
  description: The key that has signed the image, as SHA-256 of its DER.
  returned: with O(signatures), if a prefix names the image
  type: str
pulling:
  description: The image whose pull has begun, or would in check mode.
  returned: with O(background), unless the node has the image
  type: str
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.engine import image_registry, image_signatures

# Advice for the usual errors of image registries, by a part of the message.
ADVICE = (
    ("manifest unknown", "The image registry has no image with this digest: correct engine_image."),
    ("not found", "The image registry has no image with this name or digest: correct engine_image."),
    ("unauthorized", "The image registry needs credentials: set docker_registry_credentials."),
    ("denied", "The image registry refuses access: check the name in engine_image and docker_registry_credentials."),
    ("no basic auth credentials", "The image registry needs credentials: set docker_registry_credentials."),
    ("no such host", "The node cannot resolve the image registry's name: check its DNS and engine_image."),
    ("x509", "The node does not trust the image registry's certificate: set docker_registry_cas."),
    ("server gave HTTP response", "The image registry uses plain HTTP: add it to docker_insecure_registries."),
    (
        "connection refused",
        "Nothing answers at the image registry's address: start the image registry, or correct engine_image.",
    ),
    ("no space left", "The disk below Docker's data-root is full: free space, or move docker_data_root."),
)


def advice(message: str) -> str:
    """What the operator must do about an image registry's error."""
    known = (text for pattern, text in ADVICE if pattern.lower() in message.lower())
    return next(known, "Check engine_image, and whether the node reaches the image registry.")


def pull(docker: str, name: str) -> list[str]:
    """The command that pulls an image."""
    return [docker, "pull", "--quiet", name]


def unit(name: str) -> str:
    """The transient unit that pulls an image in the background."""
    return f"inference-pull-{hashlib.sha256(name.encode()).hexdigest()[:12]}.service"


def begin(module: AnsibleModule, docker: str, environment: dict[str, str]) -> dict[str, Any]:
    """Begin the pull, unless an earlier run has begun it. Returns the result of the module.

    A pull that cannot begin, or that fails later, is no failure here: the task that needs the image pulls it again,
    and reports the reason.
    """
    name = module.params["name"]
    if module.run_command(["systemctl", "is-active", "--quiet", unit(name)])[0] == 0:
        return {"changed": False, "pulling": name}
    settings = [f"--setenv={key}={value}" for key, value in environment.items()]
    # --collect: systemd removes the unit at its end, also after a failure.
    command = ["systemd-run", "--quiet", "--collect", f"--unit={unit(name)}", f"--description=Pull {name}", *settings]
    code, _output, error = module.run_command([*command, *pull(docker, name)])
    if code != 0:
        module.warn(f"The image {name} is not pulled in the background: {error.strip()}")
        return {"changed": False}
    return {"changed": True, "pulling": name}


def verified(module: AnsibleModule, paths: Paths) -> dict[str, Any]:
    """Verify the image's signature, if a key is declared for the image. Returns a part of the module's result.

    Ends the module if the image must not be used.
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
    name, keep = module.params["name"], not module.check_mode
    hide(module, given["keys"])
    try:
        entries = image_signatures.entries(given["keys"])
        key = image_signatures.verify(name, entries, access, paths.image_signatures, keep=keep)
    except image_signatures.SignatureError as error:
        module.fail_json(msg=str(error))
    if key is None and module.params["verify_only"]:
        module.warn(
            f"No entry of engine_image_keys names {name}: its signature is not verified. Correct prefix, or leave it"
            " out for all engine images."
        )
    return {"key": key.fingerprint} if key else {}


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
        "name": {"type": "str", "required": True},
        "client_config": {"type": "path", "default": defaults.DOCKER_CLIENT_CONFIG},
        "background": {"type": "bool", "default": False},
        "signatures": {"type": "dict", "default": {}, "options": signatures},
        "verify_only": {"type": "bool", "default": False},
    }


def registries(options: dict[str, Any]) -> dict[str, Any]:
    """The specification of a list with an entry for each image registry."""
    state = {"type": "str", "choices": ["present", "absent"], "default": "present"}
    options = {"registry": {"type": "str", "required": True}, **options, "state": state}
    return {"type": "list", "elements": "dict", "default": [], "options": options}


def main() -> None:
    module = QuietModule(argument_spec=specification(), supports_check_mode=True)
    name, background = module.params["name"], module.params["background"]
    signed = verified(module, Paths()) if module.params["signatures"].get("keys") else {}
    if module.params["verify_only"]:
        module.exit_json(changed=False, **signed)
    foreseen = {"changed": True, **({"pulling": name} if background else {}), **signed}
    docker = module.get_bin_path("docker")
    if docker is None:
        if module.check_mode:
            # On a fresh node, a run outside check mode would have installed Docker before.
            module.exit_json(**foreseen)
        module.fail_json(msg="Docker is not installed on this node: run the role docker first.")
    inspect = [docker, "image", "inspect", "--format", "{{.Id}}", name]
    code, identity, _error = module.run_command(inspect)
    if code == 0:
        module.exit_json(changed=False, id=identity.strip(), **signed)
    if module.check_mode:
        module.exit_json(**foreseen)
    environment = {"DOCKER_CONFIG": str(Path(module.params["client_config"]).parent)}
    if background:
        module.exit_json(**begin(module, docker, environment), **signed)
    code, _output, error = module.run_command(pull(docker, name), environ_update=environment)
    if code != 0:
        module.fail_json(msg=f"The image {name} cannot be pulled: {error.strip()}\n{advice(error)}")
    module.exit_json(changed=True, id=module.run_command(inspect)[1].strip(), **signed)


if __name__ == "__main__":
    main()
