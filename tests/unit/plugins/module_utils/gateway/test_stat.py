# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of HAProxy's statistics."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.stat import BACKEND, rows

STAT = """\
# pxname,svname,scur,status,last_chk,
set_main,n1,2,UP,"Layer7 check passed, in ""time"" again",
set_main,BACKEND,2,UP,,

"""


def test_each_row_has_its_values_by_column() -> None:
    server, backend = rows(STAT)
    assert (server["pxname"], server["svname"], server["scur"], server["status"]) == ("set_main", "n1", "2", "UP")
    assert server["last_chk"] == 'Layer7 check passed, in "time" again'
    assert (backend["svname"], backend["last_chk"]) == (BACKEND, "")


def test_no_answer_has_no_rows() -> None:
    """HAProxy may have ended before its answer."""
    assert rows("") == ()
