// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where experiments play: a context, streams of every kind, memory of every kind, a kernel that
// keeps a stream busy for a known time, and the call under test with its verdict.
#pragma once

#include "roles.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "classify.hpp"
#include "driver.hpp"
#include "experiment.hpp"
#include "result.hpp"

namespace hostwait::probe {

// Ends an experiment: what it needs is not there.
struct unsupported {
  std::string why;
};

template <row_id>
struct shape_of;
#define HW_ROW(symbol, form, kind, rule, shape) \
  template <>                                   \
  struct shape_of<row_##symbol> {               \
    using type = roles::shape;                  \
  };
#include "calls.def"
#undef HW_ROW

std::uint64_t now_ns();

class stage {
 public:
  // Initialises the driver; throws unsupported where that fails.
  stage(driver& d, int device);

  driver& d;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream blocking = nullptr, nonblocking = nullptr, other_blocking = nullptr,
           other_nonblocking = nullptr;
  CUfunction spin = nullptr, tiny = nullptr;
  CUmodule base_module = nullptr;
  int devices = 0, driver_version = 0, compute_capability = 0;
  std::string device_name;
  static constexpr CUstream legacy = nullptr;
  static inline const CUstream per_thread = reinterpret_cast<CUstream>(2);

  // Memory, made at first use and kept. Every block has this size.
  static constexpr std::size_t block_bytes = std::size_t{64} << 20;
  CUdeviceptr device_block(unsigned which = 0);
  CUdeviceptr managed_block(unsigned which = 0);
  CUdeviceptr pool_block();
  void* pinned_block(unsigned which = 0);
  void* pageable_block(unsigned which = 0);
  void* registered_block();
  void touch_managed();  // brings the first pages of the managed blocks to the host

  // The stream that carries the kernel; when idle, the non-blocking one.
  CUstream busy_stream() const;
  stream_kind busy_kind() const { return busy_; }
  // Keeps `on` busy; the kernel is known to run when this returns.
  void keep_busy(CUstream on, std::uint64_t ns) { keep_busy_with(spin, on, ns, true); }
  // The same without flags, for contexts where their memory is not mapped, and by a kernel that
  // belongs to no context.
  void keep_busy_untold(CUstream on, std::uint64_t ns) { keep_busy_with(spin, on, ns, false); }
  void keep_busy_by_kernel(CUkernel k, CUstream on, std::uint64_t ns) {
    keep_busy_with(reinterpret_cast<CUfunction>(k), on, ns, false);
  }
  // The same by a graph with a kernel of kernel_ns(), which tells nothing of its start and end.
  void keep_busy_by_graph(CUgraphExec graph, CUstream on);
  std::uint64_t kernel_ns() const { return spin_ns_; }
  // The same by a host function that sleeps.
  void keep_busy_by_host(CUstream on, std::uint64_t ns);

  // The call under test, on row Row. Its facts and verdict come first, as in the shim.
  template <row_id Row, class... A>
  CUresult measured(A... arguments) {
    return through_row<Row>(static_cast<typename signature<Row>::type*>(nullptr), true,
                            arguments...);
  }
  // Another row that the experiment needs: counted as enqueued, neither judged nor timed; an error
  // ends the experiment.
  template <row_id Row, class... A>
  void use(A... arguments) {
    need(
        through_row<Row>(static_cast<typename signature<Row>::type*>(nullptr), false, arguments...),
        rows[Row].symbol);
  }
  // A call outside the table, under test: its verdict is that it waits for nothing.
  template <class Function, class... A>
  CUresult measured_other(const char* symbol, Function function, A... arguments) {
    if (function == nullptr) throw unsupported{std::string(symbol) + " is not exported"};
    begin_other(symbol);
    start();
    const CUresult r = function(arguments...);
    stop(r);
    return r;
  }
  template <class Function, class... A>
  void use_other(const char* symbol, Function function, A... arguments) {
    if (function == nullptr) throw unsupported{std::string(symbol) + " is not exported"};
    need(function(arguments...), symbol);
  }
  void need(CUresult r, const char* what);

