/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * The exported dlsym, dlvsym, dlopen, dlclose for x86-64. They end in a jump, never in a call that
 * returns here, so that the real function sees its caller's return address and stack. */
#if defined(__x86_64__)

        .text

/* Return address at 80(%rsp), 8 bytes for a result at 0(%rsp), all argument registers saved. The
 * stack is aligned for a call. */
        .macro  save_arguments
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        pushq   %rcx
        .cfi_adjust_cfa_offset 8
        pushq   %r8
        .cfi_adjust_cfa_offset 8
        pushq   %r9
        .cfi_adjust_cfa_offset 8
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        pushq   %r10
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        .endm

        .macro  restore_arguments
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r10
        .cfi_adjust_cfa_offset -8
        popq    %rax
        .cfi_adjust_cfa_offset -8
        popq    %r9
        .cfi_adjust_cfa_offset -8
        popq    %r8
        .cfi_adjust_cfa_offset -8
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        .endm

        .macro  exported name
        .globl  \name
        .type   \name, @function
        .globl  hostwait_\name
        .hidden hostwait_\name  /* the same for ourselves: never another object's */
        .p2align 4
\name:
hostwait_\name:
        .cfi_startproc
        endbr64
        .endm

        .macro  finish name
        .cfi_endproc
        .size   \name, . - \name
        .endm

/* The long way: the answer, or the function to jump to. */
        .macro  decide_and_jump decide
        save_arguments
        movq    72(%rsp), %rcx
        movq    %rsp, %r8
        call    \decide
        testq   %rax, %rax
        jne     3f
        movq    (%rsp), %rax
        addq    $72, %rsp
        .cfi_adjust_cfa_offset -72
        ret
        .cfi_adjust_cfa_offset 72
3:      movq    %rax, %r11
        restore_arguments
        jmp     *%r11
        .endm

/* While hostwait_dl_attention is zero the next function is known. */
        exported dlsym
        cmpl    $0, hostwait_dl_attention(%rip)
        jne     2f
        testq   %rsi, %rsi
        je      1f
        cmpb    $'c', (%rsi)
        jne     1f
        cmpb    $'u', 1(%rsi)
        jne     1f
        cmpb    $'A', 2(%rsi)
        jb      1f
        cmpb    $'Z', 2(%rsi)
        jbe     2f
1:      jmp     *hostwait_next_dlsym(%rip)
2:      decide_and_jump hostwait_on_dlsym
        finish  dlsym

        exported dlvsym
        decide_and_jump hostwait_on_dlvsym
        finish  dlvsym

        exported dlopen
        save_arguments
        call    hostwait_on_dlopen
        movslq  %eax, %r11
        movq    %r11, 56(%rsp)
        restore_arguments
        movq    hostwait_next_dlopen(%rip), %r11
        testq   %r11, %r11
        je      1f
        jmp     *%r11
1:      xorl    %eax, %eax
        ret
        finish  dlopen

        exported dlclose
        save_arguments
        call    hostwait_on_dlclose
        restore_arguments
        movq    hostwait_next_dlclose(%rip), %r11
        testq   %r11, %r11
        je      1f
        jmp     *%r11
1:      movl    $-1, %eax
        ret
        finish  dlclose

/* Indirect branch tracking and shadow stack are kept. */
        .section .note.gnu.property, "a", @note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 3, 0
#endif
        .section .note.GNU-stack, "", @progbits
