# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails of InfiniBand on a node without a card.

The RDMA devices are files in place of the kernel's, and their network devices are virtual Ethernet: the role reads
nothing else of rails.
"""

from __future__ import annotations

from node import Node

PORT = """
  ip link add ib{number} type veth peer name end{number}
  ip link set end{number} up
  port=/root/class/infiniband/mlx5_{number}/ports/1
  mkdir -p $port/gid_attrs/ndevs
  echo '1: CA' >$port/../../node_type
  echo '4: ACTIVE' >$port/state
  echo '5: LinkUp' >$port/phys_state
  echo InfiniBand >$port/link_layer
  echo '400 Gb/sec (4X NDR)' >$port/rate
  echo 0x2 >$port/lid
  echo 0x1 >$port/sm_lid
  echo ib{number} >$port/gid_attrs/ndevs/0
"""

SHOW = """
for name in $(ls /sys/class); do
  mkdir -p /root/class/$name
  mount --bind /sys/class/$name /root/class/$name
done
mount --rbind /root/class /sys/class
"""

HIDE = """
umount -l /sys/class
for name in $(ls /root/class); do umount /root/class/$name; done
rm -rf /root/class
"""

FORGET = """
systemctl disable inference-rdma.service
find /etc -name '*inference-rdma*' -delete
rm -f /etc/inference/rdma.json
systemctl daemon-reload
"""


def add(node: Node, rails: int) -> None:
    """Give a node rails mlx5_0, mlx5_1, … with the network devices ib0, ib1, …"""
    node.run("set -e\n" + "".join(PORT.format(number=number) for number in range(rails)) + SHOW)


def remove(node: Node, rails: int) -> None:
    """Remove the rails, and what the role rdma has made for them."""
    links = "".join(f"ip link del ib{number}\n" for number in range(rails))
    node.run(HIDE + links + FORGET, check=False)
