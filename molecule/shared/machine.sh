#!/bin/sh
# Run on a container that is a node, to make it what a bare machine is: with a kernel in /boot, and sources that have the
# driver.
set -eu
sed -i -E '/^deb /s/ main.*$/ main contrib non-free non-free-firmware/' /etc/apt/sources.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends python3 python3-apt python3-debian \
  linux-image-amd64 unattended-upgrades >/dev/null
