# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA driver of a node: the choice of a driver, its packages, and checks whether it is built, loaded, in use and
able to compute. No file imports Ansible. Private to the collection."""
