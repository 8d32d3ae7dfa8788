#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_fetch
short_description: Fetch a model from the network into the store of a node
version_added: 0.1.0
description:
  - Fetches an archive from a web server, or a repository of a hub by the client in the engine's image, verifies it and
    publishes it under C(STORE/NAME/REVISION).
  - Brings as much as comes in O(seconds), and says how far it is. Call it again until RV(done). What has arrived stays,
    so that a transfer that was cut off goes on where it stopped; a connection that breaks is tried again meanwhile.
  - Nothing has a name in the store before it is complete and its checksums are right.
  - With O(peer) it takes the model from another node that shares it by M(baremetal.inference.model_share). What goes
    wrong there is no failure, but the return value RV(problem), for there are other sources.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  store:
    description: The root of the store.
    type: path
    required: true
  name:
    description: The model's name in the registry.
    type: str
    required: true
  entry:
    description:
      - The registry's entry. Of it, C(model) is read, and what pins it. To a C(https://…tar) belongs C(checksum), to a
        hub's C(ORGANISATION/NAME) the C(revision), a commit.
    type: dict
    required: true
  seconds:
    description: How long this call may take, but for verifying and publishing.
    type: int
    default: 60
  image:
    description: The engine's image, which holds the hub's client.
    type: str
  hub_endpoint:
    description: The hub, or a mirror of it.
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models that not everybody may have. It reaches the client in a file of mode 0600.
    type: str
    default: ""
  cache:
    description: A file that keeps checksums, as of M(baremetal.inference.model_publish).
    type: path
  peer:
    description: Another node to take the model from.
    type: dict
    suboptions:
      host:
        description: Its name, for people.
        type: str
        required: true
      url:
        description: Where it shares, as M(baremetal.inference.model_share) returns it; empty where it does not.
        type: str
        required: true
      token:
        description: What it wants to be shown.
        type: str
        required: true
      manifest:
        description:
          - The manifest of what it has, by which everything is verified. It comes from the controller, not from there.
        type: dict
        required: true
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.model_publish
  - module: baremetal.inference.model_share
"""

EXAMPLES = r"""
- name: Fetch a model, for a minute at most
  baremetal.inference.model_fetch:
    store: /mnt/models
    name: qwen3-8b
    entry:
      model: https://files.example.com/qwen3-8b.tar
      checksum: sha256:0f4e5c…
  register: fetched
"""

RETURN = r"""
name:
  description: The model's name, by which the other nodes know what could not be fetched here.
  returned: failure
  type: str
done:
  description: Whether the model is published. Otherwise, call the module again.
  returned: success
  type: bool
text:
  description: How far it is, for people.
  returned: success
  type: str
  sample: "qwen3-8b: 1.2 GiB of 15.3 GiB, 310.0 MiB a second, 46 s left"
have:
  description: Bytes that are there.
  returned: success
  type: int
total:
  description: Bytes of the whole transfer.
  returned: success
  type: int
revision:
  description: The revision that was published; null before.
  returned: success
  type: str
problem:
  description: Why O(peer) is of no use for this model; empty where it is. What it gave and was wrong has been removed.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files as node_files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.models.manifest import Manifest
from ansible_collections.baremetal.inference.plugins.module_utils.store import fetch
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import archive
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources import hub as hub_source
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Download, Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.peer import Peer
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import (
    ARCHIVE,
    HUB,
    Remote,
    parse,
)
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store, make_directory


def from_archive(module: AnsibleModule, remote: Remote, work: Path) -> Progress:
    """Bring more of an archive, and unpack it when it is complete. Raises TransferError."""
    total = archive.size(remote.location)
    progress = archive.fetch(remote.location, work / fetch.ARCHIVE_FILE, total, module.params["seconds"])
    if progress.done:
        fetch.unpack(remote, work)
    return progress


