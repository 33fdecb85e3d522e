/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * musl's loader cannot relocate this library (it knows no IFUNC and lacks some of glibc's functions)
 * and ends a program with status 127 over that. But a preloaded file that defines these two names it
 * takes for a C library, does not map a second one, and goes on: such a program runs as without us.
 * glibc must not see the names: scripts/hide_symbols.py makes them hidden in the dynamic symbol
 * table after the link, and glibc's loader skips hidden symbols there (since 2.18). */
        .section .rodata.hostwait_musl, "a", %progbits
        .globl  __libc_start_main
        .globl  stdin
__libc_start_main:
stdin:
        .byte   0
        .section .note.GNU-stack, "", %progbits
