#!/bin/sh
# Runs on a node that is a container, and adds what a bare machine has: a kernel in /boot, and package sources with the driver.
set -eu
sed -i -E '/^deb /s/ main.*$/ main contrib non-free non-free-firmware/' /etc/apt/sources.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends python3 python3-apt python3-debian \
  linux-image-amd64 unattended-upgrades >/dev/null
