#!/bin/sh
# A fake of NVIDIA's installer. Its kernel module does nothing, but DKMS really builds the module.
targetdir="NVIDIA-Linux-x86_64-@VERSION@"
case " $* " in
*" --advanced-options "*)
  # As an older installer, it lacks some options that the role uses if they exist.
  printf '  -z, --no-nouveau-check\n      Text.\n\n  --rebuild-initramfs, --no-rebuild-initramfs\n'
  exit 0
  ;;
esac
set -eu
log=/var/log/nvidia-installer.log
echo "installing $targetdir from $TMPDIR" >$log
echo "$*" >/root/installer-arguments
if [ -e /root/installer-fails ]; then
  printf 'ERROR: The kernel module could not be built,\n       for this is a test.\n\n-> done\n' >>$log
  exit 1
fi

source=/usr/src/nvidia-@VERSION@
mkdir -p $source /var/lib/nvidia
cat >$source/nvidia.c <<'END'
#include <linux/module.h>
static int __init start(void) { return 0; }
static void __exit stop(void) { }
module_init(start);
module_exit(stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("@VERSION@");
END
echo 'obj-m := nvidia.o' >$source/Makefile
cat >$source/dkms.conf <<'END'
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="@VERSION@"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
END
# The real installer builds for the running kernel, which is the host's here.
dkms add nvidia/@VERSION@ >>$log

echo @VERSION@ >/var/lib/nvidia/log
printf '#!/bin/sh\n' >/usr/bin/nvidia-persistenced
cat >/usr/bin/nvidia-uninstall <<'END'
#!/bin/sh
set -eu
dkms remove nvidia/@VERSION@ --all >/dev/null
rm -rf /usr/src/nvidia-@VERSION@ /var/lib/nvidia /usr/bin/nvidia-persistenced /usr/bin/nvidia-uninstall
END
chmod 755 /usr/bin/nvidia-persistenced /usr/bin/nvidia-uninstall
