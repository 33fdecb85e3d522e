// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "kernels.hpp"

#define HW_PTX_HEAD ".version 6.4\n.target sm_70\n.address_size 64\n"

namespace hostwait::probe {

// At 20 ns or more a turn, 2^28 turns take at least five seconds.
const char* const spin_ptx = HW_PTX_HEAD R"(
.visible .entry spin(.param .u64 ns, .param .u64 flags)
{
  .reg .pred %p<4>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [ns];
  ld.param.u64 %rd2, [flags];
  mov.u64 %rd3, %globaltimer;
  mov.u32 %r1, 1;
  mov.u32 %r2, 0;
  cvta.to.global.u64 %rd4, %rd2;
  setp.eq.u64 %p1, %rd2, 0;
  @%p1 bra LOOP;
  st.volatile.global.u32 [%rd4], %r1;
  membar.sys;
LOOP:
  mov.u64 %rd5, %globaltimer;
  sub.u64 %rd6, %rd5, %rd3;
  add.u32 %r2, %r2, 1;
  setp.lt.u64 %p2, %rd6, %rd1;
  setp.lt.and.u32 %p3, %r2, 268435456, %p2;
  @%p3 bra LOOP;
  @%p1 bra DONE;
  st.volatile.global.u32 [%rd4+4], %r1;
DONE:
  ret;
}
.visible .entry tiny()
{
  ret;
}
)";

const char* const plain_ptx = HW_PTX_HEAD R"(
.visible .global .align 4 .b8 cell[64];
.visible .entry plain()
{
  ret;
}
)";

const char* const local_stack_ptx = HW_PTX_HEAD R"(
.visible .entry local_stack(.param .u64 out, .param .u32 index)
{
  .local .align 4 .b8 depot[65536];
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [index];
  and.b32 %r2, %r1, 16383;
  xor.b32 %r3, %r2, 8191;
  mov.u64 %rd2, depot;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  mul.wide.u32 %rd5, %r3, 4;
  add.s64 %rd6, %rd2, %rd5;
  st.local.u32 [%rd4], %r1;
  ld.local.u32 %r4, [%rd6];
  setp.eq.u64 %p1, %rd1, 0;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd7, %rd1;
  st.global.u32 [%rd7], %r4;
DONE:
  ret;
}
)";

const char* const printing_ptx = HW_PTX_HEAD R"(
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 text[2] = {46, 0};
.visible .entry printing()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd2, %rd1;
  {
  .param .b64 param0;
  st.param.b64 [param0+0], %rd2;
  .param .b64 param1;
  st.param.b64 [param1+0], 0;
  .param .b32 retval0;
  call.uni (retval0), vprintf, (param0, param1);
  ld.param.b32 %r1, [retval0+0];
  }
  ret;
}
)";

}  // namespace hostwait::probe
