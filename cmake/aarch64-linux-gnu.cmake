# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Toolchain: Debian's cross compiler for aarch64; what it built runs under qemu's user emulation.
# scripts/aarch64.sh uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
# The C library that libc6-arm64-cross brings: the emulator looks for the loader there. LD_PRELOAD and
# the like stand in a test's environment: the emulator passes them on and, being linked statically,
# does not obey them itself.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu)
