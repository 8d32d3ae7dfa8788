# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that runs Python in an engine's image, without network and capabilities. Private to the collection."""

from __future__ import annotations


def python_argv(docker: str, image: str, code: str, *options: str) -> list[str]:
    """The command, for an image that the node has; `options` are more options of docker run."""
    return [
        *(docker, "run", "--rm", "--pull", "never", "--network", "none", "--cap-drop", "ALL", "--log-driver", "none"),
        *("--security-opt", "no-new-privileges", "--read-only", *options),
        *("--entrypoint", "python3", image, "-c", code),
    ]
