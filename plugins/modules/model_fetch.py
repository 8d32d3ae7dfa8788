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
  - Fetches an archive from a web server, or a repository from a hub by the client in the engine's image. Verifies the
    files, and publishes them as C(STORE/NAME/REVISION).
  - Fetches for O(seconds), and returns the progress. Call the module again until RV(done) is true. Received data stays,
    so that a transfer that was cut off continues. A broken connection is tried again.
  - A model gets its name in the store only if it is complete and its checksums match.
  - With O(peer), fetches the model from another node that shares it by M(baremetal.inference.model_share). An error of
    the peer does not fail the module, because there are other sources; RV(problem) returns it.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  store:
    description: The root of the store.
    type: path
    required: true
  name:
    description: The model's name in the model registry.
    type: str
    required: true
  entry:
    description:
      - The model's entry. C(model) is an archive (C(https://…tar)) with its digest in C(checksum), or a hub's
        C(ORGANISATION/NAME) with its commit in C(revision). With the key C(adapter), the files must be a LoRA adapter.
    type: dict
    required: true
  seconds:
    description: How long this call may fetch, in seconds, without the time for verification and publication.
    type: int
    default: 60
  image:
    description: The engine's image, with the hub's client.
    type: str
  hub_endpoint:
    description: The hub, or a mirror of it.
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models behind a licence. The hub's client gets it in a file of mode 0600.
    type: str
    default: ""
  cache:
    description: A file with checksums, as in M(baremetal.inference.model).
    type: path
  peer:
    description: Another node to fetch the model from.
    type: dict
    suboptions:
      host:
        description: The peer's name, for messages.
        type: str
        required: true
      url:
        description: The peer's URL, as M(baremetal.inference.model_share) returns it; empty if the peer does not share.
        type: str
        required: true
      token:
        description: The peer's token.
        type: str
        required: true
      manifest:
        description:
          - The manifest, against which all files are verified, as M(baremetal.inference.model_share) returns it on the
            peer. The peer's server does not send it.
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
- name: Fetch a model for up to one minute
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
  description: The name of the model that this node could not fetch. The plan of the other nodes uses this name.
  returned: failure
  type: str
done:
  description: Whether the model is published; always true in check mode. If not, and without RV(problem), call again.
  returned: success
  type: bool
text:
  description: The progress, as text.
  returned: success
  type: str
  sample: "qwen3-8b: 1.2 GiB of 15.3 GiB, 310.0 MiB a second, 46 s left"
have:
  description: The received bytes.
  returned: success
  type: int
total:
  description: The bytes of the whole transfer.
  returned: success
  type: int
revision:
  description: The published revision; null before the publication.
  returned: success
  type: str
problem:
  description: Why the model cannot come from O(peer); empty if it can. Wrong data from the peer has been removed.
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.core.quiet_module import QuietModule
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.adapters import is_adapter
from ansible_collections.baremetal.inference.plugins.module_utils.store.fetch import Fetcher
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.hub import Hub
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.remote import parse
from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.transfer import Progress, TransferError
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store


def from_peer(fetcher: Fetcher, given: dict[str, Any]) -> tuple[Progress, str]:
    """Fetch more of a model from a peer. Returns the progress, and the peer's problem or "". Raises OSError."""
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
            raise ValueError("model must be an archive's URL, or a hub's ORGANISATION/NAME, to be fetched")
        with hash_cache(Path(values["cache"]) if values["cache"] else None) as cache:
            store, docker = Store(Path(values["store"]), cache), module.get_bin_path("docker")
            run, adapter = module.run_command, is_adapter(values["entry"])
            fetcher = Fetcher(store, name, remote, values["seconds"], Paths(), run, docker, adapter=adapter)
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
