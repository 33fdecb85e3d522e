// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// libhostwait_link.so: its presence in the process asks libhostwait.so to look at the references
// of linked programs (resolve_slots.cpp says how, and why this object exports no driver name).
// Leaving it out of LD_PRELOAD, or routes=nolink, leaves those references alone.
#include <cstdint>

namespace {
__attribute__((used, section(".note.hostwait"), aligned(4))) const struct {
  std::uint32_t name_bytes, text_bytes, type;
  char name[12];
  char text[12];
} note = {9, 12, 1, "hostwait", "link route"};
}  // namespace
