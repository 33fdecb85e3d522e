// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A view of any object with __cuda_array_interface__, __dlpack__ or the DLPack C exchange table.
// Part of cai_python.hpp.
#pragma once

#include <hostwait/cai_python/dlpack.hpp>
#include <hostwait/cai_python/parse.hpp>

#include <memory>
#include <optional>

namespace hostwait::cai::py {

enum class source {
  automatic,  // the exchange table where the policy's chain begins with it; then as `cai`
  cai,        // __cuda_array_interface__, else __dlpack__
  dlpack      // exchange table, __dlpack__, else __cuda_array_interface__
};

struct options {
  hostwait_cai_policy policy;
  source prefer = source::automatic;
  // DLPack: the consumer's stream, handed to the producer when the view is made (one call of
  // __dlpack__ instead of two). Promises that no capture is open on it, or that the producer may be
  // called in one. 0: the producer is asked for the order at acquire, where captures are checked.
  uint64_t consumer = 0;
  bool other_thread = false;    // stream 2 means another thread's: policy.ptds decides
  bool capture_safe = false;    // the producer's __dlpack__ may be called while `consumer` captures
  bool ignores_stream = false;  // a DLPack producer known to ignore stream=
  bool keep_alive = true;       // hold the owner until the consumer's stream has passed the release

  options() noexcept {
    HOSTWAIT_CAI_INIT(policy);
    hostwait_cai_policy_init(&policy);
  }
};

/* A parsed, checked array and a reference to what keeps it alive. Made, moved and destroyed under
 * the GIL. Nothing has been waited for: that is acquire's. */
class view {
 public:
  view() noexcept {}  // not defaulted: value initialisation would clear more than a kilobyte
  /* Null with an exception set: the getter's own, or one of set_error. */
  static std::optional<view> from(PyObject* object, const options& chosen = options());
  /* From a descriptor that was handed over without its object. `owner` (may be null) is kept alive
   * like the object of `from`. */
  static std::optional<view> from_dict(PyObject* dict, PyObject* owner,
                                       const options& chosen = options());

  const hostwait_cai_desc& desc() const noexcept { return desc_; }
  const hostwait_cai_desc* mask() const noexcept { return mask_.get(); }
  source made_from() const noexcept { return made_from_; }
  PyObject* owner() const noexcept { return owner_.get(); }

  /* Where the data are (asks the driver once); null with an exception set. */
  const hostwait_cai_loc* locate(const hostwait_cai_policy& policy);

  /* What acquire needs: the array's readiness and the mask's. */
  unsigned ready_count() const noexcept { return mask_ ? 2 : 1; }
  const hostwait_cai_ready& ready(unsigned i) const noexcept { return ready_[i]; }

 private:
  bool read(PyObject* object, const options& chosen);
  bool read_cai(PyObject* container, const options& chosen);
  bool read_dlpack(PyObject* object, PyObject* method, const options& chosen);
  bool read_exchange(PyObject* object, const detail::dl_exchange_api*, const options& chosen);
  bool try_cai(PyObject* object, const options& chosen, bool& found);
  bool try_dlpack(PyObject* object, const options& chosen, bool& found);
  void flag(const options& chosen) noexcept;

