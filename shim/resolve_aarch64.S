/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * The exported dlsym, dlvsym, dlopen, dlclose for aarch64. They end in a jump with the caller's
 * return address in x30, as the real function expects it. */
#if defined(__aarch64__)

        .text

/* Frame of 112 bytes: x29, x30, x0..x8, a result at 96. */
        .macro  save_arguments
        stp     x29, x30, [sp, #-112]!
        .cfi_def_cfa_offset 112
        .cfi_offset x29, -112
        .cfi_offset x30, -104
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        .endm

        .macro  restore_arguments
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldr     x8, [sp, #80]
        ldp     x29, x30, [sp], #112
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        .endm

        .macro  exported name
        .globl  \name
        .type   \name, %function
        .globl  hostwait_\name
        .hidden hostwait_\name  /* the same for ourselves: never another object's */
        .p2align 4
\name:
hostwait_\name:
        .cfi_startproc
        hint    #34     /* bti c */
        .endm

        .macro  finish name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .macro  load_word register, symbol
        adrp    \register, \symbol
        ldr     \register, [\register, #:lo12:\symbol]
        .endm

/* The long way: the answer, or the function to jump to. */
        .macro  decide_and_jump decide
        save_arguments
        mov     x3, x30
        add     x4, sp, #96
        bl      \decide
        cbnz    x0, 3f
        ldr     x0, [sp, #96]
        .cfi_remember_state
        ldp     x29, x30, [sp], #112
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_restore_state
3:      mov     x16, x0
        restore_arguments
        br      x16
        .endm

/* While hostwait_dl_attention is zero the next function is known. */
        exported dlsym
        adrp    x16, hostwait_dl_attention
        ldr     w16, [x16, #:lo12:hostwait_dl_attention]
        cbnz    w16, 2f
        cbz     x1, 1f
        ldrb    w16, [x1]
        cmp     w16, #'c'
        b.ne    1f
        ldrb    w16, [x1, #1]
        cmp     w16, #'u'
        b.ne    1f
        ldrb    w16, [x1, #2]
        sub     w16, w16, #'A'
        cmp     w16, #25
        b.ls    2f
1:      load_word x16, hostwait_next_dlsym
        br      x16
2:      decide_and_jump hostwait_on_dlsym
        finish  dlsym

        exported dlvsym
        decide_and_jump hostwait_on_dlvsym
        finish  dlvsym

        exported dlopen
        save_arguments
        bl      hostwait_on_dlopen
        sxtw    x0, w0
        str     x0, [sp, #24]
        restore_arguments
        load_word x16, hostwait_next_dlopen
        cbz     x16, 1f
        br      x16
1:      mov     x0, #0
        ret
        finish  dlopen

        exported dlclose
        save_arguments
        bl      hostwait_on_dlclose
        restore_arguments
        load_word x16, hostwait_next_dlclose
        cbz     x16, 1f
        br      x16
1:      mov     w0, #-1
        ret
        finish  dlclose

/* Branch target identification is kept; nothing here signs return addresses. */
        .section .note.gnu.property, "a", %note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000000, 4, 1, 0
#endif
        .section .note.GNU-stack, "", %progbits
