#!/bin/sh
# Runs on the machine as root. Prepares disks with data, a time server and an NFS server.
set -eu
disk=/dev/disk/by-id/virtio-

mkfs.ext4 -q -L precious "${disk}ext4"
pvcreate -q "${disk}lvm"
# One half of an array, as on a machine that waits for the other half.
mdadm --create /dev/md/half --quiet --run --level=1 --raid-devices=2 "${disk}md" missing </dev/null
mdadm --stop --quiet /dev/md/half
echo 'type=83' | sfdisk --quiet "${disk}parted"
mkswap --quiet "${disk}swap"
# A file system with an erased beginning: no tool recognises it, but the disk is not blank.
dd if=/dev/urandom of="${disk}noise" bs=1M count=4 status=none

# A second chronyd serves the machine's own clock, and does not set it.
cat >/etc/systemd/system/time-server.service <<'UNIT'
[Service]
ExecStartPre=/usr/bin/install -d -m 0750 /run/time-server
ExecStart=/usr/sbin/chronyd -d -x -u root "port 11123" "local stratum 8" "allow 127.0.0.0/8" "cmdport 0" \
  "bindcmdaddress /" "pidfile /run/time-server/pid"
[Install]
WantedBy=multi-user.target
UNIT
systemctl enable --now --quiet time-server.service

# systemd runs its generators at each reload. Emulated, those without work on this machine take half of a reload's 5 s.
mkdir -p /etc/systemd/system-generators
for name in nfs-server rpc-pipefs systemd-cryptsetup systemd-debug systemd-gpt-auto systemd-hibernate-resume \
  systemd-integritysetup systemd-rc-local systemd-run systemd-system-update systemd-sysv systemd-veritysetup; do
  ln -s /dev/null "/etc/systemd/system-generators/$name-generator"
done
systemctl daemon-reload

# Not enabled: after the reboot, this server does not run.
mkdir -p /srv/share
echo shared >/srv/share/file
echo '/srv/share 127.0.0.1(rw,no_root_squash,insecure)' >/etc/exports
systemctl start nfs-server.service
