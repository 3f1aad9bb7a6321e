#!/bin/sh
# Builds muster-inside for both architectures into the directory named, by default this one. The same compilers give the
# same bytes: Debian 12's gcc and gcc-aarch64-linux-gnu, with the kernel's headers for each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
into=${1:-$here}
cd "$here"
for architecture in ${2:-x86_64 aarch64}; do
  compiler=gcc
  [ "$architecture" = x86_64 ] || compiler=$architecture-linux-gnu-gcc
  "$compiler" -std=c11 -Os -static -nostdlib -ffreestanding -fno-builtin -fno-pie -no-pie -fno-stack-protector \
    -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns \
    -Wall -Wextra -Werror -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual \
    -Wvla -Wformat=2 -Wundef -Wnull-dereference \
    -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,noexecstack -s \
    -o "$into/muster-inside-$architecture" inside.c door.c stay.c main.c order.c shell.c connect.c call.c tasks.c files.c sftp.c tree.c hash.c
done
