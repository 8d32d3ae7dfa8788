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
  - Brings as much as comes in O(seconds), and says how far the transfer is. Call it again until RV(done). What has
    arrived stays, so that a transfer that was cut off goes on where it stopped; a connection that breaks is tried again
    meanwhile.
  - Nothing has a name in the store before it is complete and its checksums are right.
  - With O(peer) it takes the model from another node that shares it by M(baremetal.inference.model_share). What goes
    wrong there is no failure, but the return value RV(problem), for there are other sources.
  - Internal to this collection; its options may change without notice.
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
    description: A token for models behind a licence. It reaches the hub's client in a file of mode 0600.
    type: str
    default: ""
  cache:
    description: A file that keeps checksums, as of M(baremetal.inference.model).
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
  - module: baremetal.inference.model
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
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.store.fetch import Fetcher
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import parse
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store


def from_peer(fetcher: Fetcher, given: dict[str, Any]) -> tuple[Progress, str]:
    """Bring more of a model from another node. Returns also what is wrong with that node. Raises OSError."""
    fetcher.end_download()
    try:
        return fetcher.from_peer(given["host"], given["url"], given["token"], given["manifest"]), ""
    except (TransferError, InputError, ValueError) as error:
        return Progress(0, 0, 0, 0, done=False), str(error)


def main() -> None:
    module = QuietModule(
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
    values, name, peer = module.params, module.params["name"], module.params["peer"]
    if module.check_mode:
        text = f"{name}: would be fetched"
        module.exit_json(changed=True, done=True, text=text, have=0, total=0, revision=None, problem="")
    revision, problem = None, ""
    try:
        remote = parse(values["entry"])
        if remote is None:
            raise ValueError("comes from no network: its model is neither a URL nor a hub's ORGANISATION/NAME")
        with hash_cache(Path(values["cache"]) if values["cache"] else None) as cache:
            store, docker = Store(Path(values["store"]), cache), module.get_bin_path("docker")
            fetcher = Fetcher(store, name, remote, values["seconds"], Paths(), module.run_command, docker)
            if peer:
                progress, problem = from_peer(fetcher, peer)
                revision = peer["manifest"]["revision"] if progress.done else None
            else:
                hub = Hub(values["hub_endpoint"], values["hub_token"])
                progress, revision = fetcher.from_network(hub, values["image"] or "")
    except InputError as error:
        module.fail_json(msg=str(error), name=name)
    except (TransferError, OSError, ValueError) as error:
        module.fail_json(msg=f"models.{name}: {error}", name=name)
    origin = f" from {peer['host']}" if peer else ""
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
