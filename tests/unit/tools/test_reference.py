# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of reference have every variable with its type and default, and a page that is out of date is named."""

from __future__ import annotations

from pathlib import Path

import pytest

# A tool of `make lint`, which the environments of newer ansible-cores do not have.
pytest.importorskip("antsibull_docs_parser")

import reference


def page(kind: str, name: str) -> str:
    return f"../{kind}s/{name}.md" if name.endswith("disks") else ""


SPECS = {
    "main": {
        "short_description": "Keep it",
        "description": ["It is kept.", "Always."],
        "options": {
            "x_port": {"type": "int", "default": 5003, "description": "A port."},
            "x_user": {"type": "str", "required": True, "description": ["The user.", "See M(a.b.disks)."]},
            "x_level": {"choices": ["low", "high"], "default": "low", "description": "A level."},
            "x_paths": {"type": "list", "elements": "str", "default": ["/a" * 20, "/b" * 20], "description": "Paths."},
            "x_items": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "description": "Items.",
                "options": {"name": {"type": "str", "required": True, "description": "Its V(name)."}},
            },
        },
    },
    "clean": {
        "short_description": "Clean it",
        "options": {
            "x_port": {"type": "int", "default": 5003, "description": "A port."},
            "x_all": {"type": "bool", "default": False, "description": "All of it."},
        },
    },
}


def test_a_role_page_has_every_variable() -> None:
    text = reference.role_page(
        "x", SPECS, {"x_user": "{{ site_user | default('a') }}", "x_paths": "{{ [a, b] }}"}, page
    )
    assert text.startswith("<!-- Made by `make docs` from roles/x/meta/argument_specs.yml")
    for words in (
        "# Role baremetal.inference.x\n\nKeep it.\n\nIt is kept.\n\nAlways.\n",
        "### x_port\n\nint · default `5003`\n\nA port.\n",
        "### x_user\n\nstr, required\n\nThe user.\n\nSee [`a.b.disks`](../modules/a.b.disks.md).\n",
        "set this variable, from `site_user`.\n",
        "str · one of `low`, `high` · default `low`",
        "### x_paths\n\nlist of str\n\nPaths.\n\nThe playbooks of this collection set this variable.\n",
        "\nDefault:\n\n```yaml\n- /a/a",
        "Keys:\n\n- `name` (str, required): Its `name`.\n",
        "### Entry point clean\n\nClean it.\n",
        "\nVariables of this entry point:\n\n- `x_all` (bool · default `false`): All of it.\n",
    ):
        assert words in text
    assert text.count("x_port") == 1, "what main has is not repeated"


def test_a_module_page_has_options_examples_and_returned_values() -> None:
    documentation = {
        "doc": {
            "short_description": "Do it",
            "description": ["It is done."],
            "attributes": {"check_mode": {"support": "full", "details": ["Truly."]}},
            "options": {"name": {"type": "dict", "description": "A.", "suboptions": {"b": {"description": ["B."]}}}},
        },
        "examples": "\n- name: Do it\n",
        "return": {
            "done": {
                "type": "dict",
                "returned": "success",
                "description": "What.",
                "contains": {"at": {"type": "int", "returned": "when done", "description": "When."}},
            }
        },
    }
    text = reference.module_page("doer", documentation, page)
    for words in (
        "- Check mode: full. Truly.",
        "### name\n\ndict\n\nA.\n\nKeys:\n\n- `b` (str): B.",
        "```yaml\n- name: Do it\n```",
        "### done\n\ndict\n\nReturned: success.\n\nWhat.\n\nKeys:\n\n- `at` (int) (when done): When.",
    ):
        assert words in text


def test_the_index_links_each_page_and_names_internal_modules() -> None:
    modules = {"disks": {"doc": {"short_description": "See M(a.b.disks)"}}}
    text = reference.index({"x": SPECS}, modules, ["hidden"])
    assert "| [x](roles/x.md) | Keep it |" in text
    assert "| [disks](modules/disks.md) | See `a.b.disks` |" in text
    assert "`hidden`" in text


def test_stale_missing_and_superfluous_pages_are_found_and_written(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles/gone.md").write_text("gone")
    (tmp_path / "README.md").write_text("old")
    wanted = {"README.md": "new", "modules/a.md": "a"}
    assert reference.stale(tmp_path, wanted) == ["README.md", "modules/a.md", "roles/gone.md"]
    reference.write(tmp_path, wanted)
    assert reference.stale(tmp_path, wanted) == []


def test_a_stale_page_is_an_error_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "PAGES", tmp_path)
    monkeypatch.setattr(reference, "pages", lambda: {"README.md": "new"})
    monkeypatch.setattr("sys.argv", ["reference.py"])
    assert reference.main() == 1
    assert "docs/reference/README.md: stale: run make docs" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["reference.py", "--write"])
    assert reference.main() == 0
    assert (tmp_path / "README.md").read_text() == "new"
    monkeypatch.setattr("sys.argv", ["reference.py"])
    assert reference.main() == 0
