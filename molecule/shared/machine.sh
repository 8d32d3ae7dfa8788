#!/bin/sh
# Runs in a container of a node's image, and adds what a bare machine has: a kernel in /boot, and package sources with the driver.
# Also the programs that build repositories for tests (repository.py).
set -eu
sed -i -E '/^deb /s/ main.*$/ main contrib non-free non-free-firmware/' /etc/apt/sources.list
# An initial RAM disk with all of Debian's modules takes half a minute. This one has nouveau, which the driver must remove.
mkdir -p /etc/initramfs-tools/conf.d
printf 'MODULES=list\nCOMPRESS=gzip\n' >/etc/initramfs-tools/conf.d/tests
echo nouveau >/etc/initramfs-tools/modules
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends -o Dpkg::Options::=--force-confold \
  python3 python3-apt python3-debian linux-image-amd64 unattended-upgrades gpg gpg-agent apt-utils >/dev/null
# What costs most of a test's time, and what no test here is about: a compiler, and Docker. The scenario `default` installs Docker.
DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends \
  gcc make libc6-dev busybox-static docker.io $(apt-cache search --names-only '^docker-cli$' | cut -d' ' -f1) >/dev/null
# The role installs these: the download alone.
apt-get -qq install --yes --no-install-recommends --download-only dkms linux-headers-amd64 >/dev/null
