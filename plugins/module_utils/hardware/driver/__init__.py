# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA driver of a node: which one fits, what it consists of, whether it is built, loaded, in use and able to
compute. One file per question, none imports Ansible. Private to the collection."""
