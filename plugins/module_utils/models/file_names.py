# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of files of models, for programs that read nothing else of a model. Private to the collection."""

from __future__ import annotations

ADAPTER_CONFIG = "adapter_config.json"
"""The configuration of a LoRA adapter, as PEFT writes it."""
