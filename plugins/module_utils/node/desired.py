# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's model registry and desired releases, as the module engine_release has recorded them.
Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core import files
from ..core.paths import Paths
from ..engine import adapters, changes
from ..engine.declared import Declared
from ..engine.gang import network
from ..engine.gang.plan import ONE_NODE, Span
from ..engine.plans import Engine, deciding
from ..engine.release import Release
from ..engine.state import releases
from ..models.file_names import ADAPTER_CONFIG
from ..models.fit.misfit import Misfit
from ..models.registry import drafts
from ..models.registry.entries import Entry
from ..store import stored


@dataclass(frozen=True)
class Model:
    """An entry of the node's model registry. `path` and `on_disk` are None if no release has the entry's weights. Then
    `revision` is the one that the entry names, or None."""

    name: str
    model: str
    revision: str | None
    base: str | None
    description: str
    instances: tuple[str, ...]
    """Names of the instances that serve this entry."""
    path: str | None
    on_disk: bool | None


class Desired:
    """The node's model registry and instances. Raises OSError, and ValueError with the name of a damaged file."""

    def __init__(self, paths: Paths) -> None:
        stored = files.read_json(paths.registry)
        state = {} if stored is None else stored
        if not isinstance(state, Mapping) or not isinstance(state.get("models", {}), Mapping):
            raise ValueError(f"{paths.registry} is damaged: run baremetal.inference.site, which writes it anew")
        self._paths = paths
        engine = state.get("engine")
        version = str(engine.get("version") or "") if isinstance(engine, Mapping) else ""
        self._declared = Declared.read(state.get("models", {}), version=version)
        self.entries = self._declared.entries
        self.instances: dict[str, int] = {}
        """Number of the desired release, by instance."""
        for name in releases.names(paths):
            number = releases.desired_number(paths, name)
            if number is not None:
                self.instances[name] = number
        self._releases: dict[str, Release] = {}
        self._damaged: dict[str, str] = {}
        for name, number in self.instances.items():
            try:
                self._releases[name] = releases.load(paths, name, number)
            except releases.ReleaseError as error:
                self._damaged[name] = str(error)

    @property
    def names(self) -> list[str]:
        """The names of all instances and entries, which can be planned."""
        return sorted({*self.instances, *self.entries})

    def models(self) -> list[Model]:
        """The entries of the model registry."""
        found = []
        for name, entry in sorted(self.entries.items()):
            if entry.adapter_of:
                found.append(self._adapter(entry))
                continue
            release = self._release_with_weights(name)
            serving = tuple(instance for instance, each in self._releases.items() if each.model == name)
            found.append(
                Model(
                    name=name,
                    model=entry.model,
                    revision=release.revision if release else entry.revision,
                    base=self._declared.models[name].get("base"),
                    description=entry.description,
                    instances=serving,
                    path=release.model_path if release else None,
                    on_disk=(Path(release.model_path) / "config.json").is_file() if release else None,
                )
            )
        return found

    def _adapter(self, entry: Entry) -> Model:
        """An adapter, which releases of its base serve."""
        serving = {
            instance: each.lora[entry.name] for instance, each in self._releases.items() if entry.name in each.lora
        }
        path = next(iter(serving.values()), None)
        return Model(
            name=entry.name,
            model=entry.model,
            revision=Path(path).name if path else entry.revision,
            base=entry.adapter_of,
            description=entry.description,
            instances=tuple(serving),
            path=path,
            on_disk=(Path(path) / ADAPTER_CONFIG).is_file() if path else None,
        )

    def _release_with_weights(self, name: str) -> Release | None:
        """A release that has the weights of an entry; None if there is none."""
        wanted = self.entries[name].store_name
        found = (self.entries.get(each.model) for each in self._releases.values())
        pairs = zip(self._releases.values(), found, strict=True)
        return next((release for release, entry in pairs if entry and entry.store_name == wanted), None)

    def engine(self, name: str) -> Engine:
        """The engine of an instance or an entry. The engine of an entry is that of the first instance that serves the
        entry; without such an instance, an engine on any GPUs of the node."""
        if name in self.instances:
            return self._instance(name)
        # An adapter has the engine of its base.
        name = self.entries[name].adapter_of or name
        serving = [instance for instance, release in self._releases.items() if release.model == name]
        return self._instance(serving[0]) if serving else self._entry(name)

    def _instance(self, name: str) -> Engine:
        number = self.instances[name]
        if name in self._damaged:
            problem = Misfit("release", "release", number, self._damaged[name])
            return Engine(model=self._declared_model(name), argv=(), flags={}, instance=name, problems=[problem])
        release = self._releases[name]
        entry = self.entries.get(release.model)
        message = "is not in the node's model registry, so its flags are unknown: baremetal.inference.site adds it"
        return Engine(
            model=release.model,
            argv=[release.adapter.program, *release.engine_argv],
            # The flags that serve adapters are not in the entry.
            flags={**entry.flags, **(release.flags if release.lora else {})} if entry else {},
            instance=name,
            revision=release.revision,
            path=Path(release.model_path),
            accelerator=release.accelerator,
            gpus=release.gpus,
            environment=self._environment(name),
            change=changes.compare(self._paths, name, number, changes.kept(self._paths, name, number)),
            problems=() if entry else [Misfit("registry", "model", release.model, message)],
            draft=self._draft(entry, release),
            span=self._span(release),
        )

    def _span(self, release: Release) -> Span:
        """The nodes of a release."""
        gang = release.gang
        return Span(gang.world, gang.rank, network.find(gang.me.address, self._paths.root)) if gang else ONE_NODE

    def _draft(self, entry: Entry | None, release: Release | None) -> Path | None:
        """The directory of an entry's draft model, in the store of a release's model; None without a draft model or a
        release."""
        draft = self.entries.get(drafts.named(entry.flags) or "") if entry else None
        return stored.find(Path(release.model_path).parents[1], draft).files if draft and release else None

    def _declared_model(self, name: str) -> str:
        return str(files.read_json(self._paths.instance(name)).get("model") or "unknown")

    def _environment(self, name: str) -> dict[str, str]:
        text = changes.kept(self._paths, name, self.instances[name]).environment
        variables = dict(line.partition("=")[::2] for line in text.splitlines())
        return deciding(variables)

    def _entry(self, name: str) -> Engine:
        """The engine for an entry that no instance serves, such as the base of a variant, on any GPUs of the node."""
        entry, holder = self.entries[name], self._release_with_weights(name)
        path = holder.model_path if holder else entry.model
        adapter = adapters.get()
        if holder and entry.system_prompt is not None:
            # Publishing makes the directory and its revision, for the first instance that serves the variant.
            path = str(Path(holder.model_path).parents[1] / entry.name / "REVISION")
        return Engine(
            model=name,
            argv=[adapter.program, *adapter.model_argv(path, [name]), *self._declared.arguments(entry)],
            flags=entry.flags,
            revision=holder.revision if holder else entry.revision,
            path=Path(holder.model_path) if holder else None,
            accelerator=holder.accelerator if holder else "nvidia",
            environment=self._environment(holder.instance) if holder else {},
            draft=self._draft(entry, holder),
        )
