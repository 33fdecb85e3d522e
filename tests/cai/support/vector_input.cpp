// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reading of the vectors' inputs.
#include "vector_input.hpp"

namespace cai_test {
namespace {

// The key of a marker ({"$tuple": …}), "" for anything else.
std::string marker(const json& value) {
  if (!value.is_object() || value.empty()) return "";
  const std::string key = value.begin().key();
  return key[0] == '$' ? key : "";
}

const json& inner(const json& value) {
  return value.begin().value();
}

hostwait_cai_int from_digits(std::string digits) {
  hostwait_cai_int out{};
  out.type = HOSTWAIT_CAI_T_INT;
  if (!digits.empty() && digits[0] == '-') {
    out.negative = 1;
    digits.erase(0, 1);
  }
  for (const char c : digits) {
    bool over = __builtin_mul_overflow(out.magnitude, uint64_t{10}, &out.magnitude);
    over |= __builtin_add_overflow(out.magnitude, static_cast<uint64_t>(c - '0'), &out.magnitude);
    if (over) out.wide = 1;
  }
  return out;
}

// Type and items of a sequence.
uint8_t sequence(const json& value, json* items) {
  const std::string m = marker(value);
  if (m == "$tuple" || m == "$list") {
    *items = inner(value);
    return m == "$tuple" ? HOSTWAIT_CAI_T_TUPLE : HOSTWAIT_CAI_T_LIST;
  }
  if (value.is_null()) return HOSTWAIT_CAI_T_NONE;
  if (value.is_boolean()) return HOSTWAIT_CAI_T_BOOL;
  if (value.is_number_integer()) return HOSTWAIT_CAI_T_INT;
  if (value.is_string()) return HOSTWAIT_CAI_T_STR;
  return HOSTWAIT_CAI_T_OTHER;
}

}  // namespace

world::world(const json& description) {
  uint64_t id = 100;
  for (const auto& [name, c] : description.at("contexts").items()) {
    const uint64_t handle = c.at("handle");
    contexts[name] = handle;
    driver.contexts[handle] = {name, c.at("device"), c.at("primary"), ++id};
  }
  for (const auto& [name, s] : description.at("streams").items()) {
    const uint64_t handle = s.at("handle");
    streams[name] = handle;
    driver.streams[handle] = {name, contexts.at(s.at("context")), s.at("blocking")};
  }
  for (const auto& [name, handle] : description.at("destroyed_streams").items()) {
    streams[name] = handle;
  }
  for (const auto& [name, e] : description.at("events").items()) {
    const uint64_t context = contexts.at(e.at("context"));
    events[name] = e.at("handle");
    driver.events[e.at("handle")] = {context, driver.contexts[context].id, "elsewhere", name, 0};
  }
  const json& memories = description.at("memory");
  for (const auto& [name, m] : memories.items()) {
    fake_memory out;
    out.address = m.at("address");
    out.bytes = m.at("bytes");
    out.kind = m.at("kind");
    out.device = m.value("device", 0);
    out.range_start = out.address;
    out.range_bytes = out.bytes;
    if (m.contains("device_address")) {
      out.device_address = memories.at(m.at("device_address")).at("address");
    }
    if (m.contains("reservation")) {
      out.range_start = m.at("reservation").at("address");
      out.range_bytes = m.at("reservation").at("bytes");
    }
    memory[name] = out.address;
    driver.memory.push_back(out);
  }
  driver.initial_context = contexts.at(description.at("current_context"));
  driver.peer_access = description.at("peer_access");
  driver.pageable_access = description.at("pageable_memory_access");
}

uint64_t world::stream(const json& name) const {
  if (name.is_number_integer()) return name;
  const std::string& text = name.get_ref<const std::string&>();
  if (text == "1" || text == "2") return static_cast<uint64_t>(text[0] - '0');
  return streams.at(text);
}

void world::reset_context(const std::string& name) {
  fake_context& c = driver.contexts.at(contexts.at(name));
  c.id += 1000;
}

hostwait_cai_int read_int(const json& value, const world& w) {
  hostwait_cai_int out{};
  const std::string m = marker(value);
  if (value.is_null()) {
    out.type = HOSTWAIT_CAI_T_NONE;
  } else if (value.is_boolean()) {
    out.type = HOSTWAIT_CAI_T_BOOL;
    out.magnitude = value.get<bool>();
  } else if (value.is_number_integer()) {
    return from_digits(value.dump());
  } else if (m == "$int") {
    return from_digits(inner(value));
  } else if (m == "$ptr") {
    return hostwait_cai_uint_of(w.memory.at(value.at("$ptr")) + value.value("offset", 0));
  } else if (m == "$stream") {
    return hostwait_cai_uint_of(w.stream(inner(value)));
  } else if (m == "$np.int64" || m == "$np.uint64") {
    out = read_int(inner(value), w);
    out.type = HOSTWAIT_CAI_T_INDEX;
  } else if (m == "$cuda_stream") {
    out = hostwait_cai_uint_of(w.stream(inner(value)));
    out.type = HOSTWAIT_CAI_T_CUDA_STREAM;
  } else if (m == "$float" || value.is_number_float()) {
    out.type = HOSTWAIT_CAI_T_FLOAT;
  } else if (value.is_string()) {
    out.type = HOSTWAIT_CAI_T_STR;
  } else {
    out.type = HOSTWAIT_CAI_T_OTHER;
  }
  return out;
}

raw_input::raw_input(const json& cai, const world& w, bool from_dict) : world_(w) {
  HOSTWAIT_CAI_INIT(raw_);
  raw_.from_dict = from_dict;
  const std::string m = marker(cai);
  if (m == "$raises") {
    if (inner(cai) != "AttributeError") throw not_expressible{"a Python exception passes through"};
    raw_.container = HOSTWAIT_CAI_T_ABSENT;
  } else if (m == "$returns") {
    throw not_expressible{"only the glue calls getters"};
  } else if (m == "$mapping") {
    raw_.container = HOSTWAIT_CAI_T_MAPPING;
    read(inner(cai));
  } else if (m == "$dict_subclass" || (cai.is_object() && m.empty())) {
    raw_.container = HOSTWAIT_CAI_T_DICT;
    read(m.empty() ? cai : inner(cai));
  } else {
    raw_.container = HOSTWAIT_CAI_T_OTHER;
  }
}

void raw_input::read(const json& dict) {
  for (const auto& [key, value] : dict.items()) {
    json items = json::array();
    if (key == "typestr") {
      raw_.typestr_type = value.is_string()           ? HOSTWAIT_CAI_T_STR
                          : marker(value) == "$bytes" ? HOSTWAIT_CAI_T_BYTES
                                                      : HOSTWAIT_CAI_T_OTHER;
      if (value.is_string()) typestr_ = value;
      if (marker(value) == "$bytes") typestr_ = inner(value);
      raw_.typestr = typestr_.data();
      raw_.typestr_len = typestr_.size();
    } else if (key == "shape" || key == "strides") {
      const uint8_t type = sequence(value, &items);
      auto& out = key == "shape" ? shape_ : strides_;
      for (const json& item : items) out.push_back(read_int(item, world_));
      (key == "shape" ? raw_.shape_type : raw_.strides_type) = type;
      (key == "shape" ? raw_.shape : raw_.strides) = out.data();
      (key == "shape" ? raw_.shape_len : raw_.strides_len) = out.size();
    } else if (key == "data") {
      raw_.data_type = sequence(value, &items);
      raw_.data_len = items.size();
      if (items.size() > 0) raw_.data_ptr = read_int(items[0], world_);
      if (items.size() > 1) raw_.data_readonly = read_int(items[1], world_);
    } else if (key == "version") {
      raw_.version = read_int(value, world_);
    } else if (key == "stream") {
      raw_.stream = read_int(value, world_);
    } else if (key == "descr") {
      read_descr(value);
    } else if (key == "mask") {
      if (value.is_null()) {
        raw_.mask_type = HOSTWAIT_CAI_T_NONE;
      } else if (marker(value) == "$object" && inner(value).contains("cai")) {
        mask_ = std::make_unique<raw_input>(inner(value).at("cai"), world_);
        raw_.mask = mask_->raw();
        raw_.mask_type = raw_.mask->container;
      } else if (marker(value) == "$self_masked") {
        mask_ = std::make_unique<raw_input>(inner(value), world_);
        mask_->raw_.mask = mask_->raw();
        mask_->raw_.mask_type = HOSTWAIT_CAI_T_DICT;
        raw_.mask = mask_->raw();
        raw_.mask_type = HOSTWAIT_CAI_T_DICT;
      } else {
        raw_.mask_type = HOSTWAIT_CAI_T_OBJECT;
      }
    } else {
      ++raw_.unknown_keys;
    }
  }
}

void raw_input::read_descr(const json& value) {
  json items = json::array();
  raw_.descr_type = sequence(value, &items);
  for (const json& item : items) {
    field_names_.push_back(inner(item).at(1));
    fields_.push_back({field_names_.back().data(), field_names_.back().size(), 1});
  }
  raw_.descr = fields_.data();
  raw_.descr_len = fields_.size();
}

hostwait_cai_policy read_policy(const json& test_case, hostwait_cai_hooks* hooks) {
  hostwait_cai_policy p;
  hostwait_cai_policy_strict(&p);
  p.hooks = hooks;
  const json given = test_case.value("policy", json::object());
  const std::map<std::string, uint32_t> bits = {
      {"list", HOSTWAIT_CAI_LENIENT_LIST},
      {"mapping", HOSTWAIT_CAI_LENIENT_MAPPING},
      {"no_version", HOSTWAIT_CAI_LENIENT_VERSION},
      {"byteorder", HOSTWAIT_CAI_LENIENT_BYTEORDER},
      {"bytes_typestr", HOSTWAIT_CAI_LENIENT_BYTES},
      {"none_pointer", HOSTWAIT_CAI_LENIENT_NONE_POINTER},
      {"int_readonly", HOSTWAIT_CAI_LENIENT_BOOL},
      {"stream_zero", HOSTWAIT_CAI_LENIENT_STREAM_ZERO},
      {"stream_object", HOSTWAIT_CAI_LENIENT_CUDA_STREAM},
      {"null_strides", HOSTWAIT_CAI_LENIENT_NULL_STRIDES}};
  const std::map<std::string, uint8_t> steps = {
      {"none", HOSTWAIT_CAI_LEGACY_NONE},
      {"via_dlpack", HOSTWAIT_CAI_LEGACY_VIA_DLPACK},
      {"producer_current", HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT},
      {"legacy_join", HOSTWAIT_CAI_LEGACY_JOIN},
      {"device", HOSTWAIT_CAI_LEGACY_DEVICE}};
  const std::map<std::string, uint8_t> ptds = {{"trust", HOSTWAIT_CAI_PTDS_TRUST},
                                               {"legacy_join", HOSTWAIT_CAI_PTDS_JOIN},
                                               {"device", HOSTWAIT_CAI_PTDS_DEVICE},
                                               {"reject", HOSTWAIT_CAI_PTDS_REJECT}};
  const std::map<std::string, uint8_t> captures = {
      {"error", HOSTWAIT_CAI_CAPTURE_ERROR},
      {"assume_ready", HOSTWAIT_CAI_CAPTURE_ASSUME_READY},
      {"external_event", HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT}};
  const std::map<std::string, uint32_t> options = {
      {"accept_newer", HOSTWAIT_CAI_ACCEPT_NEWER},
      {"accept_non_native", HOSTWAIT_CAI_ACCEPT_BYTEORDER},
      {"check_extent", HOSTWAIT_CAI_CHECK_RANGE},
      {"check_stream_range", HOSTWAIT_CAI_CHECK_HANDLES},
      {"pageable", HOSTWAIT_CAI_ACCEPT_PAGEABLE},
      {"trust_implicit_order", HOSTWAIT_CAI_TRUST_IMPLICIT}};
  for (const auto& [key, value] : given.items()) {
    if (key == "lenient") {
      for (const json& name : value) p.lenient |= bits.at(name);
    } else if (key == "legacy") {
      std::fill(std::begin(p.legacy), std::end(p.legacy), HOSTWAIT_CAI_LEGACY_END);
      for (size_t i = 0; i < value.size(); ++i) p.legacy[i] = steps.at(value[i]);
    } else if (key == "ptds") {
      p.ptds = ptds.at(value);
    } else if (key == "capture") {
      p.capture = captures.at(value);
    } else if (key == "mask") {
      if (value != "none") p.options |= HOSTWAIT_CAI_ACCEPT_MASK;
      if (value == "bits") p.options |= HOSTWAIT_CAI_ACCEPT_BIT_MASK;
    } else if (key == "misaligned") {
      if (value == "reject") p.options |= HOSTWAIT_CAI_REJECT_UNALIGNED;
    } else if (key == "readonly") {
      if (value == "ignore") p.options |= HOSTWAIT_CAI_IGNORE_READONLY;
    } else if (key == "sync") {
      p.sync = value == "on" ? HOSTWAIT_CAI_SYNC_ON : HOSTWAIT_CAI_SYNC_OFF;
    } else if (key == "back_edge") {
      if (value == "skip") p.options |= HOSTWAIT_CAI_NO_BACK_EDGE;
    } else if (key == "device") {
      p.device = value;
    } else if (options.count(key)) {
      if (value.get<bool>()) p.options |= options.at(key);
    } else if (key != "env_aliases" && key != "capture_safe_producers" &&
               key != "stream_ignoring_producer" && key != "prefer") {
      throw std::runtime_error("unknown policy " + key);
    }
  }
  const json consumer = test_case.value("consumer", json::object());
  const std::string intent = consumer.value("intent", "read_write");
  p.intent = intent == "read" || intent == "copy" ? HOSTWAIT_CAI_READ
             : intent == "write"                  ? HOSTWAIT_CAI_WRITE
                                                  : HOSTWAIT_CAI_READ | HOSTWAIT_CAI_WRITE;
  if (intent != "copy") p.options |= HOSTWAIT_CAI_CHECK_PEER;
  return p;
}

}  // namespace cai_test
