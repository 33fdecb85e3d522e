// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Batch copies held against the stored probe: every row of it, with the memory and the order that
// its name says, and each branch of the rule flipped in turn.
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "probe/predict.hpp"
#include "roles.hpp"
#include "support/catch.hpp"

using namespace hostwait;

namespace {

using judge = std::function<judgement(row_id, const call_facts&, hostwait_memory, hostwait_memory)>;

judgement real(row_id row, const call_facts& facts, hostwait_memory from, hostwait_memory to) {
  surroundings now;
  now.driver_version = 13000;
  now.compute_capability = 90;
  return classify(row, facts, from, to, now);
}

hostwait_memory memory_named(const std::string& name) {
  return name == "pageable" ? HOSTWAIT_MEMORY_PAGEABLE
         : name == "pinned" ? HOSTWAIT_MEMORY_PINNED
                            : HOSTWAIT_MEMORY_DEVICE;
}

struct tally {
  unsigned rows = 0, agree = 0, depend = 0, wrong = 0;
};

// Ids: copy/cuMemcpyBatchAsync_v2/FROM>TO/ORDER/SIZE and copy/cuMemcpy3DBatchAsync_v2/FROM>TO/….
tally run(const judge& judged) {
  static const auto document = nlohmann::json::parse(std::ifstream(HOSTWAIT_PROBE_JSON));
  tally t;
  for (const auto& row : document["rows"]) {
    const std::string id = row["id"], name = row["row"];
    const bool shaped = name == "cuMemcpy3DBatchAsync_v2";
    if (!shaped && name != "cuMemcpyBatchAsync_v2") continue;
    const std::size_t first = id.find('/', 5) + 1, between = id.find('>'),
                      last = id.find('/', between);
    const bool at_will = id.find("during_call") != id.npos || id.find("any_order") != id.npos;
    call_facts facts = roles::stream_first::of(reinterpret_cast<CUstream>(0x30));
    facts.aux = shaped ? 1 : 8;
    facts.aux2 = (shaped ? batch_is_3d : 0) | (at_will ? 0 : batch_in_stream_order);
    const judgement j = judged(shaped ? row_cuMemcpy3DBatchAsync_v2 : row_cuMemcpyBatchAsync_v2,
                               facts, memory_named(id.substr(first, between - first)),
                               memory_named(id.substr(between + 1, last - between - 1)));
    const bool busy = row["busy"] != "-";
    ++t.rows;
    // The call's stream is the busy one.
    const auto own = probe::stream_kind::nonblocking;
    switch (probe::predict(j, own, busy ? own : probe::stream_kind::none)) {
      case probe::prediction::depends:
        ++t.depend;
        break;
      case probe::prediction::blocked:
        ++(row["blocked"] == true ? t.agree : t.wrong);
        break;
      case probe::prediction::free:
        ++(row["blocked"] == false ? t.agree : t.wrong);
        break;
    }
  }
  return t;
}

}  // namespace

TEST_CASE("every measured batch") {
  const tally t = run(real);
  CHECK(t.rows == 40);
  CHECK(t.agree == t.rows);
}

TEST_CASE("flipping any branch makes a batch wrong") {
  struct branch {
    const char* name;
    bool (*holds)(const call_facts&, hostwait_memory from, hostwait_memory to);
  };
  const branch branches[] = {
      {"a pageable source in stream order",
       [](const call_facts& f, hostwait_memory from, hostwait_memory) {
         return from == HOSTWAIT_MEMORY_PAGEABLE && (f.aux2 & batch_in_stream_order) != 0;
       }},
      {"a pageable source read at another time",
       [](const call_facts& f, hostwait_memory from, hostwait_memory) {
         return from == HOSTWAIT_MEMORY_PAGEABLE && (f.aux2 & batch_in_stream_order) == 0;
       }},
      {"a pageable destination",
       [](const call_facts& f, hostwait_memory, hostwait_memory to) {
         return to == HOSTWAIT_MEMORY_PAGEABLE && (f.aux2 & batch_is_3d) == 0;
       }},
      {"a pageable destination of a 3D batch",
       [](const call_facts& f, hostwait_memory, hostwait_memory to) {
         return to == HOSTWAIT_MEMORY_PAGEABLE && (f.aux2 & batch_is_3d) != 0;
       }},
      {"pinned memory", [](const call_facts&, hostwait_memory from, hostwait_memory to) {
         return from == HOSTWAIT_MEMORY_PINNED || to == HOSTWAIT_MEMORY_PINNED;
       }}};
  for (const branch& b : branches) {
    INFO(b.name);
    const tally t =
        run([&](row_id row, const call_facts& facts, hostwait_memory from, hostwait_memory to) {
          judgement j = real(row, facts, from, to);
          if (b.holds(facts, from, to))
            j.verdict = j.verdict == HOSTWAIT_VERDICT_NONE ? HOSTWAIT_VERDICT_STREAM
                                                           : HOSTWAIT_VERDICT_NONE;
          return j;
        });
    CHECK(t.wrong > 0);
  }
}
