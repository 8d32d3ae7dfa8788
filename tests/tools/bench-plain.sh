#!/usr/bin/env bash
# The comparison of `make bench`: a good shell script that sets up a fresh node with Docker, the same image and model (with checksums), and
# a unit. It ends when the engine has answered.
#   bench-plain.sh ADDRESS IMAGE MODEL_DIRECTORY      SSH_OPTIONS from the environment
set -euo pipefail
address=$1 image=$2 model=$3
read -ra options <<<"$SSH_OPTIONS"
node() { ssh "${options[@]}" "root@$address" "$@"; }

node bash -euo pipefail -s <<'NODE'
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends ca-certificates curl python3 python3-apt python3-debian rsync >/dev/null
mkdir -p /etc/docker
cat >/etc/docker/daemon.json <<'JSON'
{"live-restore": true, "log-driver": "json-file", "log-opts": {"max-size": "50m", "max-file": "3"},
 "insecure-registries": ["inference-registry:5000"]}
JSON
apt-get -qq install --yes --no-install-recommends docker.io >/dev/null
apt-mark hold docker.io >/dev/null
useradd --system --no-create-home --shell /usr/sbin/nologin inference
mkdir -p /mnt/models/tiny-a /mnt/nvme/workspace/vllm_cache/main
chown inference: /mnt/nvme/workspace/vllm_cache/main
NODE

rsync --archive --rsh="ssh ${options[*]}" "$model/" "root@$address:/mnt/models/tiny-a/"
(cd "$model" && sha256sum -- *) | node 'cd /mnt/models/tiny-a && sha256sum --quiet --check'

node bash -euo pipefail -s "$image" <<'NODE'
image=$1
docker pull --quiet "$image" >/dev/null
cat >/etc/systemd/system/vllm@main.service <<UNIT
[Unit]
After=docker.service
Wants=docker.service
[Service]
ExecStartPre=-/usr/bin/docker rm --force vllm-main
ExecStart=/usr/bin/docker run --name vllm-main --init --network host --user $(id -u inference):$(id -g inference) \
  --cap-drop ALL --security-opt no-new-privileges --shm-size 1g --mount type=bind,source=/mnt/models,target=/mnt/models,readonly \
  --mount type=bind,source=/mnt/nvme/workspace/vllm_cache/main,target=/cache \
  -e HOME=/cache -e USER=inference -e VLLM_CACHE_ROOT=/cache -e HF_HUB_OFFLINE=1 -e VLLM_NO_USAGE_STATS=1 \
  -e VLLM_CPU_KVCACHE_SPACE=1 -e OMP_NUM_THREADS=1 -e VLLM_CPU_OMP_THREADS_BIND=nobind \
  -e VLLM_ENABLE_V1_MULTIPROCESSING=0 \
  --entrypoint vllm $image serve /mnt/models/tiny-a --served-model-name main tiny-a --host 127.0.0.1 --port 5005 \
  --dtype float32 --enforce-eager --max-model-len 512
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --quiet --now vllm@main.service
until curl --silent --fail --max-time 30 http://127.0.0.1:5005/v1/completions -H 'Content-Type: application/json' \
  -d '{"model": "main", "prompt": "hello", "max_tokens": 1}' >/dev/null; do sleep 1; done
NODE
