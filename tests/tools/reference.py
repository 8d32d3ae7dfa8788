#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the pages of docs/reference from argument specifications and the documentation of modules.

With --write, the program writes the pages. Without --write, the program fails if a page differs. Ansible's own
tools make no Markdown.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from plugin_markup import Page, code, paragraph, wrap

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/reference"
COLLECTION = "baremetal.inference"
SITE = ROOT / "playbooks/vars/roles.yml"

INTERNAL = "Internal to this collection"
"""The description of each module that only the roles of the collection call has a sentence with this beginning."""

FROM_SITE = re.compile(r"^\{\{ ([a-z][a-z_]*)(?: \|[^{}]*)? \}\}$")
"""The value of a role's variable that is one variable of the site, with or without a filter such as `default`."""

SET_BY_PLAYBOOKS = (
    "If the playbooks set a variable, its value in the inventory has no effect: set the variable that is its source."
)

LONG = 70
"""Characters. A longer default is shown as a block."""


def head(source: str) -> str:
    """The first line of a page."""
    return f"<!-- Made by `make docs` from {source}: change the source, not this page. -->"


def texts(value: str | list[str] | None) -> list[str]:
    """The paragraphs of a description."""
    return [value] if isinstance(value, str) else list(value or [])


def kind(option: dict[str, Any]) -> str:
    """The type of an option, and whether the option is required."""
    elements = f" of {option['elements']}" if option.get("elements") else ""
    return option.get("type", "str") + elements + (", required" if option.get("required") else "")


def shown(value: Any) -> str:
    """A value as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def terms(option: dict[str, Any]) -> str:
    """Type, choices and default of an option in one line; a long default is left out."""
    parts = [kind(option)]
    if option.get("choices"):
        parts.append("one of " + ", ".join(code(shown(value)) for value in option["choices"]))
    default = option.get("default")
    if default is not None and len(shown(default)) <= LONG:
        parts.append(f"default {code(shown(default))}")
    return " · ".join(parts)


def long_default(option: dict[str, Any]) -> str:
    """The block with a long default; empty for a short default."""
    default = option.get("default")
    if default is None or len(shown(default)) <= LONG:
        return ""
    text = yaml.safe_dump(default, default_flow_style=False, width=100, allow_unicode=True, sort_keys=False).strip()
    return f"Default:\n\n```yaml\n{text.removesuffix('...').strip()}\n```"


def keys(options: dict[str, Any], inner: str, page: Page, indent: str = "") -> Iterator[str]:
    """The keys of a dictionary as a nested list. `inner` names the field with the keys of a nested dictionary."""
    for name, option in options.items():
        words = " ".join(paragraph(text, page) for text in texts(option.get("description")))
        returned = f" ({paragraph(option['returned'], page)})" if option.get("returned") else ""
        yield wrap(f"{code(name)} ({terms(option)}){returned}: {words}", f"{indent}- ", f"{indent}  ")
        yield from keys(option.get(inner) or {}, inner, page, f"{indent}  ")


def entry(name: str, option: dict[str, Any], page: Page, *, inner: str = "options", note: str = "") -> str:
    """The section of one variable, option or returned value."""
    parts = [f"### {name}", wrap(terms(option))]
    if option.get("returned"):
        parts.append(wrap("Returned: " + paragraph(str(option["returned"]), page) + "."))
    parts += [wrap(paragraph(text, page)) for text in texts(option.get("description"))]
    parts += [wrap(note)] if note else []
    parts += [long_default(option)] if long_default(option) else []
    nested = list(keys(option.get(inner) or {}, inner, page))
    parts += ["Keys:", "\n".join(nested)] if nested else []
    return "\n\n".join(parts)


def from_site(name: str, site: dict[str, Any]) -> str:
    """The sentence about a variable that the collection's playbooks set; empty for any other."""
    if name not in site:
        return ""
    match = FROM_SITE.match(str(site[name]))
    if match:
        return f"The playbooks of this collection set this variable, from {code(match[1])}."
    return "The playbooks of this collection set this variable."


def role_page(name: str, specs: dict[str, Any], site: dict[str, Any], page: Page) -> str:
    """The page of a role: its variables, then the further variables of its other entry points."""
    main = specs["main"]
    options = main.get("options", {})
    parts = [head(f"roles/{name}/meta/argument_specs.yml"), f"# Role {COLLECTION}.{name}"]
    parts += [wrap(paragraph(main["short_description"], page) + ".")]
    parts += [wrap(paragraph(text, page)) for text in texts(main.get("description"))]
    if options:
        parts += ["## Variables", wrap(SET_BY_PLAYBOOKS)] if site.keys() & options.keys() else ["## Variables"]
        parts += [entry(key, option, page, note=from_site(key, site)) for key, option in options.items()]
    others = {key: spec for key, spec in specs.items() if key != "main"}
    if others:
        parts += ["## Other entry points", wrap("`tasks_from` names the entry point. Each has the variables above.")]
    for key, spec in others.items():
        parts += [f"### Entry point {key}", wrap(paragraph(spec["short_description"], page) + ".")]
        parts += [wrap(paragraph(text, page)) for text in texts(spec.get("description"))]
        own = {option: value for option, value in spec.get("options", {}).items() if value != options.get(option)}
        if own:
            parts += ["Variables of this entry point:", "\n".join(keys(own, "options", page))]
    return "\n\n".join(parts) + "\n"