  hostwait_cai_desc desc_;
  hostwait_cai_loc loc_;
  hostwait_cai_ready ready_[2];
  bool located_ = false;
  source made_from_ = source::cai;
  std::unique_ptr<hostwait_cai_desc> mask_;
  ref owner_;       // object, or capsule that owns a managed tensor
  ref mask_owner_;  // object behind the mask
  ref producer_;    // object for the hooks; the readiness points to it
};

inline void view::flag(const options& chosen) noexcept {
  for (hostwait_cai_ready& ready : ready_) {
    if (chosen.other_thread) ready.flags |= HOSTWAIT_CAI_READY_OTHER_THREAD;
    if (chosen.capture_safe) ready.flags |= HOSTWAIT_CAI_READY_DLPACK_IN_CAPTURE;
    if (chosen.ignores_stream) ready.flags |= HOSTWAIT_CAI_READY_IGNORES_STREAM;
  }
}

inline bool view::read_cai(PyObject* container, const options& chosen) {
  detail::parsed parsed;
  const bool mapping = chosen.policy.lenient & HOSTWAIT_CAI_LENIENT_MAPPING;
  if (!detail::parse(container, mapping, parsed)) return false;
  parsed.raw.from_dict = chosen.policy.from_dict;
  if (parsed.raw.mask_type != HOSTWAIT_CAI_T_ABSENT &&
      parsed.raw.mask_type != HOSTWAIT_CAI_T_NONE) {
    mask_ = std::make_unique<hostwait_cai_desc>();
  }
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  const int code = hostwait_cai_validate(&parsed.raw, &chosen.policy, &desc_, mask_.get(), &error);
  if (code != HOSTWAIT_CAI_OK) return set_error(error);
  mask_owner_ = std::move(parsed.mask_object);
  for (hostwait_cai_ready& ready : ready_) HOSTWAIT_CAI_INIT(ready);
  hostwait_cai_ready_from(&desc_, nullptr, producer_.get(), &ready_[0]);
  if (mask_) hostwait_cai_ready_from(mask_.get(), nullptr, mask_owner_.get(), &ready_[1]);
  made_from_ = source::cai;
  return true;
}

inline bool view::read_dlpack(PyObject* object, PyObject* method, const options& chosen) {
  // Without a stream acquire asks again with the consumer's, if its policy says so.
  const bool ordered = chosen.consumer != 0 && !chosen.ignores_stream;
  ref capsule = detail::call_dlpack(
      method, ordered ? static_cast<long long>(chosen.consumer) : detail::unordered_stream(object));
  if (!capsule) return false;
  HOSTWAIT_CAI_INIT(desc_);
  HOSTWAIT_CAI_INIT(loc_);
  if (!detail::take_capsule(capsule.get(), chosen.policy, desc_, loc_, owner_)) {
    const exception_scope pending;
    capsule = {};
    return false;
  }
  located_ = true;
  producer_ = ref::borrow(object);
  for (hostwait_cai_ready& ready : ready_) HOSTWAIT_CAI_INIT(ready);
  hostwait_cai_ready_from(&desc_, &loc_, producer_.get(), &ready_[0]);
  ready_[0].kind = ordered ? HOSTWAIT_CAI_READY_NOW : HOSTWAIT_CAI_READY_UNKNOWN;
  made_from_ = source::dlpack;
  return true;
}

inline bool view::read_exchange(PyObject* object, const detail::dl_exchange_api* api,
                                const options& chosen) {
  detail::dl_managed_versioned* managed = nullptr;
  if (api->managed_from_object(object, &managed) != 0 || managed == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "the exchange table gave no tensor");
    return false;
  }
  HOSTWAIT_CAI_INIT(desc_);
  HOSTWAIT_CAI_INIT(loc_);
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  int code = hostwait_cai_from_dlpack("dltensor_versioned", managed, &chosen.policy, &desc_, &loc_,
                                      &error);
  // A version that the core does not know has been handed to its deleter.
  if (code != HOSTWAIT_CAI_ERR_VERSION) owner_ = detail::own_managed(managed, true);
  if (code != HOSTWAIT_CAI_OK) return set_error(error);
  if (!owner_) return false;
  located_ = true;
  producer_ = ref::borrow(object);
  for (hostwait_cai_ready& ready : ready_) HOSTWAIT_CAI_INIT(ready);
  hostwait_cai_ready_from(&desc_, &loc_, producer_.get(), &ready_[0]);
  hostwait_cai_ready current;
  HOSTWAIT_CAI_INIT(current);
  code = hostwait_cai_exchange_ready(api, HOSTWAIT_CAI_DL_CUDA, loc_.device, &current, nullptr,
                                     &error);
  if (code != HOSTWAIT_CAI_OK) return set_error(error);
  ready_[0].kind = current.kind;
  ready_[0].stream = current.stream;
  made_from_ = source::dlpack;
  return true;
}

