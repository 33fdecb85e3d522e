// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What calls do to open captures, held against the stored probe: every row of its group `capture`,
// where one thread captured a non-blocking stream and made the call itself. Flipping any branch
// turns a row or a documented case wrong.
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "roles.hpp"
#include "support/catch.hpp"

#include "capture_rules.hpp"
#include "classify.hpp"

using namespace hostwait;
using effect = capture_effect;

namespace {

using rule = std::function<effect(row_id, const call_facts&, const capture_view&, capture_mode)>;

struct made_call {
  row_id row;
  call_facts facts;
  bool on_captured = false;
};

const std::map<std::string, made_call>& calls() {
  const CUstream captured = reinterpret_cast<CUstream>(0x100),
                 busy = reinterpret_cast<CUstream>(0x200);
  static int local;
  static const std::map<std::string, made_call> all = {
      {"cuMemcpyDtoHAsync_v2/captured",
       {row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(&local, 16, 4, captured), true}},
      {"cuLaunchKernel/captured",
       {row_cuLaunchKernel,
        roles::launch::of(nullptr, 1, 1, 1, 1, 1, 1, 0, captured, nullptr, nullptr), true}},
      {"cuStreamSynchronize/captured",
       {row_cuStreamSynchronize, roles::stream_first::of(captured), true}},
      {"cuStreamQuery/captured", {row_cuStreamQuery, roles::stream_first::of(captured), true}},
      {"cuStreamSynchronize/busy", {row_cuStreamSynchronize, roles::stream_first::of(busy)}},
      {"cuStreamQuery/busy", {row_cuStreamQuery, roles::stream_first::of(busy)}},
      {"cuCtxSynchronize/-", {row_cuCtxSynchronize, roles::context_only::of()}},
      {"cuMemAlloc_v2/-", {row_cuMemAlloc_v2, roles::alloc::of(nullptr, 1 << 20)}},
      {"cuMemcpyDtoH_v2/pageable", {row_cuMemcpyDtoH_v2, roles::dtoh::of(&local, 16, 4)}},
      {"cuMemcpyDtoHAsync_v2/busy",
       {row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(&local, 16, 4, busy)}}};
  return all;
}

capture_mode mode_named(const std::string& name) {
  return name == "global"         ? capture_global
         : name == "thread_local" ? capture_thread_local
                                  : capture_relaxed;
}

struct tally {
  unsigned rows = 0, agree = 0, may = 0, wrong = 0;
};

tally run(const rule& judge) {
  static const auto document =
      nlohmann::json::parse(std::ifstream(HOSTWAIT_PROBE_JSON), nullptr, true);
  tally t;
  for (const auto& row : document["rows"]) {
    const std::string id = row["id"];
    if (id.rfind("capture/", 0) != 0) continue;
    const std::size_t slash = id.find('/', 8);
    const auto call = calls().find(id.substr(slash + 1));
    if (call == calls().end()) continue;  // cuPointerGetAttributes: no row of the table
    ++t.rows;
    const bool survived = row["note"] == "the capture survived";
    capture_view view;
    view.mode = mode_named(id.substr(8, slash - 8));
    view.of_this_thread = true;
    view.on_stream = call->second.on_captured;
    switch (judge(call->second.row, call->second.facts, view, capture_global)) {
      case effect::may_break:
        ++t.may;
        break;
      case effect::breaks:
        ++(survived ? t.wrong : t.agree);
        break;
      case effect::none:
        ++(survived ? t.agree : t.wrong);
        break;
    }
  }
  return t;
}

// Documented cases that one thread on one GPU does not show: cuThreadExchangeStreamCaptureMode's
// table, and implicit order. True where the judge gets all of them right.
bool documented(const rule& judge) {
  const made_call query = calls().at("cuStreamQuery/busy");
  bool right = true;
  for (const capture_mode thread : {capture_global, capture_thread_local, capture_relaxed})
    for (const capture_mode mode : {capture_global, capture_thread_local, capture_relaxed})
      for (const bool own : {true, false}) {
        capture_view view;
        view.mode = mode;
        view.of_this_thread = own;
        const bool forbidden =
            thread != capture_relaxed &&
            (own ? mode != capture_relaxed : mode == capture_global && thread == capture_global);
        right &= judge(query.row, query.facts, view, thread) ==
                 (forbidden ? effect::breaks : effect::none);
      }
  capture_view blocking;
  blocking.mode = capture_relaxed;
  blocking.blocking = true;
  const made_call copy = calls().at("cuMemcpyDtoH_v2/pageable");
  right &= judge(copy.row, copy.facts, blocking, capture_global) == effect::breaks;
  call_facts own = copy.facts;
  own.per_thread = true;  // on the calling thread's own stream
  right &= judge(row_cuMemcpyDtoH_v2_ptds, own, blocking, capture_global) == effect::none;
  call_facts legacy = roles::stream_first::of(nullptr);
  right &= judge(row_cuStreamSynchronize, legacy, blocking, capture_global) == effect::breaks;
  capture_view global;
  const call_facts nothing_freed = roles::free_device::of(0);
  right &= judge(row_cuMemFree_v2, nothing_freed, global, capture_global) == effect::none;
  right &= judge(row_cuMemFree_v2, roles::free_device::of(16), global, capture_global) ==
           effect::may_break;
  return right;
}

}  // namespace

