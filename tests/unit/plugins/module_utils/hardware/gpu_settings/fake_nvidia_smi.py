# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of nvidia-smi. The file gpus.json in its directory has the state of the GPUs. Calls read and change the state.

The file calls.log has the calls that set something on a GPU of the node. The molecule tests copy the program to nodes,
so the program needs only Debian's Python.
"""

from __future__ import annotations

import html
import json
import re
import sys
from pathlib import Path
from typing import Any

PROFILES = (
    # Name, number, count, GiB, compute slices, eighths of the memory
    ("1g.10gb", 19, 7, 9.75, 1, 1),
    ("1g.10gb+me", 20, 1, 9.75, 1, 1),
    ("1g.20gb", 15, 4, 19.62, 1, 2),
    ("2g.20gb", 14, 3, 19.62, 2, 2),
    ("3g.40gb", 9, 2, 39.5, 3, 4),
    ("4g.40gb", 5, 1, 39.5, 4, 4),
    ("7g.80gb", 0, 1, 79.25, 7, 8),
)

REPORT = """\
<gpu id="{address}">
<product_name>{name}</product_name>
<product_architecture>{architecture}</product_architecture>
<persistence_mode>{persistence}</persistence_mode>
<mig_mode><current_mig>{mig[0]}</current_mig><pending_mig>{mig[1]}</pending_mig></mig_mode>
<mig_devices>None</mig_devices>
<uuid>{uuid}</uuid>
<pci><pci_bus_id>{address}</pci_bus_id></pci>
<compute_mode>{compute}</compute_mode>
<ecc_mode><current_ecc>{ecc[0]}</current_ecc><pending_ecc>{ecc[1]}</pending_ecc></ecc_mode>
<gpu_power_readings>
<current_power_limit>{limit}</current_power_limit>
<requested_power_limit>{limit}</requested_power_limit>
<default_power_limit>{power[1]}</default_power_limit>
<min_power_limit>{power[0]}</min_power_limit>
<max_power_limit>{power[2]}</max_power_limit>
</gpu_power_readings>
<max_clocks><graphics_clock>1980 MHz</graphics_clock><mem_clock>2619 MHz</mem_clock></max_clocks>
<processes>{processes}</processes>
</gpu>
"""

PROCESS = "<process_info><pid>{0}</pid><type>C</type><process_name>{1}</process_name></process_info>"


def gpu(number: int, **more: Any) -> dict[str, Any]:
    """A GPU after a boot."""
    return {
        "address": f"00000000:{0x1B + number:02X}:00.0",
        "uuid": f"GPU-00000000-1111-4222-8333-{number:012d}",
        "name": "NVIDIA H100 80GB HBM3",
        "architecture": "Hopper",
        "persistence": "Enabled",
        "mig": ["Disabled", "Disabled"],
        "ecc": ["Enabled", "Enabled"],
        "compute": "Default",
        # Limits in W: the least, the default, the largest
        "power": [200, 700, 700],
        "limit": 700,
        "processes": [],
        "instances": [],
        "held": False,
        "locked": {},
        **more,
    }


def reboot(gpus: list[dict[str, Any]]) -> None:
    """What a reboot does to GPUs: pending values take effect. All other settings but the persistence mode become the
    defaults."""
    for one in gpus:
        mig = one["mig"][1] if one["architecture"] == "Ampere" else "Disabled" if one["mig"][0] != "N/A" else "N/A"
        limit = one["power"][1] if one["power"] else None
        one |= {"mig": [mig] * 2, "ecc": [one["ecc"][1]] * 2, "compute": "Default", "limit": limit}
        one |= {"processes": [], "instances": [], "held": False, "locked": {}}


def _watts(number: float | None) -> str:
    return "N/A" if number is None else f"{number:.2f} W"


def _report(gpus: list[dict[str, Any]]) -> str:
    parts = []
    for one in gpus:
        processes = "".join(PROCESS.format(pid, html.escape(name, quote=False)) for pid, name in one["processes"])
        power = [_watts(number) for number in one["power"] or (None, None, None)]
        parts.append(REPORT.format_map({**one, "power": power, "limit": _watts(one["limit"]), "processes": processes}))
    head = f"<nvidia_smi_log>\n<driver_version>580.95.05</driver_version><attached_gpus>{len(gpus)}</attached_gpus>\n"
    return f"{head}{''.join(parts)}</nvidia_smi_log>"


class Smi:
    """One call of nvidia-smi."""

    def __init__(self, home: Path, state: dict[str, Any], arguments: list[str]) -> None:
        self.log = home / "calls.log"
        self.state = state
        self.arguments = arguments

    def run(self) -> tuple[int, str]:
        """The exit status and the output."""
        if "broken" in self.state:
            return 9, self.state["broken"]
        if self.arguments == ["-q", "-x"]:
            return 0, _report(self.state["gpus"])
        mig = self.arguments[0] == "mig"
        rest = self.arguments[1:] if mig else self.arguments
        assert rest[0] == "-i", self.arguments
        # As nvidia-smi, accept addresses in lower and upper case, with domains of four or eight digits.
        given = rest[1].upper().rjust(16, "0")
        one = next((one for one in self.state["gpus"] if one["address"] == given), None)
        if one is None:
            return 6, "No devices were found"
        option, *values = rest[2:]
        if option in ("-lgip", "-lgi", "-lci"):
            return self.table(one, option)
        with self.log.open("a") as log:
            log.write(" ".join(self.arguments) + "\n")
        if option in one.get("deaf", ()):
            return 0, f"Setting it is not supported for GPU {given}.\nTreating as warning and moving on.\nAll done."
        if option in one.get("failing", ()):
            return 4, f"Failed to set it for GPU {given}: Insufficient Permissions"
        method = getattr(self, f"{'mig_' if mig else 'set_'}{option[1:]}")
        code, said = method(one, *values)
        return code, said or f"All done for GPU {given}."

    def set_pm(self, one: dict[str, Any], on: str) -> tuple[int, str]:
        one["persistence"] = "Enabled" if on == "1" else "Disabled"
        return 0, ""

    def set_e(self, one: dict[str, Any], on: str) -> tuple[int, str]:
        one["ecc"][1] = "Enabled" if on == "1" else "Disabled"
        return 0, "All done.\nReboot required."

    def set_c(self, one: dict[str, Any], mode: str) -> tuple[int, str]:
        names = {"DEFAULT": "Default", "EXCLUSIVE_PROCESS": "Exclusive_Process", "PROHIBITED": "Prohibited"}
        if one["mig"][0] == "Enabled":
            return 3, f"Unable to set the compute mode for GPU {one['address']}: Not Supported"
        one["compute"] = names[mode]
        return 0, ""

    def set_pl(self, one: dict[str, Any], watts: str) -> tuple[int, str]:
        least, _delivered, most = one["power"]
        if not least <= float(watts) <= most:
            return 2, f"Provided power limit {watts} W is not a valid power limit.\nTerminating early."
        one["limit"] = float(watts)
        return 0, ""

    def set_lgc(self, one: dict[str, Any], clocks: str) -> tuple[int, str]:
        least, most = clocks.split(",")
        one["locked"]["gpu"] = [int(least), int(most)]
        return 0, f'GPU clocks set to "(gpuClkMin {least}, gpuClkMax {most})" for GPU {one["address"]}\nAll done.'

    def set_rgc(self, one: dict[str, Any]) -> tuple[int, str]:
        one["locked"].pop("gpu", None)
        return 0, "All done."

    def set_lmc(self, one: dict[str, Any], clocks: str) -> tuple[int, str]:
        one["locked"]["memory"] = [int(number) for number in clocks.split(",")]
        return 0, ""

    def set_rmc(self, one: dict[str, Any]) -> tuple[int, str]:
        one["locked"].pop("memory", None)
        return 0, ""

    def set_mig(self, one: dict[str, Any], on: str) -> tuple[int, str]:
        mode = "Enabled" if on == "1" else "Disabled"
        if one["instances"]:
            return 19, f"Unable to disable MIG Mode for GPU {one['address']}: In use by another client"
        one["mig"][1] = mode
        if one["held"]:
            return 0, f"Warning: MIG mode is in pending state for GPU {one['address']}:In use by another client"
        one["mig"][0] = mode
        one["compute"] = "Default"
        if one["architecture"] == "Ampere":
            # The GPU is reset for the change of the mode.
            one |= {"limit": one["power"][1], "locked": {}}
        return 0, ""

    def mig_cgi(self, one: dict[str, Any], wanted: str, default: str) -> tuple[int, str]:
        assert default == "-C"
        if one["mig"][0] != "Enabled":
            return 6, "No MIG-enabled devices found."
        sizes = {profile[0]: profile for profile in PROFILES}
        for name in wanted.split(","):
            taken = [sizes[there["profile"]] for there in one["instances"]]
            size = sizes[name]
            full = sum(there[4] for there in taken) + size[4] > 7 or sum(there[5] for there in taken) + size[5] > 8
            # nvidia-smi keeps no room for a larger instance that comes later.
            if full or any(there[5] < size[5] for there in taken):
                return 19, f"Unable to create a GPU instance on GPU  0 using profile {name}: Insufficient Resources"
            number = max([there["number"] for there in one["instances"]], default=0) + 1
            one["instances"].append({"number": number, "profile": name, "computes": [name]})
        return 0, "Successfully created GPU instances"

    def mig_dci(self, one: dict[str, Any]) -> tuple[int, str]:
        if not any(there["computes"] for there in one["instances"]):
            return 6, "No compute instances found: Not Found"
        for there in one["instances"]:
            there["computes"] = []
        return 0, ""

    def mig_dgi(self, one: dict[str, Any]) -> tuple[int, str]:
        if any(there["computes"] for there in one["instances"]):
            return 19, "Unable to destroy GPU instance: In use by another client"
        if not one["instances"]:
            return 6, "No GPU instances found: Not Found"
        one["instances"] = []
        return 0, ""

    def table(self, one: dict[str, Any], option: str) -> tuple[int, str]:
        rows = []
        if option == "-lgip":
            if one["mig"][0] == "N/A":
                return 6, "No MIG-supported devices found."
            for name, number, most, memory, _compute, _eighths in PROFILES:
                rows.append(
                    f"|   0  MIG {name:14} {number:3}     0/{most}   {memory:9}       No     16     1     0   |"
                )
                rows.append("|                                                              1     1     0   |")
        elif one["mig"][0] != "Enabled":
            return 6, "No MIG-enabled devices found."
        elif option == "-lgi":
            for place, there in enumerate(one["instances"]):
                rows.append(f"|   0  MIG {there['profile']:14}  19  {there['number']:8}          {place}:1     |")
        else:
            for there in one["instances"]:
                for place, name in enumerate(there["computes"]):
                    rows.append(
                        f"|   0  {there['number']:5}       MIG {name:14}  0   {place:8}          {place}:1     |"
                    )
        if not rows:
            return 6, f"No {'GPU' if option == '-lgi' else 'compute'} instances found: Not Found"
        line = "+" + "-" * 70 + "+"
        return 0, "\n".join([line, "| GPU   Name             ID |", re.sub("-", "=", line), *rows, line])


def call(home: Path, arguments: list[str]) -> tuple[int, str]:
    """Run the fake on the state in a directory. Returns the exit status and the output."""
    file = home / "gpus.json"
    state = json.loads(file.read_text())
    code, said = Smi(home, state, arguments).run()
    file.write_text(json.dumps(state, indent=1))
    return code, said


def main() -> int:
    code, said = call(Path(__file__).resolve().parent, sys.argv[1:])
    print(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
