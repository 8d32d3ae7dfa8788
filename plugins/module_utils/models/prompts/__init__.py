# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""System prompts: the model's own chat template with a prompt in front, and the variant that holds it. Private to the
collection.

Pure: files come as text, and what renders a template is passed in. Only `rendering` needs Jinja, and loads it when
it is asked.
"""
