# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds fakes of the vendors' repositories on a node: publish.py NODE."""

from __future__ import annotations

import sys

from node import Node
from nvidia_packages import drivers
from repository import Repository
from toolkit_packages import toolkits

if __name__ == "__main__":
    Repository(Node(sys.argv[1]), "NVIDIA").publish(drivers())
    Repository(Node(sys.argv[1]), "Toolkit").publish(toolkits())
