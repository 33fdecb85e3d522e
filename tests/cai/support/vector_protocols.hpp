// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DLPack and Arrow objects in memory, as the vectors describe them. The layouts are written down
// here a second time on purpose: a slip in the library's own does not go unseen.
#pragma once

#include <memory>
#include <vector>

#include "vector_input.hpp"

namespace cai_test {

struct dl_pack_version {
  uint32_t major, minor;
};
struct dl_device {
  int32_t type, id;
};
struct dl_data_type {
  uint8_t code, bits;
  uint16_t lanes;
};
struct dl_tensor {
  void* data;
  dl_device device;
  int32_t ndim;
  dl_data_type dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct dl_managed_tensor_versioned {
  dl_pack_version version;
  void* manager_ctx;
  void (*deleter)(dl_managed_tensor_versioned*);
  uint64_t flags;
  dl_tensor tensor;
};

inline int device_type(const std::string& name) {
  const std::map<std::string, int> types = {
      {"cpu", 1}, {"cuda", 2}, {"cuda_host", 3}, {"rocm", 10}, {"cuda_managed", 13}};
  return types.at(name);
}

class dl_object {
 public:
  dl_object(const json& dlpack, const world& w) {
    const json capsule = dlpack.value("capsule", json::object());
    name_ = dlpack.value("consumed", false) ? "used_dltensor_versioned" : "dltensor_versioned";
    shape_ = capsule.value("shape", std::vector<int64_t>{4});
    const json strides = capsule.value("strides", json::array({1}));
    if (!strides.is_null()) strides_ = strides.get<std::vector<int64_t>>();
    const json version = capsule.value("version", json::array({1, 0}));
    const json device = capsule.value("device", json::array({"cuda", 0}));
    const json dtype = capsule.value("dtype", json::array({"float", 32, 1}));
    const std::map<std::string, int> codes = {{"int", 0},    {"uint", 1},    {"float", 2},
                                              {"bfloat", 4}, {"complex", 5}, {"bool", 6}};
    const json data = capsule.value("data", json{{"$ptr", "P"}});
    managed_.version = {version[0], version[1]};
    managed_.manager_ctx = this;
    const bool no_deleter = capsule.contains("deleter") && capsule.at("deleter").is_null();
    managed_.deleter = no_deleter ? nullptr : +[](dl_managed_tensor_versioned* m) {
      ++static_cast<dl_object*>(m->manager_ctx)->deleted_;
    };
    for (const json& flag : capsule.value("flags", json::array())) {
      if (flag == "read_only") managed_.flags |= 1;
    }
    managed_.tensor.data = reinterpret_cast<void*>(read_int(data, w).magnitude);
    managed_.tensor.device = {device_type(device[0]), device[1]};
    managed_.tensor.ndim = static_cast<int32_t>(shape_.size());
    managed_.tensor.dtype = {static_cast<uint8_t>(codes.at(dtype[0])), dtype[1], dtype[2]};
    managed_.tensor.shape = shape_.data();
    managed_.tensor.strides = strides.is_null() ? nullptr : strides_.data();
    managed_.tensor.byte_offset = capsule.value("byte_offset", uint64_t{0});
  }
  const char* name() const { return name_.c_str(); }
  void* pointer() { return &managed_; }
  int deleted() const { return deleted_; }

 private:
  std::string name_;
  std::vector<int64_t> shape_, strides_;
  dl_managed_tensor_versioned managed_{};
  int deleted_ = 0;
};

// A chain of exchange API tables.
class exchange_chain {
 public:
  exchange_chain(const json& description, const world& w) {
    table_.version = {description.at("version")[0], description.at("version")[1]};
    if (description.contains("prev_api")) {
      previous_ = std::make_unique<exchange_chain>(description.at("prev_api"), w);
      table_.previous = previous_->api();
    }
    if (!description.contains("current_work_stream")) return;
    const json& stream = description.at("current_work_stream");
    answer() = stream.is_null() ? 0 : w.stream(stream);
    table_.current_work_stream = [](int, int32_t, void** out) {
      *out = reinterpret_cast<void*>(answer());
      return 0;
    };
  }
  const void* api() const { return &table_; }

 private:
  static uint64_t& answer() {
    static uint64_t stream = 0;
    return stream;
  }
  struct {
    dl_pack_version version;
    const void* previous;
    void* allocator;
    void* managed_from_object;
    void* managed_to_object;
    void* tensor_from_object;
    int (*current_work_stream)(int, int32_t, void**);
  } table_{};
  std::unique_ptr<exchange_chain> previous_;
};

class arrow_object {
 public:
  arrow_object(const json& description, const world& w) {
    array_.release = description.value("released", false) ? nullptr : +[](void*) {};
    array_.device_type = device_type(description.at("device_type"));
    array_.device_id = description.at("device_id");
    if (!description.at("sync_event").is_null()) {
      event_ = reinterpret_cast<void*>(w.events.at(description.at("sync_event")));
      array_.sync_event = &event_;
    }
    const json reserved = description.value("reserved", json::array({0, 0, 0}));
    for (int i = 0; i < 3; ++i) array_.reserved[i] = reserved[static_cast<size_t>(i)];
  }
  const void* pointer() const { return &array_; }

 private:
  struct {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    void** children;
    void* dictionary;
    void (*release)(void*);
    void* private_data;
    int64_t device_id;
    int32_t device_type;
    void* sync_event;
    int64_t reserved[3];
  } array_{};
  void* event_ = nullptr;
};

}  // namespace cai_test
