# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""System prompts: puts a prompt in front of the chat template of a model, for a variant. Private to the collection.

Pure: callers pass files as texts, and the function that renders a template. Only `rendering` needs Jinja, and imports
it when called.
"""