TEST_CASE("every measured capture row") {
  const tally t = run(effect_on_capture);
  CHECK(t.rows == 60);
  CHECK(t.wrong == 0);
  // A waiting copy on the legacy stream: whether the captured stream blocks is not known.
  CHECK(t.may == 6);
  CHECK(documented(effect_on_capture));
}

TEST_CASE("an event that was captured may be asked about by a thread that may do anything") {
  capture_view other;
  CHECK(effect_on_capture(row_cuEventQuery, roles::event_only::of(nullptr), other,
                          capture_relaxed) == effect::may_break);
  CHECK(effect_on_capture(row_cuEventQuery, roles::event_only::of(nullptr), other,
                          capture_global) == effect::breaks);
}

TEST_CASE("answers that say a capture was broken") {
  for (const CUresult broken :
       {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION, CUDA_ERROR_CAPTURED_EVENT})
    CHECK(result_breaks_capture(broken));
  for (const CUresult other :
       {CUDA_SUCCESS, CUDA_ERROR_NOT_READY, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED})
    CHECK_FALSE(result_breaks_capture(other));
}

TEST_CASE("flipping any branch makes a row or a documented case wrong") {
  struct mutant {
    const char* name;
    rule judge;
  };
  const auto flip_where = [](auto where) -> rule {
    return
        [where](row_id row, const call_facts& facts, const capture_view& view, capture_mode mode) {
          const effect e = effect_on_capture(row, facts, view, mode);
          if (!where(rows[row].rule, facts, view)) return e;
          return e == effect::none ? effect::breaks : effect::none;
        };
  };
  const auto with_view = [](auto change) -> rule {
    return [change](row_id row, const call_facts& facts, capture_view view, capture_mode mode) {
      change(view, mode);
      return effect_on_capture(row, facts, view, mode);
    };
  };
  using facts = const call_facts&;
  using view = const capture_view&;
  const mutant mutants[] = {
      {"context", flip_where([](rule_id r, facts, view) { return r == rule_id::context; })},
      {"stream", flip_where([](rule_id r, facts, view) { return r == rule_id::stream; })},
      {"query", flip_where([](rule_id r, facts, view) { return r == rule_id::query; })},
      {"alloc", flip_where([](rule_id r, facts, view) { return r == rule_id::alloc; })},
      {"copy_async", flip_where([](rule_id r, facts, view) { return r == rule_id::copy_async; })},
      {"copy_sync", flip_where([](rule_id r, facts, view) { return r == rule_id::copy_sync; })},
      {"launch", flip_where([](rule_id r, facts, view) { return r == rule_id::launch; })},
      {"free", flip_where([](rule_id r, facts, view) { return r == rule_id::free; })},
      {"on the stream", with_view([](capture_view& v, capture_mode) { v.on_stream = false; })},
      {"the mode", with_view([](capture_view& v, capture_mode) { v.mode = capture_relaxed; })},
      {"whose thread",
       with_view([](capture_view& v, capture_mode) { v.of_this_thread = !v.of_this_thread; })},
      {"the thread's mode", with_view([](capture_view&, capture_mode& m) { m = capture_global; })},
      {"implicit order", with_view([](capture_view& v, capture_mode) { v.blocking = false; })}};
  for (const mutant& m : mutants) {
    INFO(m.name);
    CHECK((run(m.judge).wrong > 0 || !documented(m.judge)));
  }
}
