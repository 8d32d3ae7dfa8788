# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment variables of the engine that decide, like flags, whether a model fits. Private to the collection."""

from __future__ import annotations

CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"
"""GiB of KV cache for each process of a CPU engine, instead of a utilization (vllm/platforms/cpu.py)."""

LONGER = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""With 1, the engine takes longer requests than the model's configuration allows (vllm/envs.py)."""
