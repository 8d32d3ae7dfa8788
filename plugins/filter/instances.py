# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for a site's instances.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def present_instances(instances: Sequence[Any]) -> list[Any]:
    """The instances that are not declared absent."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.present_instances(instances)


def own_images(instances: Sequence[Any]) -> list[str]:
    """The images that present instances name themselves (`image`), in place of `engine_image`."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.own_images(instances)


def served_models(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, Any]:
    """The entries of the model registry whose weights at least one present instance needs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import served

    return served.served_models(models, instances)


def want_gpus(instances: Sequence[Any]) -> bool:
    """Whether any instance that is not declared absent runs on GPUs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.want_gpus(instances)


def without_secrets(instances: Sequence[Any]) -> list[Any]:
    """The instances without their secret variables, for modules and logs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.without_secrets(instances)


def instance_secrets(instances: Sequence[Any]) -> dict[str, Any]:
    """The secret variables of the instances that have some, by the instance's name."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import inventory

    return inventory.secrets(instances)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "instance_secrets": instance_secrets,
            "own_images": own_images,
            "present_instances": present_instances,
            "served_models": served_models,
            "want_gpus": want_gpus,
            "without_secrets": without_secrets,
        }