inline bool view::try_cai(PyObject* object, const options& chosen, bool& found) {
  ref container;
  if (!detail::optional_attribute(object, detail::state().cai, container)) return false;
  found = static_cast<bool>(container);
  if (!found) return true;
  owner_ = ref::borrow(object);
  producer_ = ref::borrow(object);
  return read_cai(container.get(), chosen);
}

inline bool view::try_dlpack(PyObject* object, const options& chosen, bool& found) {
  ref method;
  if (!detail::optional_attribute(object, detail::state().dlpack, method)) return false;
  found = static_cast<bool>(method);
  return !found || read_dlpack(object, method.get(), chosen);
}

inline bool view::read(PyObject* object, const options& chosen) {
  bool found = false;
  const bool table_first = chosen.prefer == source::dlpack ||
                           (chosen.prefer == source::automatic &&
                            chosen.policy.legacy[0] == HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT);
  const detail::dl_exchange_api* api = table_first ? detail::exchange_api_of(object) : nullptr;
  if (api != nullptr && api->managed_from_object != nullptr && api->current_work_stream != nullptr)
    return read_exchange(object, api, chosen);
  const bool dlpack_first = chosen.prefer == source::dlpack;
  for (int turn = 0; turn < 2 && !found; ++turn) {
    const bool dlpack = dlpack_first == (turn == 0);
    if (!(dlpack ? try_dlpack(object, chosen, found) : try_cai(object, chosen, found)))
      return false;
  }
  return found || set_error(HOSTWAIT_CAI_ERR_NOT_CAI, "",
                            "the object has neither __cuda_array_interface__ nor __dlpack__");
}

inline std::optional<view> view::from(PyObject* object, const options& chosen) try {
  if (!detail::enter()) return std::nullopt;
  detail::drop_due();
  std::optional<view> result(std::in_place);
  if (result->read(object, chosen)) {
    result->flag(chosen);
  } else {
    const exception_scope pending;
    result.reset();
  }
  return result;
} catch (const std::bad_alloc&) {
  PyErr_NoMemory();
  return std::nullopt;
}

inline std::optional<view> view::from_dict(PyObject* dict, PyObject* owner,
                                           const options& chosen) try {
  if (!detail::enter()) return std::nullopt;
  detail::drop_due();
  std::optional<view> result(std::in_place);
  result->owner_ = ref::borrow(owner != nullptr ? owner : dict);
  result->producer_ = result->owner_.copy();
  options own = chosen;
  own.policy.from_dict = 1;
  if (result->read_cai(dict, own))
    result->flag(chosen);
  else
    result.reset();
  return result;
} catch (const std::bad_alloc&) {
  PyErr_NoMemory();
  return std::nullopt;
}

inline const hostwait_cai_loc* view::locate(const hostwait_cai_policy& policy) {
  if (located_) return &loc_;
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  HOSTWAIT_CAI_INIT(loc_);
  int code = hostwait_cai_resolve(&desc_, &policy, &loc_, &error);
  if (code == HOSTWAIT_CAI_OK && mask_) {
    hostwait_cai_loc mask_loc;
    HOSTWAIT_CAI_INIT(mask_loc);
    code = hostwait_cai_resolve(mask_.get(), &policy, &mask_loc, &error);
    if (code == HOSTWAIT_CAI_OK) code = hostwait_cai_check_mask(&loc_, &mask_loc, &error);
    if (code == HOSTWAIT_CAI_OK) ready_[1].device = mask_loc.device;
  }
  if (code != HOSTWAIT_CAI_OK) {
    set_error(error);
    return nullptr;
  }
  located_ = true;
  ready_[0].device = loc_.device;
  ready_[0].context = loc_.context;
  return &loc_;
}

}  // namespace hostwait::cai::py
