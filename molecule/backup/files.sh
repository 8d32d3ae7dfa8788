#!/bin/sh
# Runs on a node as root. Writes the files that the other roles would write, and an account whose number differs between the nodes.
set -eu
number=$(hostname | tr -dc 0-9)
useradd --create-home --uid "20$number" inference

file() {
  install -D -m "$3" /dev/null "$1"
  printf '%s' "$2" >"$1"
}
file /etc/inference/registry.json '{"schema": 1, "prompt": "You answer for the support desk."}' 0644
file /etc/inference/instances/main.json '{"schema": 1, "release": 2}' 0644
file /etc/inference/env/main.env 'VLLM_API_KEY=engine-key-c0ffee
' 0600
file /etc/systemd/system/vllm@main.service '[Service]
ExecStart=/bin/true
' 0644
file /etc/docker/daemon.json '{"live-restore": true}' 0644
file /var/lib/inference/releases/main/1/release.json '{"number": 1}' 0644
file /var/lib/inference/releases/main/2/release.json '{"number": 2}' 0640
chown inference /var/lib/inference/releases/main/2/release.json
file /var/lib/inference/known-good/main.json '{"schema": 1}' 0644
file /var/lib/inference/probe/main.json '{"verdict": "healthy"}' 0644
file /mnt/models/tiny-a/0123456789ab/manifest.json '{"files": {}}' 0644
file /mnt/models/tiny-a/0123456789ab/model.safetensors weights 0644
mkdir -p /var/lib/prometheus/node-exporter
ln -sfn 2 /var/lib/inference/releases/main/active
ln -sfn 2 /var/lib/inference/releases/main/current
