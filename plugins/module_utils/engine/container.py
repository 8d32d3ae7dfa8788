# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to the engine's image: a little Python in a container without network or rights. Private to the
collection."""

from __future__ import annotations


def python_argv(docker: str, image: str, code: str, *options: str) -> list[str]:
    """The command that runs Python code in an image that the node has; `options` are further ones of docker run."""
    return [
        *(docker, "run", "--rm", "--pull", "never", "--network", "none", "--cap-drop", "ALL", "--log-driver", "none"),
        *("--security-opt", "no-new-privileges", "--read-only", *options),
        *("--entrypoint", "python3", image, "-c", code),
    ]