def from_hub(module: AnsibleModule, remote: Remote, work: Path) -> Progress:
    """Bring more of a repository. Raises TransferError."""
    values = module.params
    hub = Hub(values["hub_endpoint"], values["hub_token"])
    docker = module.get_bin_path("docker", required=True)
    if not values["image"]:
        raise TransferError("image is missing: the engine's image holds the hub's client")
    files = hub_source.sizes(remote, hub)
    target = work / fetch.MODEL
    download = Download(module.run_command, docker, values["image"], remote, hub.endpoint, target)
    token_file = Paths().hub_token(remote.key)
    if hub.token:
        node_files.write(token_file, hub.token, 0o600)
        download.token_file = token_file
    progress = download.fetch(files, values["seconds"])
    if progress.done:
        token_file.unlink(missing_ok=True)
        fetch.check_complete(files, target)
    return progress


def from_peer(module: AnsibleModule, remote: Remote, store: Store) -> tuple[Progress, str]:
    """Bring more of what another node has, and publish it when it is complete. Returns what is wrong with that node."""
    given = module.params["peer"]
    docker = module.get_bin_path("docker")
    if remote.kind == HUB:
        # A download that an earlier run has begun would go on beside this one.
        if docker:
            module.run_command([docker, "rm", "--force", hub_source.container(remote)])
        Paths().hub_token(remote.key).unlink(missing_ok=True)
    try:
        if not given["url"]:
            raise TransferError(f"{given['host']} shares nothing")
        name, manifest = module.params["name"], Manifest.from_dict(given["manifest"])
        peer = Peer(given["host"], f"{given['url']}/{name}/{manifest.revision}", given["token"], manifest)
        return fetch.take(store, name, remote, peer, module.params["seconds"]), ""
    except (TransferError, InputError, ValueError) as error:
        return Progress(0, 0, 0, 0, done=False), str(error)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "entry": {"type": "dict", "required": True},
            "seconds": {"type": "int", "default": 60},
            "image": {"type": "str"},
            "hub_endpoint": {"type": "str", "default": "https://huggingface.co"},
            "hub_token": {"type": "str", "default": "", "no_log": True},
            "cache": {"type": "path"},
            "peer": {
                "type": "dict",
                "options": {
                    "host": {"type": "str", "required": True},
                    "url": {"type": "str", "required": True},
                    "token": {"type": "str", "required": True, "no_log": True},
                    "manifest": {"type": "dict", "required": True},
                },
            },
        },
        supports_check_mode=True,
    )
    values, name = module.params, module.params["name"]
    if module.check_mode:
        text = f"{name}: would be fetched"
        module.exit_json(changed=True, done=True, text=text, have=0, total=0, revision=None, problem="")
    root = Path(values["store"])
    revision, problem = None, ""
    try:
        remote = parse(values["entry"])
        if remote is None:
            raise ValueError("comes from no network: its model is neither a URL nor a hub's ORGANISATION/NAME")
        with hash_cache(Path(values["cache"]) if values["cache"] else None) as cache:
            store = Store(root, cache)
            if values["peer"]:
                progress, problem = from_peer(module, remote, store)
                revision = values["peer"]["manifest"]["revision"] if progress.done else None
            else:
                work = fetch.workplace(root, name, remote)
                fetch.forget_peers(root, name)
                make_directory(work)
                progress = (from_archive if remote.kind == ARCHIVE else from_hub)(module, remote, work)
                revision = fetch.publish(store, name, remote, work) if progress.done else None
    except InputError as error:
        module.fail_json(msg=str(error), name=name)
    except (TransferError, OSError, ValueError) as error:
        module.fail_json(msg=f"models.{name}: {error}", name=name)
    origin = f" from {values['peer']['host']}" if values["peer"] else ""
    module.exit_json(
        changed=True,
        done=progress.done,
        text=f"{name}{origin}: {problem or progress}",
        have=progress.have,
        total=progress.total,
        revision=revision,
        problem=problem,
    )


if __name__ == "__main__":
    main()
