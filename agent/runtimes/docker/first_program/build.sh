#!/bin/sh
# Builds muster-first for both architectures into the directory named, by default this one. The same compilers give the
# same bytes: Debian 12's gcc and gcc-aarch64-linux-gnu.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
into=${1:-$here}
cd "$here"
for architecture in ${2:-x86_64 aarch64}; do
  compiler=gcc
  [ "$architecture" = x86_64 ] || compiler=$architecture-linux-gnu-gcc
  "$compiler" -std=gnu11 -Os -static -nostdlib -ffreestanding -fno-builtin -fno-pie -no-pie -fno-stack-protector \
    -fno-asynchronous-unwind-tables -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wcast-qual -Wvla -Wundef \
    -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,noexecstack -s \
    -o "$into/first-$architecture" first.c
done
