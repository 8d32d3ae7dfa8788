import os, sys
def test_x(host):
    assert host.run("systemctl is-system-running --wait").stdout.strip() in ("running","degraded")
    print(sys.version, os.environ["INFERENCE_CACHE"])
