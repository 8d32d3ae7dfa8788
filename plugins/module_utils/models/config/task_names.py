# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the tasks that models are served for. Private to the collection.

A file of its own, without the tables that tasks.py needs: Ansible sends each file that a module imports to the node.
"""

from __future__ import annotations

GENERATE, TRANSCRIBE, EMBED, SCORE, CLASSIFY, REWARD = (
    *("generate", "transcribe", "embed", "score", "classify", "reward"),
)
TOKEN_EMBED, TOKEN_CLASSIFY = "token-embed", "token-classify"
"""SCORE includes reranking. Only the engine's API /pooling serves TOKEN_EMBED and TOKEN_CLASSIFY."""