def module_page(name: str, documentation: dict[str, Any], page: Page) -> str:
    """The page of a module: options, examples, returned values."""
    doc = documentation["doc"]
    parts = [head(f"plugins/modules/{name}.py"), f"# Module {COLLECTION}.{name}"]
    parts += [wrap(paragraph(doc["short_description"], page) + ".")]
    parts += [wrap(paragraph(text, page)) for text in texts(doc["description"])]
    notes = [paragraph(text, page) for text in texts(doc.get("notes"))]
    for attribute, value in (doc.get("attributes") or {}).items():
        details = " ".join(paragraph(text, page) for text in texts(value.get("details")))
        label = attribute.replace("_", " ").capitalize()
        notes.append(f"{label}: {value['support']}. {details}".strip())
    parts.append("\n".join(wrap(note, "- ", "  ") for note in notes))
    if doc.get("options"):
        parts.append("## Options")
        parts += [entry(key, value, page, inner="suboptions") for key, value in doc["options"].items()]
    parts += ["## Examples", f"```yaml\n{documentation['examples'].strip()}\n```"]
    if documentation.get("return"):
        parts.append("## Returned values")
        parts += [entry(key, value, page, inner="contains") for key, value in documentation["return"].items()]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(title: str, directory: str, rows: dict[str, str], page: Page) -> str:
    """A table of roles or modules, each with a link to its page and a description."""
    lines = [f"| {title} | what it does |", "|---|---|"]
    lines += [f"| [{name}]({directory}/{name}.md) | {paragraph(words, page)} |" for name, words in rows.items()]
    return "\n".join(lines)


def index(roles: dict[str, Any], modules: dict[str, Any], internal: list[str]) -> str:
    """The page with links to all other pages."""

    def unlinked(_kind: str, _name: str) -> str:
        return ""

    parts = [
        head("all argument specifications and modules"),
        "# Reference",
        wrap("All variables of the roles, and all modules that a playbook of yours can call."),
        "## Roles",
        table("role", "roles", {name: specs["main"]["short_description"] for name, specs in roles.items()}, unlinked),
        "## Modules",
        table("module", "modules", {name: it["doc"]["short_description"] for name, it in modules.items()}, unlinked),
        wrap(
            "These modules serve the roles of this collection alone, and their options change without notice: "
            + ", ".join(code(name) for name in internal)
            + f". {code(f'ansible-doc {COLLECTION}.NAME')} shows them."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def read_roles() -> dict[str, Any]:
    """The argument specifications of all roles, by the role's name."""
    files = sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
    return {file.parents[1].name: yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"] for file in files}


def read_modules() -> dict[str, Any]:
    """The output of ansible-doc for all modules, by the module's name. Raises CalledProcessError if it fails."""
    names = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
    command = ["ansible-doc", "--json", "--type", "module", *(f"{COLLECTION}.{name}" for name in names)]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {name: found[f"{COLLECTION}.{name}"] for name in names}


def pages() -> dict[str, str]:
    """The text of every page, by its path below docs/reference."""
    roles, every, site = read_roles(), read_modules(), yaml.safe_load(SITE.read_text(encoding="utf-8"))
    internal = [name for name, value in every.items() if any(INTERNAL in text for text in value["doc"]["description"])]
    modules = {name: value for name, value in every.items() if name not in internal}

    def page(kind_of: str, name: str) -> str:
        short = name.removeprefix(f"{COLLECTION}.")
        known = {"module": modules, "role": roles}.get(kind_of, {})
        return f"../{kind_of}s/{short}.md" if short in known else ""

    made = {f"roles/{name}.md": role_page(name, specs, site, page) for name, specs in roles.items()}
    made |= {f"modules/{name}.md": module_page(name, value, page) for name, value in modules.items()}
    return {"README.md": index(roles, modules, internal)} | made


def stale(directory: Path, wanted: dict[str, str]) -> list[str]:
    """The names of pages that are missing, differ, or have no source any more."""
    there = {str(path.relative_to(directory)): path.read_text(encoding="utf-8") for path in directory.rglob("*.md")}
    return sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))


def write(directory: Path, wanted: dict[str, str]) -> None:
    """Write stale pages, and remove pages that have no source any more."""
    for name in stale(directory, wanted):
        file = directory / name
        if name not in wanted:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted[name], encoding="utf-8")


def main() -> int:
    wanted = pages()
    if "--write" in sys.argv[1:]:
        write(PAGES, wanted)
        return 0
    found = stale(PAGES, wanted)
    for name in found:
        print(f"docs/reference/{name}: stale: run make docs", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