  // For experiments whose own stream the arguments do not tell.
  void event_recorded_on(stream_kind k) { now_->own = k; }
  void own_stream_is(stream_kind k) { forced_own_ = k, own_is_forced_ = true; }
  void capture_is_open(bool open) { capture_open_ = open; }
  void function_is_new() { new_function_ = true; }
  void remark(std::string text) { now_->note = std::move(text); }
  void report_limit(limit found) { limits.push_back(std::move(found)); }
  std::vector<limit> limits;

  // Runs one measurement into `out`; idle where busy is none. False: the context is lost.
  bool play(const experiment& e, stream_kind busy, std::uint64_t spin_ns, result& out);

  CUmodule load(const char* ptx);
  CUfunction function(CUmodule from, const char* name);
  void launch(CUfunction f, CUstream on);  // not measured
  bool spin_started() const {
    return by_host_ ? nap_.state.load() != 0 : untold_ || flags_ == nullptr || flags_[0] != 0;
  }
  bool spin_ended() const {
    return by_host_ ? nap_.state.load() == 2 : untold_ || flags_ == nullptr || flags_[1] != 0;
  }
  bool drain();      // waits for everything; false: the context is lost
  void give_back();  // whatever is left in `own`

  // Space for an experiment's own objects, cleared before each measurement.
  struct scratch {
    CUdeviceptr memory = 0, second = 0;
    void *host = nullptr, *page = nullptr;
    CUarray array = nullptr, array2 = nullptr;
    CUmipmappedArray mipmapped = nullptr;
    CUevent event = nullptr;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUgraphNode node = nullptr;
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    CUmemoryPool pool = nullptr;
    CUmemGenericAllocationHandle handle = 0;
    CUcontext context = nullptr;
    CUgreenCtx green = nullptr;
    std::size_t bytes = 0;
    bool mapped = false;
  } own;

 private:
  template <row_id Row, class... P, class... A>
  CUresult through_row(CUresult (*)(P...), bool judged, A... arguments) {
    static_assert(sizeof...(P) == sizeof...(A));
    const auto function = d.get<Row>();
    if (function == nullptr) throw unsupported{std::string(rows[Row].symbol) + " is not exported"};
    if (!judged) {
      note_use(Row);
      return function((P)(arguments)...);
    }
    call_facts facts = shape_of<Row>::type::of((P)(arguments)...);
    facts.per_thread = row_is_per_thread(Row);
    begin(Row, facts);
    start();
    const CUresult r = function((P)(arguments)...);
    stop(r);
    return r;
  }
  void begin(row_id row, const call_facts& facts);
  void begin_other(const char* symbol);
  void await_start();
  void keep_busy_with(CUfunction kernel, CUstream on, std::uint64_t ns, bool told);
  void note_use(row_id row);
  void start() { start_ns_ = now_ns(); }
  void stop(CUresult r);
  hostwait_memory memory_kind(const operand& end, bool& sync_memops) const;
  std::uint64_t range_bytes(const void* address) const;
  bool stream_captures(const call_facts& facts) const;
  stream_kind kind_of_stream(const call_facts& facts) const;
  void run_call(const experiment& e, stream_kind busy, std::uint64_t spin_ns);

  result* now_ = nullptr;
  stream_kind busy_ = stream_kind::none;
  stream_kind forced_own_ = stream_kind::none;
  bool own_is_forced_ = false, capture_open_ = false, new_function_ = false, called_ = false,
       ended_at_return_ = false;
  CUresult returned_ = CUDA_SUCCESS;
  unsigned queued_ = 0;
  std::uint64_t start_ns_ = 0, spin_begin_ns_ = 0, spin_ns_ = 0;
  struct nap {
    std::uint64_t ns = 0;
    std::atomic<unsigned> state{0};  // 1 it runs, 2 it ended
  };
  nap nap_;
  bool by_host_ = false, untold_ = false;
  volatile unsigned* flags_ = nullptr;
  CUdeviceptr flags_on_device_ = 0;
  CUdeviceptr device_[2] = {}, managed_[2] = {}, pool_block_ = 0;
  void *pinned_[2] = {}, *pageable_[2] = {}, *registered_ = nullptr;
};

}  // namespace hostwait::probe
