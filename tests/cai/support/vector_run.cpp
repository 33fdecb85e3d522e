// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The steps of a vector, one member function each.
#include "vector_run.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "vector_runner.hpp"

uint64_t null_stream_legacy();
uint64_t null_stream_per_thread();

namespace cai_test {
namespace {

constexpr const char* variables[] = {
    "HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC", "HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION",
    "NUMBA_CUDA_ARRAY_INTERFACE_SYNC", "CUPY_CUDA_ARRAY_INTERFACE_SYNC"};

}  // namespace

runner::runner(const json& world_description, const json& vector, const json& test_case)
    : case_(test_case), world_(world_description), driver_(world_.driver) {
  HOSTWAIT_CAI_INIT(error_);
  HOSTWAIT_CAI_INIT(hooks_);
  hooks_.user = this;
  hooks_.producer_current = producer_current;
  hooks_.via_dlpack = via_dlpack;
  policy_ = read_policy(case_, &hooks_);
  given_ = case_.value("policy", json::object());
  consumer_ = case_.value("consumer", json::object());
  refuse_what_c_lacks(vector);
  apply_driver_state();
  apply_environment();
  driver_.use();
  HOSTWAIT_CAI_INIT(before_);
  hostwait_cai_stats_get(&before_);
  objects_ = case_.value("objects", json::array());
  if (case_.contains("object")) objects_.push_back(case_.at("object"));
  for (const json& object : objects_) {
    arrays_.push_back(std::make_unique<array>());
    arrays_.back()->object = &object;
  }
}

std::string runner::run() {
  const json& steps = case_.at("do");
  for (size_t i = 0; i < steps.size() && code_ == 0; ++i) {
    if (steps[i] == "fork") return run_in_child(i + 1);
    code_ = step(steps[i]);
  }
  return compare();
}

void runner::refuse_what_c_lacks(const json& vector) {
  const json& expect = case_.at("expect");
  if (expect.contains("owner") && vector.at("id") != "K05" && vector.at("id") != "L15") {
    throw not_expressible{"the owner is a Python object"};
  }
  if (case_.contains("object") && case_.at("object").contains("dlpack") &&
      case_.at("object").at("dlpack").contains("signature")) {
    throw not_expressible{"keyword arguments of a Python method"};
  }
  for (const json& action : expect.value("actions", json::array())) {
    if (action == "COPY") throw not_expressible{"the copy to the host is the exporter's"};
  }
}

void runner::apply_driver_state() {
  const json state = case_.value("driver", json::object());
  const json captures = state.value("capture", json::object());
  for (const auto& [name, capture] : captures.items()) {
    driver_.captures[name] = capture == "invalidated" ? -1 : capture.get<int64_t>();
  }
  if (state.contains("current_context")) {
    const json& context = state.at("current_context");
    driver_.initial_context = context.is_null() ? 0 : world_.contexts.at(context);
  }
  driver_.peer_access = state.value("peer_access", driver_.peer_access);
  driver_.pageable_access = state.value("pageable_memory_access", driver_.pageable_access);
}

void runner::apply_environment() {
  for (const char* name : variables) unsetenv(name);
  const json environment = case_.value("environment", json::object());
  for (const auto& [name, value] : environment.items()) {
    setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  hostwait_cai_env_aliases(given_.value("env_aliases", false)
                               ? "NUMBA_CUDA_ARRAY_INTERFACE_SYNC,CUPY_CUDA_ARRAY_INTERFACE_SYNC"
                               : nullptr);
}

uint64_t runner::named_stream(const json& name, const json& from) const {
  if (name != "null") return world_.stream(name);
  return from.value("translation_unit", "") == "per_thread" ? null_stream_per_thread()
                                                            : null_stream_legacy();
}

uint64_t runner::consumer_stream() const {
  const json name = consumer_.value("stream", json("C"));
  return name.is_null() ? 0 : named_stream(name, consumer_);
}

int runner::producer_current(void* user, const hostwait_cai_ready* ready, uint64_t* stream) {
  auto* self = static_cast<runner*>(user);
  const json& object = *static_cast<const json*>(ready->producer);
  if (!object.contains("exchange_api")) return 0;
  const exchange_chain chain(object.at("exchange_api"), self->world_);
  hostwait_cai_ready out;
  HOSTWAIT_CAI_INIT(out);
  int ambiguous = 0;
  if (hostwait_cai_exchange_find(chain.api()) == nullptr) return 0;
  if (hostwait_cai_exchange_ready(chain.api(), 2, 0, &out, &ambiguous, nullptr) != 0) return -1;
  *stream = ambiguous ? 0 : out.stream;
  return 1;
}

int runner::via_dlpack(void* user, const hostwait_cai_ready* ready, uint64_t consumer) {
  auto* self = static_cast<runner*>(user);
  const json& object = *static_cast<const json*>(ready->producer);
  if (!object.contains("dlpack")) return 0;
  self->dlpack_calls_.push_back(consumer);
  if (object.at("dlpack").contains("raises")) {
    self->driver_.actions.push_back("DLPACK_REFUSED");
    return 0;
  }
  self->driver_.actions.push_back("DLPACK(" + self->driver_.stream_name(consumer) + ")");
  return 1;
}

int runner::step(const json& s) {
  driver_.releasing = false;
  if (s.is_object()) return compound_step(s);
  const std::string name = s;
  if (name == "parse") return parse();
  if (name == "resolve") return resolve();
  if (name == "acquire") return acquire("a", consumer_stream());
  if (name == "acquire_from_dict") {
    policy_.from_dict = 1;
    return acquire("a", consumer_stream());
  }
  if (name == "release") return release("a");
  if (name == "wait_host") return wait_host(false);
  if (name == "wait_host_then_enqueue") return wait_host(true);
  if (name == "element_strides") {
    int64_t out[HOSTWAIT_CAI_MAX_NDIM];
    return hostwait_cai_element_strides(&arrays_[0]->desc, out, &error_);
  }
  if (name == "export") return do_export();
  if (name == "parse_export") return parse_export();
  if (name == "dlpack_stream") return map_dlpack_stream();
  if (name == "dlpack_export") return dlpack_export();
  if (name == "arrow_export")
    return hostwait_cai_arrow_event({consumer_stream()}, &exported_event_, &error_);
  if (name == "arrow_release") return hostwait_cai_arrow_event_free(exported_event_), 0;
  if (name == "read_environment") return hostwait_cai_env_get(nullptr, nullptr);
  if (name == "refresh_environment") return hostwait_cai_env_refresh(), 0;
  if (name == "prepare_events") return hostwait_cai_prepare(&error_);
  if (name == "exit") return thread_exit();
  if (name == "launch" || name == "raise") return 0;  // the guard's part: guards.cpp
  throw std::runtime_error("unknown step " + name);
}

int runner::compound_step(const json& s) {
  if (s.contains("acquire")) return acquire(s.at("acquire"), world_.stream(s.at("stream")));
  if (s.contains("release")) {
    if (s.value("thread", "") != "other") return release(s.at("release"));
    int code = 0;
    std::thread([&] { code = release(s.at("release")); }).join();
    return code;
  }
  if (s.contains("setenv")) {
    return setenv(s.at("setenv")[0].get<std::string>().c_str(),
                  s.at("setenv")[1].get<std::string>().c_str(), 1);
  }
  if (s.contains("begin_capture")) return driver_.captures[s.at("begin_capture")] = 1, 0;
  if (s.contains("capture_elsewhere")) {
    driver_.captures_elsewhere = true;
    driver_.unsafe_calls = 0;
    return 0;
  }
  if (s.contains("reset_context")) return world_.reset_context(s.at("reset_context")), 0;
  throw std::runtime_error("unknown step " + s.dump());
}

int runner::parse() {
  for (auto& a : arrays_) {
    const json& object = *a->object;
    const bool prefer_dlpack = given_.value("prefer", "") == "dlpack";
    if (object.contains("cai") && !prefer_dlpack) {
      a->raw = std::make_unique<raw_input>(object.at("cai"), world_);
    } else if (object.contains("dict")) {
      a->raw = std::make_unique<raw_input>(object.at("dict"), world_, true);
    } else if (object.contains("dlpack")) {
      a->dlpack = std::make_unique<dl_object>(object.at("dlpack"), world_);
      const int code = hostwait_cai_from_dlpack(a->dlpack->name(), a->dlpack->pointer(), &policy_,
                                                &a->desc, &a->loc, &error_);
      if (code != 0) return code;
      continue;
    } else {
      a->raw = std::make_unique<raw_input>(json{{"$raises", "AttributeError"}}, world_);
    }
    const int code = hostwait_cai_validate(a->raw->raw(), &policy_, &a->desc, &a->mask, &error_);
    if (code != 0) return code;
  }
  parsed_ = true;
  return 0;
}

int runner::resolve() {
  for (auto& a : arrays_) {
    if (const int code = hostwait_cai_resolve(&a->desc, &policy_, &a->loc, &error_)) return code;
    a->resolved = true;
    if (!(a->desc.flags & HOSTWAIT_CAI_F_HAS_MASK)) continue;
    if (const int code = hostwait_cai_resolve(&a->mask, &policy_, &a->mask_loc, &error_)) {
      return code;
    }
    if (const int code = hostwait_cai_check_mask(&a->loc, &a->mask_loc, &error_)) return code;
  }
  return 0;
}

int runner::readiness(std::vector<hostwait_cai_ready>* out) {
  if (case_.contains("arrow")) {
    const arrow_object arrow(case_.at("arrow"), world_);
    hostwait_cai_ready ready;
    HOSTWAIT_CAI_INIT(ready);
    const int code = hostwait_cai_arrow_ready(arrow.pointer(), &policy_, &ready, &error_);
    out->push_back(ready);
    return code;
  }
  if (!parsed_) {
    if (const int code = parse()) return code;
  }
  for (auto& a : arrays_) {
    hostwait_cai_ready ready;
    hostwait_cai_ready_from(&a->desc, a->resolved ? &a->loc : nullptr, const_cast<json*>(a->object),
                            &ready);
    if (a->dlpack) {
      ready.kind = HOSTWAIT_CAI_READY_UNKNOWN;
      std::fill(std::begin(policy_.legacy), std::end(policy_.legacy), 0);
      policy_.legacy[0] = HOSTWAIT_CAI_LEGACY_VIA_DLPACK;
      exchange_readiness(*a->object, &ready);
    }
    if (consumer_.value("producer_thread", "same") == "other") {
      ready.flags |= HOSTWAIT_CAI_READY_OTHER_THREAD;
    }
    if (given_.value("capture_safe_producers", false)) {
      ready.flags |= HOSTWAIT_CAI_READY_DLPACK_IN_CAPTURE;
    }
    if (given_.value("stream_ignoring_producer", false)) {
      ready.flags |= HOSTWAIT_CAI_READY_IGNORES_STREAM;
    }
    out->push_back(ready);
    if (!(a->desc.flags & HOSTWAIT_CAI_F_HAS_MASK)) continue;
    hostwait_cai_ready_from(&a->mask, a->resolved ? &a->mask_loc : nullptr, nullptr, &ready);
    out->push_back(ready);
  }
  return 0;
}

void runner::exchange_readiness(const json& object, hostwait_cai_ready* ready) {
  if (!object.contains("exchange_api")) return;
  const exchange_chain chain(object.at("exchange_api"), world_);
  if (hostwait_cai_exchange_find(chain.api()) == nullptr) return;
  hostwait_cai_exchange_ready(chain.api(), 2, 0, ready, nullptr, nullptr);
}

int runner::acquire(const std::string& name, uint64_t stream) {
  std::vector<hostwait_cai_ready> in;
  if (const int code = readiness(&in)) return code;
  return hostwait_cai_acquire(in.data(), in.size(), {stream}, &policy_, &tickets_[name], &error_);
}

int runner::release(const std::string& name) {
  driver_.releasing = true;
  return hostwait_cai_release(&tickets_[name], &error_);
}

int runner::wait_host(bool enqueue) {
  std::vector<hostwait_cai_ready> in;
  if (const int code = readiness(&in)) return code;
  const int code = hostwait_cai_wait_host(in.data(), in.size(), &policy_,
                                          enqueue ? &tickets_["a"] : nullptr, &error_);
  if (code != 0 || !enqueue) return code;
  return hostwait_cai_attach(&tickets_["a"], {consumer_stream()}, &error_);
}

int runner::do_export() {
  const json& e = case_.at("export");
  std::vector<hostwait_cai_stream> pending;
  for (const json& name : e.at("pending")) pending.push_back({named_stream(name, e)});
  hostwait_cai_export request;
  HOSTWAIT_CAI_INIT(request);
  request.pending = pending.data();
  request.pending_count = pending.size();
  request.version = e.value("version", 0);
  if (e.at("stream").is_null()) request.flags |= HOSTWAIT_CAI_EXPORT_NONE;
  if (!e.at("stream").is_null()) request.chosen.value = named_stream(e.at("stream"), e);
  if (policy_.sync == HOSTWAIT_CAI_SYNC_OFF) request.flags |= HOSTWAIT_CAI_EXPORT_OPT_OUT;
  const std::string owner = e.value("stream_owner", "promise");
  if (owner == "promise") request.flags |= HOSTWAIT_CAI_EXPORT_KEPT;
  if (owner == "object") request.stream_owner = this;
  HOSTWAIT_CAI_INIT(exported_);
  if (const int code = hostwait_cai_export_prepare(&request, &exported_, &error_)) return code;
  std::vector<int64_t> shape = e.value("shape", std::vector<int64_t>{4}), strides;
  for (const json& s : e.value("element_strides", json::array())) {
    strides.push_back(static_cast<int64_t>(read_int(s, world_).magnitude));
  }
  return hostwait_cai_describe("<f4", world_.memory.at(e.value("data", "P")),
                               static_cast<uint32_t>(shape.size()), shape.data(),
                               strides.empty() ? nullptr : strides.data(),
                               e.value("readonly", false), &exported_desc_, &error_);
}

json runner::exported_dict() const {
  const hostwait_cai_desc& d = exported_desc_;
  char typestr[40];
  hostwait_cai_typestr(&d, typestr, sizeof typestr);
  json shape = json::array(), strides = json::array();
  for (uint32_t i = 0; i < d.ndim; ++i)
    shape.push_back(d.shape[i]), strides.push_back(d.strides[i]);
  json out = {{"shape", {{"$tuple", shape}}},
              {"typestr", typestr},
              {"data", {{"$tuple", {d.ptr, d.readonly != 0}}}},
              {"version", exported_.version},
              {"strides", nullptr}};
  if (!(d.flags & HOSTWAIT_CAI_F_C_CONTIGUOUS)) out["strides"] = {{"$tuple", strides}};
  if (exported_.stream_state == HOSTWAIT_CAI_STREAM_NONE) out["stream"] = nullptr;
  if (exported_.stream_state == HOSTWAIT_CAI_STREAM_VALUE) out["stream"] = exported_.stream;
  return out;
}

int runner::parse_export() {
  const raw_input raw(exported_dict(), world_);
  hostwait_cai_desc back;
  const int code = hostwait_cai_validate(raw.raw(), &policy_, &back, nullptr, &error_);
  const hostwait_cai_desc& d = exported_desc_;
  round_trip_ = back.kind == d.kind && back.byteorder == d.byteorder && back.ptr == d.ptr &&
                back.itemsize == d.itemsize && back.readonly == d.readonly && back.lo == d.lo &&
                back.hi == d.hi && back.ndim == d.ndim && back.stream == exported_.stream &&
                std::equal(back.shape, back.shape + back.ndim, d.shape) &&
                std::equal(back.strides, back.strides + back.ndim, d.strides);
  return code;
}

int runner::map_dlpack_stream() {
  const json& d = case_.at("dlpack_stream");
  const hostwait_cai_int value = read_int(d.at("value"), world_);
  const std::map<std::string, int> types = {{"cpu", 1}, {"cuda", 2}, {"rocm", 10}};
  return hostwait_cai_dlpack_stream(&value, types.at(d.at("device_type")), 0, &dl_action_,
                                    &dl_stream_, &error_);
}

int runner::dlpack_export() {
  const json& d = case_.at("dlpack_export");
  const hostwait_cai_int value = read_int(d.at("stream"), world_);
  const int target = d.contains("dl_device") ? HOSTWAIT_CAI_DL_CPU : 0;
  if (const int code = hostwait_cai_dlpack_stream(&value, HOSTWAIT_CAI_DL_CUDA, target, &dl_action_,
                                                  &dl_stream_, &error_)) {
    return code;
  }
  std::vector<hostwait_cai_ready> in;
  for (const json& name : d.at("pending")) {
    hostwait_cai_ready ready;
    HOSTWAIT_CAI_INIT(ready);
    ready.kind = HOSTWAIT_CAI_READY_STREAM;
    ready.device = -1;
    ready.stream = world_.stream(name);
    in.push_back(ready);
  }
  return hostwait_cai_acquire(in.data(), in.size(), {dl_stream_}, &policy_, nullptr, &error_);
}

int runner::thread_exit() {
  const auto actions = driver_.actions;
  int at_end = 0;
  std::thread([&] {
    acquire("t", consumer_stream());
    release("t");
    at_end = driver_.calls;
  }).join();
  calls_after_end_ = driver_.calls - at_end;
  driver_.actions = actions;
  return 0;
}

std::string runner::run_in_child(size_t next) {
  driver_.calls = 0;
  const pid_t child = fork();
  if (child == 0) {
    const json& steps = case_.at("do");
    for (size_t i = next; i < steps.size() && code_ == 0; ++i) code_ = step(steps[i]);
    const std::string difference = compare();
    if (!difference.empty()) std::cerr << "in the child: " << difference << "\n";
    _exit(difference.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "" : "the forked child differs";
}

std::string run_case(const json& world_description, const json& vector, const json& test_case) {
  auto r = std::make_unique<runner>(world_description, vector, test_case);
  return r->run();
}

}  // namespace cai_test
