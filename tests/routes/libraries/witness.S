/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * A dlsym that writes its argument registers down, then goes on to libc's by a jump; preloaded
 * behind us. */
#if defined(__x86_64__)
        .text
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        movq    witness@GOTPCREL(%rip), %r11
        movq    %rdi, (%r11)
        movq    %rsi, 8(%r11)
        movq    %rdx, 16(%r11)
        movq    %rcx, 24(%r11)
        movq    %r8, 32(%r11)
        movq    %r9, 40(%r11)
        movq    %rax, 48(%r11)
        movq    %r10, 56(%r11)
        jmp     *witness_next(%rip)
        .cfi_endproc
        .size   dlsym, . - dlsym

        .bss
        .globl  witness
        .type   witness, @object
        .size   witness, 64
        .p2align 3
witness:
        .zero   64
#endif
        .section .note.GNU-stack, "", @progbits
