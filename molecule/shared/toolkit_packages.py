# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fakes of the packages of NVIDIA's container toolkit, with the real names, relations and units.

Their programs describe one GPU by two names. Its device node is /dev/null. Docker is real."""

from __future__ import annotations

from collections.abc import Iterator

from repository import Package

PINNED, NEXT = "1.20.0", "1.21.0"
"""The version that the role installs by default, and a later version."""

UUID = "GPU-11112222-3333-4444-5555-666677778888"

# Writes a specification to the path in the unit's environment. JSON is YAML, too.
CTK = f"""#!/usr/bin/python3
import json, os, pathlib, sys

CONFIG = pathlib.Path("/etc/nvidia-container-runtime/config.toml")
if "config" in sys.argv:
    if not CONFIG.exists():
        CONFIG.parent.mkdir(parents=True, exist_ok=True)
        CONFIG.write_text('#debug = true\\n[nvidia-container-cli]\\nload-kmods = true\\n\\n'
                          '[nvidia-container-runtime]\\nlog-level = "info"\\nmode = "auto"\\n')
    sys.exit()
if os.path.exists("/run/nvidia-ctk-fails"):
    sys.exit("failed to initialize NVML: Driver Not Loaded")
null = {{"path": "/dev/nvidia0", "hostPath": "/dev/null"}}
devices = [{{"name": name, "containerEdits": {{"deviceNodes": [null], "env": ["GIVEN=" + name]}}}}
           for name in ("0", "{UUID}")]
spec = {{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices,
         "containerEdits": {{"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}}}
path = pathlib.Path(os.environ["NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"])
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps(spec))
"""

# Like the real runtime in mode cdi, it gives a container the variables of its devices, but makes no device nodes.
RUNTIME = """#!/usr/bin/python3
import json, os, sys, tomllib

def refuse(text):
    # Docker reads the error from this file.
    with open(sys.argv[sys.argv.index("--log") + 1], "a") as log:
        log.write(json.dumps({"level": "error", "msg": text}) + "\\n")
    sys.exit(1)

if "create" in sys.argv:
    path = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    config = json.load(open(path))
    environment = config["process"]["env"]
    asked = [line.partition("=")[2] for line in environment if line.startswith("NVIDIA_VISIBLE_DEVICES=")]
    mode = tomllib.load(open("/etc/nvidia-container-runtime/config.toml", "rb"))["nvidia-container-runtime"]["mode"]
    if asked and mode != "cdi":
        refuse("mode is " + mode)
    known = {"nvidia.com/gpu=" + device["name"]: device["containerEdits"]["env"]
             for device in json.load(open("/var/run/cdi/nvidia.yaml"))["devices"]}
    for name in asked[-1].split(",") if asked else []:
        if name not in known:
            refuse("unresolvable CDI devices " + name)
        environment += known[name]
    json.dump(config, open(path, "w"))
os.execvp("runc", ["runc", *sys.argv[1:]])
"""

# The unit is like that of version 1.18 and later.
SERVICE = """
[Unit]
Description=Refresh NVIDIA CDI specification file
ConditionPathExists=|/usr/bin/nvidia-smi
ConditionPathExists=|/usr/sbin/nvidia-smi
ConditionPathExists=/usr/bin/nvidia-ctk
[Service]
Type=oneshot
Environment=NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml
EnvironmentFile=-/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env
ExecStart=/usr/bin/nvidia-ctk cdi generate
[Install]
WantedBy=multi-user.target
"""

PATH = """
[Unit]
Description=Trigger CDI refresh on NVIDIA driver or toolkit install / upgrade events
[Path]
PathChanged=/usr/bin/nvidia-ctk
[Install]
WantedBy=multi-user.target
"""

POSTINST = """
[ "$1" = configure ] || exit 0
/usr/bin/nvidia-ctk --quiet config --config-file=/etc/nvidia-container-runtime/config.toml --in-place
systemctl daemon-reload
systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service || echo "not enabled" >&2
"""


def toolkit(version: str) -> Iterator[Package]:
    """All packages of one version."""
    full = f"{version}-1"
    same = f"(= {full})"
    yield Package("libnvidia-container1", full)
    yield Package("libnvidia-container-tools", full, {"Depends": f"libnvidia-container1 (>= {full})"})
    yield Package(
        "nvidia-container-toolkit-base",
        full,
        files={
            "/usr/bin/nvidia-ctk": CTK,
            "/usr/bin/nvidia-container-runtime": RUNTIME,
            "/etc/systemd/system/nvidia-cdi-refresh.service": SERVICE,
            "/etc/systemd/system/nvidia-cdi-refresh.path": PATH,
        },
        scripts={"postinst": POSTINST},
    )
    depends = f"nvidia-container-toolkit-base {same}, libnvidia-container-tools (>= {full})"
    yield Package("nvidia-container-toolkit", full, {"Depends": depends})


def toolkits() -> Iterator[Package]:
    """All versions that the tests need."""
    for version in (PINNED, NEXT):
        yield from toolkit(version)
