# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A store with a published base, and a variant of the base that is not published yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry
from ansible_collections.baremetal.inference.plugins.module_utils.store import variants
from ansible_collections.baremetal.inference.plugins.module_utils.store.describe import build
from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import HashCache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import Store
from ansible_collections.baremetal.inference.plugins.module_utils.store.variant_files import Variant, plan

PROMPT = "Be kind – 親切."


class Bed:
    """A store with a published base, and a variant that is not published yet."""

    def __init__(self, root: Path, write_model: Callable[..., Path], name: str = "bot") -> None:
        self.root = root / "store"
        source = write_model(root / "source")
        (source / "chat_template.jinja").write_text("{{ messages[0].content }}")
        self.base = self.publish_base(source)
        self.entry = Entry(name, "base", "controller:/base", system_prompt=PROMPT)
        self.variant = self.made(self.base)

    def publish_base(self, source: Path) -> Path:
        store = Store(self.root, HashCache())
        manifest, problems = build(source, "base", HashCache())
        assert manifest, problems
        wanted = store.plan("base", manifest)
        store.publish(wanted, source)
        return wanted.path

    def made(self, base: Path) -> Variant:
        found = variants.read_base(self.entry, base)
        return plan(self.entry.name, found, PROMPT, "default", {"chat_template.jinja": "wrapped"})

    @property
    def path(self) -> Path:
        return self.root / self.entry.name / self.variant.revision
