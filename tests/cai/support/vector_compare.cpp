// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a case expects against what happened. Every key of an expectation is either checked or named
// here as not the core's; an unknown one is an error.
#include "vector_runner.hpp"

namespace cai_test {
namespace {

std::string differs(const std::string& what, const json& wanted, const json& got) {
  if (wanted == got) return "";
  return what + ": wanted " + wanted.dump() + ", got " + got.dump();
}

// "1" means the legacy stream of the current context at the start.
std::string with_context(std::string action) {
  for (const char* form : {"(1-", ">1)", "(2-", ">2)", "(1)", "(2)"}) {
    const size_t at = action.find(form);
    if (at != std::string::npos) action.insert(at + 2, "@ctx0");
  }
  return action;
}

}  // namespace

uint32_t runner::flag_bit(const std::string& name) const {
  const std::map<std::string, uint32_t> bits = {
      {"c_contiguous", HOSTWAIT_CAI_F_C_CONTIGUOUS}, {"f_contiguous", HOSTWAIT_CAI_F_F_CONTIGUOUS},
      {"broadcast", HOSTWAIT_CAI_F_BROADCAST},       {"empty", HOSTWAIT_CAI_F_EMPTY},
      {"unaligned", HOSTWAIT_CAI_F_UNALIGNED},       {"unknown_key", HOSTWAIT_CAI_F_UNKNOWN_KEYS}};
  return bits.at(name);
}

std::string runner::compare_view(const json& view) {
  const array& a = *arrays_.at(0);
  const hostwait_cai_desc& d = a.desc;
  for (const auto& [key, wanted] : view.items()) {
    json got;
    json want = wanted;
    if (key == "shape") {
      got = std::vector<int64_t>(d.shape, d.shape + d.ndim);
    } else if (key == "strides") {
      got = std::vector<int64_t>(d.strides, d.strides + d.ndim);
    } else if (key == "ndim") {
      got = d.ndim;
    } else if (key == "itemsize") {
      got = d.itemsize;
    } else if (key == "kind") {
      got = std::string(1, d.kind);
    } else if (key == "byteorder") {
      got = std::string(1, d.byteorder);
    } else if (key == "unit") {
      got = std::string(d.unit);
    } else if (key == "version") {
      got = d.version;
    } else if (key == "readonly") {
      got = d.readonly != 0;
    } else if (key == "extent") {
      got = {d.lo, d.hi};
      int64_t lo = -1, hi = -1;
      if (hostwait_cai_extent(&d, &lo, &hi) != 0 || lo != d.lo || hi != d.hi) {
        return "the extent function disagrees";
      }
    } else if (key == "ptr") {
      want = read_int(wanted, world_).magnitude;
      got = d.ptr;
    } else if (key == "usable_ptr") {
      want = read_int(wanted, world_).magnitude;
      got = a.loc.ptr;
    } else if (key == "device") {
      got = a.loc.device;
    } else if (key == "memory") {
      const char* kinds[] = {"none", "device", "pinned", "managed", "host"};
      got = kinds[a.loc.kind];
    } else if (key == "has_mask") {
      got = (d.flags & HOSTWAIT_CAI_F_HAS_MASK) != 0;
    } else if (key == "flags" || key == "not_flags") {
      for (const json& name : wanted) {
        if (((d.flags & flag_bit(name)) != 0) != (key == "flags")) {
          return key + ": " + name.get<std::string>();
        }
      }
      continue;
    } else if (key == "source") {
      continue;  // which protocol the glue took
    } else {
      return "unknown view field " + key;
    }
    const std::string difference = differs(key, want, got);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string runner::compare_dict(const json& dict) {
  const json got = exported_dict();
  for (const auto& [key, wanted] : dict.items()) {
    std::string difference;
    if (key == "absent") {
      for (const json& name : wanted) {
        if (got.contains(name)) difference = "exported though absent: " + name.dump();
      }
    } else if (key == "keys") {
      json keys = json::array();
      for (const auto& item : got.items()) keys.push_back(item.key());
      difference = differs("keys", wanted, keys);
    } else if (key == "stream" && wanted.is_object()) {
      difference = differs(key, read_int(wanted, world_).magnitude, got.at(key));
    } else if (key == "data") {
      json want = wanted;
      want["$tuple"][0] = read_int(want["$tuple"][0], world_).magnitude;
      difference = differs(key, want, got.at(key));
    } else {
      difference = differs(key, wanted, got.contains(key) ? got.at(key) : json("(absent)"));
    }
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string runner::compare_actions(const json& wanted) {
  std::vector<std::string> want, got = driver_.actions;
  bool elide = false;
  for (const json& action : wanted) {
    const std::string text = action;
    if (text == "ELIDE") elide = true;
    if (text.rfind("RECORD(", 0) == 0) {
      got.clear();
      for (const std::string& stream : driver_.records) got.push_back("RECORD(" + stream + ")");
    }
    if (text != "NONE" && text != "ELIDE") want.push_back(with_context(text));
  }
  if (want != got) return differs("actions", json(want), json(got));
  hostwait_cai_stats now;
  HOSTWAIT_CAI_INIT(now);
  hostwait_cai_stats_get(&now);
  if (elide && now.elided == before_.elided) return "nothing was counted as elided";
  return "";
}

std::string runner::compare_dlpack_calls(const json& wanted) {
  if (wanted.size() != dlpack_calls_.size()) return "dlpack_calls: another number of calls";
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (read_int(wanted[i].at("stream"), world_).magnitude != dlpack_calls_[i]) {
      return "dlpack_calls: another stream";
    }
  }
  return "";
}

std::string runner::compare_stats(const json& wanted) {
  hostwait_cai_stats now;
  HOSTWAIT_CAI_INIT(now);
  hostwait_cai_stats_get(&now);
  for (const auto& [key, count] : wanted.items()) {
    uint64_t got = 0;
    if (key == "opt_outs")
      got = now.opt_outs - before_.opt_outs;
    else if (key == "back_edges_skipped")
      got = now.back_edges_skipped - before_.back_edges_skipped;
    else
      return "unknown counter " + key;
    if (got != count) return differs(key, count, got);
  }
  return "";
}

// The events of captures are not those of the cache: seen by using the cache as well.
bool runner::events_shared() {
  driver_.captures.clear();
  const auto actions = driver_.actions;
  acquire("plain", consumer_stream());
  release("plain");
  driver_.actions = actions;
  for (const uint64_t event : driver_.captured_events) {
    if (driver_.plain_events.count(event)) return true;
  }
  return driver_.plain_events.empty();
}

// K05: an owner given up after release stays until the consumer's stream has passed.
std::string runner::compare_owner(const json& wanted) {
  if (wanted.contains("stream_kept")) return "";  // accepted with an owner: the verdict says it
  int dropped = 0;
  const auto drop = [](void*, void* user) { ++*static_cast<int*>(user); };
  driver_.busy = true;
  if (hostwait_cai_retire({world_.stream(wanted.at("kept_until"))}, this, &error_) != 0) {
    return "retire failed";
  }
  hostwait_cai_drain(drop, &dropped, nullptr, &error_);
  if (dropped != 0) return "the owner was dropped too early";
  driver_.busy = false;
  hostwait_cai_drain(drop, &dropped, nullptr, &error_);
  return dropped == 1 ? "" : "the owner was not dropped";
}

std::string runner::compare_warning(bool wanted) {
  hostwait_cai_environment env;
  HOSTWAIT_CAI_INIT(env);
  const bool env_warned = hostwait_cai_env_get(&env, nullptr) == HOSTWAIT_CAI_ERR_ENV;
  if (hostwait_cai_env_get(&env, nullptr) != 0) return "the environment is reported twice";
  const bool zero =
      !arrays_.empty() && (arrays_[0]->desc.flags & HOSTWAIT_CAI_F_STREAM_WAS_ZERO) != 0;
  return (env_warned || zero) == wanted ? "" : "warned differs";
}

std::string runner::compare_dl_stream(const std::string& wanted) {
  if (wanted == "no_sync") return dl_action_ == HOSTWAIT_CAI_DL_NO_SYNC ? "" : "not no_sync";
  if (dl_action_ != HOSTWAIT_CAI_DL_WAIT) return "no wait asked for";
  const uint64_t want = wanted == "default" ? 0 : world_.stream(wanted);
  return differs("stream", want, dl_stream_);
}

std::string runner::compare_destroyed(const json& wanted) {
  if (wanted.empty()) return driver_.destroyed.empty() ? "" : "an event was destroyed";
  return driver_.destroyed == std::vector<uint64_t>{exported_event_} ? "" : "destroyed differs";
}

std::string runner::compare_error(const json& expect) {
  std::string difference = differs("code", expect.at("code"), hostwait_cai_code_name(code_));
  if (difference.empty() && error_.code != code_) difference = "the error struct disagrees";
  if (difference.empty() && expect.contains("key")) {
    difference = differs("key", expect.at("key"), std::string(error_.key));
  }
  if (difference.empty() && expect.contains("index")) {
    difference = differs("index", expect.at("index"), error_.index);
  }
  if (difference.empty() && expect.contains("driver_code")) {
    difference = differs("driver_code", expect.at("driver_code"), error_.driver);
  }
  for (const json& name : expect.value("message_names", json::array())) {
    if (std::string(error_.text).find(name.get<std::string>()) == std::string::npos) {
      return "the message does not name " + name.dump();
    }
  }
  if (difference.empty()) return "";
  return difference + " (" + error_.text + ")";
}

std::string runner::compare_key(const std::string& key, const json& wanted) {
  if (key == "view") return compare_view(wanted);
  if (key == "dict") return compare_dict(wanted);
  if (key == "actions") return compare_actions(wanted);
  if (key == "dlpack_calls") return compare_dlpack_calls(wanted);
  if (key == "stats") return compare_stats(wanted);
  if (key == "owner") return compare_owner(wanted);
  if (key == "warned") return compare_warning(wanted);
  if (key == "stream") return compare_dl_stream(wanted);
  if (key == "destroyed_events") return compare_destroyed(wanted);
  if (key == "ordering_calls") return differs(key, wanted, driver_.ordering_calls);
  if (key == "unsafe_calls") return differs(key, wanted, driver_.unsafe_calls);
  if (key == "driver_errors") return differs(key, wanted, driver_.errors);
  if (key == "driver_calls") return differs(key, wanted, driver_.calls);
  if (key == "driver_calls_after_main") return differs(key, wanted, calls_after_end_);
  if (key == "capture_survives") return differs(key, wanted, !driver_.capture_broken);
  if (key == "event_contexts") return differs(key, wanted, driver_.event_contexts);
  if (key == "event_shared_with_cache") return differs(key, wanted, events_shared());
  if (key == "round_trip") return differs(key, wanted, round_trip_);
  if (key == "context_after") {
    const uint64_t now = driver_.current();
    return differs(key, wanted, now == 0 ? json() : json(driver_.contexts.at(now).name));
  }
  if (key == "capsules") {
    // How often the glue's capsules die is the glue's; a refused version is the core's.
    if (arrays_.empty() || !arrays_[0]->dlpack) return "";
    return differs(key, wanted.at("deleted"), arrays_[0]->dlpack->deleted());
  }
  // Documentation only, or checked with the verdict.
  for (const char* other :
       {"verdict", "code", "key", "index", "driver_code", "message_names", "covers"}) {
    if (key == other) return "";
  }
  if (key == "getter_calls") throw not_expressible{"only the glue calls getters"};
  return "unknown expectation " + key;
}

std::string runner::compare() {
  const json& expect = case_.at("expect");
  const std::string verdict = expect.at("verdict");
  if (verdict == "raise") throw not_expressible{"a Python exception passes through"};
  if (verdict == "accept" && code_ != 0) {
    return std::string("refused: ") + hostwait_cai_code_name(code_) + " (" + error_.text + ")";
  }
  if (verdict == "error") {
    const std::string difference = compare_error(expect);
    if (!difference.empty()) return difference;
  }
  for (const auto& [key, wanted] : expect.items()) {
    const std::string difference = compare_key(key, wanted);
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace cai_test
