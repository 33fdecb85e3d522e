/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * Hand arrays from one CUDA library to another without stopping the host: CUDA Array Interface
 * (CAI) v3, DLPack's stream convention and Arrow's sync_event behind one readiness type. C99 ABI;
 * needs neither CUDA headers nor libcuda at link time.
 *
 * The way of an array:  raw --validate--> desc --resolve--> loc --ready_from--> ready
 *                       ready[] --acquire--> ticket, work on the consumer's stream --release-->
 *
 * Conventions
 *   - Every function returns HOSTWAIT_CAI_OK (0) or a code > 0. `err` may be NULL; else err->size
 *     must be set (HOSTWAIT_CAI_INIT does) and it is filled completely on failure, with code OK on
 *     success. Nothing is thrown, printed or aborted.
 *   - Structs begin with their size, set by the caller; fields are only appended. NULL for a policy
 *     means hostwait_cai_policy_init's values.
 *   - Handles (streams, events, contexts) are driver handles in a uint64_t; those of the runtime
 * are the same.
 *   - Any thread may call anything; one ticket belongs to one thread at a time. After fork() the
 *     child of a process that used the driver gets HOSTWAIT_CAI_ERR_FORKED before any driver call.
 *   - The calling thread's current context is the same after each call as before it. */
#ifndef HOSTWAIT_CAI_H
#define HOSTWAIT_CAI_H

#include <stddef.h>
#include <stdint.h>

#if defined(HOSTWAIT_CAI_STATIC)
#define HOSTWAIT_CAI_API
#else
#define HOSTWAIT_CAI_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HOSTWAIT_CAI_MAX_NDIM 64

/* X(name): HOSTWAIT_CAI_ERR_<NAME>; hostwait_cai_code_name gives the same word in lower case. The
 * order is frozen, new codes are appended. */
/* clang-format off */
#define HOSTWAIT_CAI_CODES(X)                                                                   \
  X(MISSING_KEY) X(NOT_CAI) X(NOT_DICT) X(TYPE) X(TYPESTR) X(BYTEORDER) X(ITEMSIZE)             \
  X(UNSUPPORTED_DTYPE) X(OBJECT_DTYPE) X(DESCR) X(DESCR_SIZE) X(STRIDES_RANK) X(SHAPE_NEGATIVE) \
  X(OVERFLOW) X(NDIM) X(OVERLAP) X(STRIDE_NOT_MULTIPLE) X(OUT_OF_RANGE) X(READONLY)             \
  X(DATA_ARITY) X(NULL_DATA) X(POINTER_RANGE) X(ALIGNMENT) X(NOT_DEVICE) X(NO_PEER) X(VERSION)  \
  X(VERSION_TOO_NEW) X(MASK_SHAPE) X(MASK_TYPE) X(MASK_UNSUPPORTED) X(MASK_NESTED)              \
  X(MASK_DEVICE) X(STREAM_ZERO) X(STREAM_RANGE) X(STREAM_CPU) X(ENV) X(DEVICE_MISMATCH)         \
  X(DEVICE) X(FORKED) X(CAPTURE_BOUNDARY) X(CAPTURE_LEGACY) X(CAPTURE_HOST_SYNC)                \
  X(CAPTURE_INVALIDATED) X(PTDS_THREAD) X(PENDING) X(STREAM_OWNER) X(CONSUMED)                  \
  X(RELEASED) X(RESERVED) X(NO_DRIVER) X(DRIVER) X(CALLBACK) X(NO_MEMORY) X(INVALID)
/* clang-format on */

typedef enum {
  HOSTWAIT_CAI_OK = 0,
#define HOSTWAIT_CAI_ENUM_(name) HOSTWAIT_CAI_ERR_##name,
  HOSTWAIT_CAI_CODES(HOSTWAIT_CAI_ENUM_)
#undef HOSTWAIT_CAI_ENUM_
      HOSTWAIT_CAI_CODE_COUNT
} hostwait_cai_code;

typedef struct {
  uint32_t size;
  int32_t code;   /* hostwait_cai_code */
  int32_t driver; /* CUresult of the failed call, 0 if none */
  int32_t index;  /* of the offending dimension, descr field or data entry; -1 none */
  int32_t array;  /* number in the batch given to acquire & co.; -1 none */
  int32_t reserved;
  const char* key; /* static: "shape", "stream", …; "mask" for all inside a mask; "" none */
  char text[160];  /* one sentence, for people */
} hostwait_cai_error;

/* Zero-initialises a struct of this header and sets its size. */
#define HOSTWAIT_CAI_INIT(object) \
  (__builtin_memset(&(object), 0, sizeof(object)), (void)((object).size = sizeof(object)))

HOSTWAIT_CAI_API const char* hostwait_cai_code_name(int code); /* "stream_zero"; "" if unknown */
HOSTWAIT_CAI_API const char* hostwait_cai_version(void);

/* ---- Streams ------------------------------------------------------------------------------ */

/* A stream named without ambiguity: 1 legacy default, 2 the calling thread's default, else a
 * handle. 0 is refused everywhere. 1 and 2 are meant in the current context (the data's primary
 * context where the thread has none). */
typedef struct {
  uint64_t value;
} hostwait_cai_stream;

#define HOSTWAIT_CAI_LEGACY 1u
#define HOSTWAIT_CAI_PER_THREAD 2u

static inline hostwait_cai_stream hostwait_cai_stream_value(uint64_t value) {
  hostwait_cai_stream s;
  s.value = value;
  return s;
}

/* From a cudaStream_t or CUstream: the null handle becomes what it means in this translation
 * unit, which alone knows whether it was compiled for per-thread default streams. */
static inline hostwait_cai_stream hostwait_cai_stream_of(const void* stream) {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return hostwait_cai_stream_value(stream ? (uint64_t)(uintptr_t)stream : HOSTWAIT_CAI_PER_THREAD);
#else
  return hostwait_cai_stream_value(stream ? (uint64_t)(uintptr_t)stream : HOSTWAIT_CAI_LEGACY);
#endif
}

/* ---- What was found in the dict (written by the glue, judged by the core) ------------------ */

/* How a value was spelled. The glue only classifies; accepting or refusing is the validator's. */
typedef enum {
  HOSTWAIT_CAI_T_ABSENT = 0, /* no such key */
  HOSTWAIT_CAI_T_NONE,
  HOSTWAIT_CAI_T_INT,
  HOSTWAIT_CAI_T_BOOL,        /* True, False (numpy.bool_ is INDEX or OTHER) */
  HOSTWAIT_CAI_T_INDEX,       /* no int, but has __index__: numpy.int64, numpy.uint64 */
  HOSTWAIT_CAI_T_CUDA_STREAM, /* has __cuda_stream__; the integer is the handle it gave */
  HOSTWAIT_CAI_T_FLOAT,
  HOSTWAIT_CAI_T_STR,
  HOSTWAIT_CAI_T_BYTES,
  HOSTWAIT_CAI_T_TUPLE,
  HOSTWAIT_CAI_T_LIST,
  HOSTWAIT_CAI_T_DICT,    /* dict or a subclass */
  HOSTWAIT_CAI_T_MAPPING, /* a mapping that is no dict */
  HOSTWAIT_CAI_T_OBJECT,  /* mask: an object without the interface */
  HOSTWAIT_CAI_T_OTHER
} hostwait_cai_type;

/* A Python integer of any size: sign and magnitude, `wide` when the magnitude needs more than 64
 * bits. bool: magnitude 0 or 1. */
typedef struct {
  uint64_t magnitude;
  uint8_t type; /* hostwait_cai_type */
  uint8_t negative;
  uint8_t wide;
  uint8_t reserved[5];
} hostwait_cai_int;

static inline hostwait_cai_int hostwait_cai_int_of(int64_t value) {
  hostwait_cai_int i = {0, HOSTWAIT_CAI_T_INT, 0, 0, {0, 0, 0, 0, 0}};
  i.negative = value < 0;
  i.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  return i;
}
static inline hostwait_cai_int hostwait_cai_uint_of(uint64_t value) {
  hostwait_cai_int i = {0, HOSTWAIT_CAI_T_INT, 0, 0, {0, 0, 0, 0, 0}};
  i.magnitude = value;
  return i;
}

/* One field of descr; nested descriptions flattened, `count` the product of its sub-shape. */
typedef struct {
  const char* typestr;
  uint64_t typestr_len;
  uint64_t count;
} hostwait_cai_field;

typedef struct hostwait_cai_raw {
  uint32_t size;
  uint8_t container; /* DICT, MAPPING; else not_dict */
  uint8_t from_dict; /* 1: a dict was given in place of an object (hostwait_cai_policy.from_dict) */
  uint8_t unknown_keys; /* number of keys that are not the interface's, capped at 255 */
  uint8_t typestr_type, shape_type, strides_type, data_type, descr_type, mask_type;
  uint8_t reserved[3];
  const char* typestr; /* need not end in NUL */
  uint64_t typestr_len;
  const hostwait_cai_int* shape; /* only the first HOSTWAIT_CAI_MAX_NDIM + 1 are read */
  uint64_t shape_len;
  const hostwait_cai_int* strides;
  uint64_t strides_len;
  uint64_t data_len; /* entries of data */
  hostwait_cai_int data_ptr, data_readonly;
  hostwait_cai_int version, stream;
  const hostwait_cai_field* descr;
  uint64_t descr_len;
  const struct hostwait_cai_raw* mask; /* when mask_type is DICT or MAPPING */
} hostwait_cai_raw;

/* ---- Policy -------------------------------------------------------------------------------- */

/* What the validator lets pass beyond the letter. */
enum {
  HOSTWAIT_CAI_LENIENT_LIST = 1 << 0,          /* lists for tuples: shape, strides, data */
  HOSTWAIT_CAI_LENIENT_NONE_POINTER = 1 << 1,  /* data (None, x) when empty */
  HOSTWAIT_CAI_LENIENT_MAPPING = 1 << 2,       /* a mapping for the dict */
  HOSTWAIT_CAI_LENIENT_VERSION = 1 << 3,       /* missing version counts as 0 */
  HOSTWAIT_CAI_LENIENT_BYTEORDER = 1 << 4,     /* '|f4' is native */
  HOSTWAIT_CAI_LENIENT_BYTES = 1 << 5,         /* b'<f4' */
  HOSTWAIT_CAI_LENIENT_BOOL = 1 << 6,          /* 0, 1 for the read-only flag; bool for ints */
  HOSTWAIT_CAI_LENIENT_STREAM_ZERO = 1 << 7,   /* stream 0 counts as 1, flagged */
  HOSTWAIT_CAI_LENIENT_CUDA_STREAM = 1 << 8,   /* stream: an object with __cuda_stream__ */
  HOSTWAIT_CAI_LENIENT_THREAD = 1 << 9,        /* release on another thread than acquire: the
                                                  per-thread stream becomes the legacy stream */
  HOSTWAIT_CAI_LENIENT_NULL_STRIDES = 1 << 10, /* DLPack 1.2+: NULL strides with ndim > 1 */
  HOSTWAIT_CAI_LENIENT_RESERVED = 1 << 11,     /* Arrow: reserved words not zero */
  HOSTWAIT_CAI_LENIENT_DEFAULT = HOSTWAIT_CAI_LENIENT_LIST | HOSTWAIT_CAI_LENIENT_NONE_POINTER |
                                 HOSTWAIT_CAI_LENIENT_THREAD | HOSTWAIT_CAI_LENIENT_NULL_STRIDES,
  HOSTWAIT_CAI_LENIENT_ALL = 0xfff
};

enum { HOSTWAIT_CAI_READ = 1, HOSTWAIT_CAI_WRITE = 2 };

/* Options: what the caller can handle, wants checked, or promises. */
enum {
  HOSTWAIT_CAI_ACCEPT_NEWER = 1 << 0,     /* version > 3 */
  HOSTWAIT_CAI_ACCEPT_BYTEORDER = 1 << 1, /* non-native byte order */
  HOSTWAIT_CAI_ACCEPT_DTYPE = 1 << 2,     /* f16, c4 and the like */
  HOSTWAIT_CAI_ACCEPT_MASK = 1 << 3,      /* the caller handles masks */
  HOSTWAIT_CAI_ACCEPT_BIT_MASK = 1 << 4,  /* … and 1-D '|t1' masks */
  HOSTWAIT_CAI_ACCEPT_PAGEABLE = 1 << 5,  /* pageable host memory where the device reaches it */
  HOSTWAIT_CAI_REJECT_UNALIGNED = 1 << 6,
  HOSTWAIT_CAI_REJECT_BYTE_STRIDES = 1 << 7, /* strides that are no multiple of the item size */
  HOSTWAIT_CAI_IGNORE_READONLY = 1 << 8,
  HOSTWAIT_CAI_CHECK_RANGE = 1 << 9,     /* resolve: extent inside the allocation */
  HOSTWAIT_CAI_CHECK_PEER = 1 << 10,     /* resolve: use_device can address the pointer directly */
  HOSTWAIT_CAI_CHECK_HANDLES = 1 << 11,  /* stream handles 3 … 4095 are refused */
  HOSTWAIT_CAI_TRUST_IMPLICIT = 1 << 12, /* elide legacy against a blocking stream of one context */
  HOSTWAIT_CAI_TRUST_NO_CAPTURE = 1 << 13, /* promise: no capture is open; skips the probes */
  HOSTWAIT_CAI_NO_BACK_EDGE = 1 << 14      /* promise: both sides only read */
};

/* Does the stream entry order anything? */
typedef enum {
  HOSTWAIT_CAI_SYNC_ENV = 0, /* HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC, default on */
  HOSTWAIT_CAI_SYNC_ON,
  HOSTWAIT_CAI_SYNC_OFF
} hostwait_cai_sync;

/* Producers that say nothing about streams (CAI up to version 2): tried in order until one
 * applies; END after the last. A chain that ends without one is no error: nothing is ordered. */
typedef enum {
  HOSTWAIT_CAI_LEGACY_END = 0,
  HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT, /* hook gives the producer's current stream, not null */
  HOSTWAIT_CAI_LEGACY_VIA_DLPACK,       /* hook asks the producer to order the consumer's stream */
  HOSTWAIT_CAI_LEGACY_JOIN,             /* the consumer waits for the legacy stream */
  HOSTWAIT_CAI_LEGACY_DEVICE,           /* the host waits for the data's context */
  HOSTWAIT_CAI_LEGACY_NONE              /* taken as ready */
} hostwait_cai_legacy;

/* Stream 2 whose work another thread enqueued (HOSTWAIT_CAI_READY_OTHER_THREAD). */
typedef enum {
  HOSTWAIT_CAI_PTDS_TRUST = 0, /* wait for the calling thread's stream */
  HOSTWAIT_CAI_PTDS_JOIN,      /* wait for the legacy stream */
  HOSTWAIT_CAI_PTDS_DEVICE,    /* the host waits for the context */
  HOSTWAIT_CAI_PTDS_REJECT
} hostwait_cai_ptds;

/* Producer and consumer are not in the same capture: what then. */
typedef enum {
  HOSTWAIT_CAI_CAPTURE_ERROR = 0,
  HOSTWAIT_CAI_CAPTURE_ASSUME_READY,  /* the caller guarantees the order */
  HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT /* external event wait, see rearm */
} hostwait_cai_capture;

struct hostwait_cai_ready;

/* An ordering that was opted out of while work was pending in the exported stream. */
typedef struct {
  uint32_t size;
  int32_t array;
  uint64_t stream, consumer; /* consumer 0: the host */
} hostwait_cai_audit;

/* Steps that only the glue can take. All run on the calling thread, inside acquire, before the
 * first ordering call. (The Python glue takes the GIL in them.) They return 1 done, 0 not
 * available, < 0 failed: acquire returns HOSTWAIT_CAI_ERR_CALLBACK at once. */
typedef struct {
  uint32_t size;
  uint32_t reserved;
  void* user;
  /* Puts out the producer's current stream for the array's device. 0 in *stream (null handle):
   * ambiguous, the next policy of the chain decides. */
  int (*producer_current)(void* user, const struct hostwait_cai_ready*, uint64_t* stream);
  /* Makes `consumer` wait for the producer's work, by the producer's own __dlpack__(stream=). */
  int (*via_dlpack)(void* user, const struct hostwait_cai_ready*, uint64_t consumer);
  /* Optional. Must not call CUDA. */
  void (*audit)(void* user, const hostwait_cai_audit*);
} hostwait_cai_hooks;

typedef struct {
  uint32_t size;
  uint32_t lenient; /* HOSTWAIT_CAI_LENIENT_… */
  uint32_t intent;  /* HOSTWAIT_CAI_READ | WRITE */
  uint32_t options;
  int32_t device;     /* where the caller says the data are; -1: nothing said */
  int32_t use_device; /* CHECK_PEER: device that will use the pointer; -1: the current one */
  uint8_t sync;       /* hostwait_cai_sync */
  uint8_t ptds;
  uint8_t capture;
  uint8_t from_dict; /* a bare dict is accepted */
  uint8_t legacy[4]; /* chain of hostwait_cai_legacy */
  const hostwait_cai_hooks* hooks;
} hostwait_cai_policy;

/* Defaults: intent read and write, lenient DEFAULT, chain producer_current, via_dlpack, join,
 * capture error, ptds trust, sync from the environment. */
HOSTWAIT_CAI_API void hostwait_cai_policy_init(hostwait_cai_policy*);
/* The same with lenient 0: what the vectors call strict. */
HOSTWAIT_CAI_API void hostwait_cai_policy_strict(hostwait_cai_policy*);

/* ---- Description --------------------------------------------------------------------------- */

/* hostwait_cai_desc.flags */
enum {
  HOSTWAIT_CAI_F_C_CONTIGUOUS = 1 << 0,
  HOSTWAIT_CAI_F_F_CONTIGUOUS = 1 << 1,
  HOSTWAIT_CAI_F_BROADCAST = 1 << 2, /* a stride of 0 in a dimension longer than 1 */
  HOSTWAIT_CAI_F_EMPTY = 1 << 3,
  HOSTWAIT_CAI_F_UNALIGNED = 1 << 4,
  HOSTWAIT_CAI_F_UNKNOWN_KEYS = 1 << 5,
  HOSTWAIT_CAI_F_OVERLAP = 1 << 6,      /* elements may share memory */
  HOSTWAIT_CAI_F_BYTE_STRIDES = 1 << 7, /* a stride is no multiple of the item size */
  HOSTWAIT_CAI_F_HAS_DESCR = 1 << 8,
  HOSTWAIT_CAI_F_HAS_MASK = 1 << 9,
  HOSTWAIT_CAI_F_BITS = 1 << 10,            /* '|t1': shape counts bits */
  HOSTWAIT_CAI_F_STREAM_WAS_ZERO = 1 << 11, /* lenient: 0 taken as 1 */
  HOSTWAIT_CAI_F_LENIENT = 1 << 12,         /* accepted only by a lenient bit */
  HOSTWAIT_CAI_F_MASK_BEFORE_V1 = 1 << 13,
  HOSTWAIT_CAI_F_IMPLIED_STRIDES = 1 << 14 /* none given: C order */
};

enum { HOSTWAIT_CAI_STREAM_ABSENT = 0, HOSTWAIT_CAI_STREAM_NONE, HOSTWAIT_CAI_STREAM_VALUE };

typedef struct {
  uint32_t size;
  int32_t version;
  uint32_t ndim;
  uint32_t flags;
  char kind;      /* b i u f c m M S U V t */
  char byteorder; /* '<' '>' '|' */
  uint8_t readonly;
  uint8_t stream_state;
  char unit[12];     /* of m and M: "ns", "25us"; "" for none */
  uint64_t itemsize; /* bytes; 1 for bits */
  uint64_t count;    /* elements */
  uint64_t nbytes;   /* count × itemsize; bytes of the bit string for bits */
  uint64_t ptr;      /* 0 for empty arrays */
  uint64_t stream;
  int64_t lo, hi; /* bytes touched: [ptr + lo, ptr + hi); both 0 when empty */
  int64_t shape[HOSTWAIT_CAI_MAX_NDIM];
  int64_t strides[HOSTWAIT_CAI_MAX_NDIM]; /* bytes; filled also when none were given */
} hostwait_cai_desc;

/* Checks `raw` and fills `desc`, and `mask` where there is one (`mask` may be NULL only without
 * ACCEPT_MASK). Reads no memory but its arguments. */
HOSTWAIT_CAI_API int hostwait_cai_validate(const hostwait_cai_raw* raw, const hostwait_cai_policy*,
                                           hostwait_cai_desc* desc, hostwait_cai_desc* mask,
                                           hostwait_cai_error* err);

/* From C values, for producers and for consumers of other protocols. `typestr` ends in NUL;
 * `element_strides` counts items, NULL for C order. */
HOSTWAIT_CAI_API int hostwait_cai_describe(const char* typestr, uint64_t ptr, uint32_t ndim,
                                           const int64_t* shape, const int64_t* element_strides,
                                           int readonly, hostwait_cai_desc*, hostwait_cai_error*);

/* Byte range relative to ptr: what validate stored, recomputed with overflow checks. */
HOSTWAIT_CAI_API int hostwait_cai_extent(const hostwait_cai_desc*, int64_t* lo, int64_t* hi);

/* Strides in elements; ERR_STRIDE_NOT_MULTIPLE where that is not possible. `out` has ndim items. */
HOSTWAIT_CAI_API int hostwait_cai_element_strides(const hostwait_cai_desc*, int64_t* out,
                                                  hostwait_cai_error*);

/* Writes the typestr with a NUL; returns its length, 0 if `room` does not suffice (40 does). */
HOSTWAIT_CAI_API size_t hostwait_cai_typestr(const hostwait_cai_desc*, char* out, size_t room);

/* ---- Where the data are -------------------------------------------------------------------- */

enum {
  HOSTWAIT_CAI_MEM_NONE = 0, /* empty array */
  HOSTWAIT_CAI_MEM_DEVICE,
  HOSTWAIT_CAI_MEM_PINNED,
  HOSTWAIT_CAI_MEM_MANAGED,
  HOSTWAIT_CAI_MEM_PAGEABLE
};

typedef struct {
  uint32_t size;
  int32_t device; /* ordinal of this process; -1 unknown */
  uint32_t kind;
  uint32_t reserved;
  uint64_t ptr;     /* as the device sees it (differs for mapped host memory) */
  uint64_t context; /* 0 for memory without one (pools, VMM): the primary context is meant */
} hostwait_cai_loc;

/* Asks the driver (one cuPointerGetAttributes; safe during captures). */
HOSTWAIT_CAI_API int hostwait_cai_resolve(const hostwait_cai_desc*, const hostwait_cai_policy*,
                                          hostwait_cai_loc*, hostwait_cai_error*);
/* HOSTWAIT_CAI_ERR_MASK_DEVICE unless both lie on one device. */
HOSTWAIT_CAI_API int hostwait_cai_check_mask(const hostwait_cai_loc* data,
                                             const hostwait_cai_loc* mask, hostwait_cai_error*);

/* ---- Readiness ----------------------------------------------------------------------------- */

typedef enum {
  HOSTWAIT_CAI_READY_NOW = 0, /* nothing to order */
  HOSTWAIT_CAI_READY_STREAM,
  HOSTWAIT_CAI_READY_EVENT,  /* a foreign event (Arrow): waited on, never recorded or destroyed */
  HOSTWAIT_CAI_READY_UNKNOWN /* the producer says nothing */
} hostwait_cai_ready_kind;

/* hostwait_cai_ready.flags */
enum {
  HOSTWAIT_CAI_READY_OTHER_THREAD = 1 << 0,      /* stream 2 means another thread's: policy ptds */
  HOSTWAIT_CAI_READY_DLPACK_IN_CAPTURE = 1 << 1, /* via_dlpack is known to be capture-safe */
  HOSTWAIT_CAI_READY_IGNORES_STREAM = 1 << 2     /* DLPack producer known to ignore stream=: after
                                                    via_dlpack the legacy stream is joined, too */
};

typedef struct hostwait_cai_ready {
  uint32_t size;
  uint32_t kind;
  uint32_t flags;
  int32_t device;   /* -1 unknown */
  uint64_t stream;  /* READY_STREAM: 1, 2 or a handle */
  uint64_t event;   /* READY_EVENT: CUevent */
  uint64_t context; /* of the data, 0 unknown: then found by ptr, device, or the current one */
  uint64_t ptr;     /* 0 unknown */
  void* producer;   /* for the hooks */
} hostwait_cai_ready;

/* desc (and loc, may be NULL) to readiness: a stream value → STREAM; version 3 without → NOW;
 * older without → UNKNOWN. */
HOSTWAIT_CAI_API void hostwait_cai_ready_from(const hostwait_cai_desc*, const hostwait_cai_loc*,
                                              void* producer, hostwait_cai_ready*);

/* ---- Acquire and release ------------------------------------------------------------------- */

/* hostwait_cai_ticket.state */
enum {
  HOSTWAIT_CAI_TICKET_IDLE = 0, /* nothing due; also after release */
  HOSTWAIT_CAI_TICKET_STREAM,
  HOSTWAIT_CAI_TICKET_HOST
};

typedef struct {
  uint64_t stream, context, event;
} hostwait_cai_edge;

/* A small value; may be copied bytewise if exactly one copy is used afterwards. The fields are
 * the library's. */
typedef struct {
  uint32_t size;
  uint16_t state, flags;
  uint32_t count;
  uint32_t thread; /* the acquiring thread, by a number of the library */
  uint64_t consumer, context;
  uint64_t done; /* event of the first poll of a stream ticket */
  hostwait_cai_edge edge[4];
  hostwait_cai_edge* more; /* beyond four */
} hostwait_cai_ticket;

/* Makes `consumer` wait for all of `in` without stopping the host (but for the two policies that
 * say so), one wait per distinct producer stream, nothing for the consumer's own stream. Plans
 * first: on error nothing has been ordered (but by hooks), no capture is disturbed and the ticket
 * is idle. Work may then be enqueued in `consumer` until release. */
HOSTWAIT_CAI_API int hostwait_cai_acquire(const hostwait_cai_ready* in, size_t n,
                                          hostwait_cai_stream consumer, const hostwait_cai_policy*,
                                          hostwait_cai_ticket*, hostwait_cai_error*);

/* The way back: each producer stream that was waited for waits for the consumer's stream. Once;
 * a second release does nothing. Also ends host tickets. Issues every edge it can, then returns
 * the first error. */
HOSTWAIT_CAI_API int hostwait_cai_release(hostwait_cai_ticket*, hostwait_cai_error*);

/* For a consumer that is the host: records events and returns at once; hostwait_cai_poll tells
 * when the data are ready. */
HOSTWAIT_CAI_API int hostwait_cai_acquire_host(const hostwait_cai_ready* in, size_t n,
                                               const hostwait_cai_policy*, hostwait_cai_ticket*,
                                               hostwait_cai_error*);

/* done = 1: for a host ticket the data are ready; for a stream ticket what was enqueued in the
 * consumer's stream until the first poll has completed. Never blocks, safe while other threads
 * capture. */
HOSTWAIT_CAI_API int hostwait_cai_poll(hostwait_cai_ticket*, int* done, hostwait_cai_error*);

/* Blocks the host until all of `in` are ready. `ticket` may be NULL; with one, attach and release
 * order later work back. */
HOSTWAIT_CAI_API int hostwait_cai_wait_host(const hostwait_cai_ready* in, size_t n,
                                            const hostwait_cai_policy*, hostwait_cai_ticket* ticket,
                                            hostwait_cai_error*);

/* Host ticket only: work has been enqueued in `consumer` after all, so that release owes the back
 * edge. */
HOSTWAIT_CAI_API int hostwait_cai_attach(hostwait_cai_ticket*, hostwait_cai_stream consumer,
                                         hostwait_cai_error*);

/* After an acquire under CAPTURE_EXTERNAL_EVENT: records the external events again on their
 * producer streams; call it before each replay of the graph. The events live until
 * hostwait_cai_drop_external, which may only follow the destruction of the graph. */
HOSTWAIT_CAI_API int hostwait_cai_rearm(const hostwait_cai_ticket*, hostwait_cai_error*);
HOSTWAIT_CAI_API void hostwait_cai_drop_external(hostwait_cai_ticket*);

/* ---- Producer ------------------------------------------------------------------------------ */

/* hostwait_cai_export.flags */
enum {
  HOSTWAIT_CAI_EXPORT_NONE = 1 << 0,     /* asks for stream None */
  HOSTWAIT_CAI_EXPORT_OPT_OUT = 1 << 1,  /* … or version 2, though work may be pending */
  HOSTWAIT_CAI_EXPORT_KEPT = 1 << 2,     /* promise: the stream outlives the exporting object */
  HOSTWAIT_CAI_EXPORT_CAPTURING = 1 << 3 /* accept a capturing stream */
};

typedef struct {
  uint32_t size;
  uint32_t flags;
  int32_t version; /* 2 or 3; 0: HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION, default 3 */
  int32_t reserved;
  const hostwait_cai_stream* pending; /* streams with work on the array, none left out */
  size_t pending_count;
  hostwait_cai_stream chosen; /* to be exported (unless EXPORT_NONE) */
  void* stream_owner;         /* not NULL: what keeps the stream alive (else EXPORT_KEPT) */
} hostwait_cai_export;

typedef struct {
  uint32_t size;
  int32_t version;
  uint32_t stream_state; /* ABSENT (version 2), NONE, VALUE */
  uint32_t reserved;
  uint64_t stream;
} hostwait_cai_exported;

/* Joins the other pending streams into the chosen one, so that synchronizing the exported value
 * suffices, and says what to put into the dict. */
HOSTWAIT_CAI_API int hostwait_cai_export_prepare(const hostwait_cai_export*, hostwait_cai_exported*,
                                                 hostwait_cai_error*);

/* ---- DLPack -------------------------------------------------------------------------------- */

enum {
  HOSTWAIT_CAI_DL_CPU = 1,
  HOSTWAIT_CAI_DL_CUDA = 2,
  HOSTWAIT_CAI_DL_CUDA_HOST = 3,
  HOSTWAIT_CAI_DL_ROCM = 10,
  HOSTWAIT_CAI_DL_ROCM_HOST = 11,
  HOSTWAIT_CAI_DL_CUDA_MANAGED = 13
};

typedef enum {
  HOSTWAIT_CAI_DL_NO_SYNC = 0,
  HOSTWAIT_CAI_DL_WAIT, /* make *stream wait for the producer's work (0: ROCm's default stream) */
  HOSTWAIT_CAI_DL_HOST  /* host synchronization, then a copy to the CPU */
} hostwait_cai_dl_action;

/* What a producer must do for __dlpack__(stream=value, dl_device=(target_device, …)). `value` NULL
 * or type NONE: stream=None. target_device 0: none asked. */
HOSTWAIT_CAI_API int hostwait_cai_dlpack_stream(const hostwait_cai_int* value, int device_type,
                                                int target_device, hostwait_cai_dl_action* action,
                                                uint64_t* stream, hostwait_cai_error*);

/* Describes the tensor behind a capsule: `name` is the capsule's name, `pointer` its pointer
 * (DLManagedTensor or DLManagedTensorVersioned). Does not consume it, with one exception: a major
 * version that is unknown is handed to its deleter, as DLPack asks, and ERR_VERSION is returned;
 * the glue must then rename the capsule. The result has version 3 and stream_state NONE. */
HOSTWAIT_CAI_API int hostwait_cai_from_dlpack(const char* name, void* pointer,
                                              const hostwait_cai_policy*, hostwait_cai_desc*,
                                              hostwait_cai_loc*, hostwait_cai_error*);

/* DLPack dtype for a description; ERR_UNSUPPORTED_DTYPE where it has no spelling. */
HOSTWAIT_CAI_API int hostwait_cai_dlpack_dtype(const hostwait_cai_desc*, uint8_t* code,
                                               uint8_t* bits, uint16_t* lanes, hostwait_cai_error*);

/* The C exchange API (type attribute __dlpack_c_exchange_api__): walks prev_api to a major version
 * that this library knows; NULL if there is none. */
HOSTWAIT_CAI_API const void* hostwait_cai_exchange_find(const void* api);
/* Its current_work_stream as READY_STREAM. A null stream is taken as 1 (never as ready) and
 * *ambiguous is set (may be NULL). `out` must carry its size. */
HOSTWAIT_CAI_API int hostwait_cai_exchange_ready(const void* api, int device_type, int device_id,
                                                 hostwait_cai_ready* out, int* ambiguous,
                                                 hostwait_cai_error*);

/* ---- Arrow C Device interface ---------------------------------------------------------------- */

/* From a struct ArrowDeviceArray: NOW without an event, else EVENT. */
HOSTWAIT_CAI_API int hostwait_cai_arrow_ready(const void* arrow_device_array,
                                              const hostwait_cai_policy*, hostwait_cai_ready*,
                                              hostwait_cai_error*);
/* A new event recorded in `stream`, for sync_event (which points to the variable that holds it);
 * the release callback of the exported array gives it back with hostwait_cai_arrow_event_free. */
HOSTWAIT_CAI_API int hostwait_cai_arrow_event(hostwait_cai_stream stream, uint64_t* event,
                                              hostwait_cai_error*);
HOSTWAIT_CAI_API void hostwait_cai_arrow_event_free(uint64_t event);

/* ---- Owners kept until a stream has passed --------------------------------------------------- */

/* Keeps `owner` until all work now in `stream` is done. On error the owner was not taken (a
 * capturing stream: ERR_CAPTURE_BOUNDARY, since its graph may run at any later time). */
HOSTWAIT_CAI_API int hostwait_cai_retire(hostwait_cai_stream stream, void* owner,
                                         hostwait_cai_error*);
/* Calls drop(owner, user) for each owner whose work is done, outside every lock, on the calling
 * thread (the glue holds the GIL). Never blocks. *left: owners still waiting (may be NULL). */
HOSTWAIT_CAI_API int hostwait_cai_drain(void (*drop)(void* owner, void* user), void* user,
                                        size_t* left, hostwait_cai_error*);
/* The same for a queue of its own: who drains it gets only what was retired into it. The two above
 * use queue 0, the Python glue HOSTWAIT_CAI_QUEUE_PYTHON; several libraries in one process that
 * share this one take a number each, such as the address of a variable of theirs. */
#define HOSTWAIT_CAI_QUEUE_PYTHON 0x6e6f68747970u
HOSTWAIT_CAI_API int hostwait_cai_retire_in(uint64_t queue, hostwait_cai_stream stream, void* owner,
                                            hostwait_cai_error*);
HOSTWAIT_CAI_API int hostwait_cai_drain_in(uint64_t queue, void (*drop)(void* owner, void* user),
                                           void* user, size_t* left, hostwait_cai_error*);

/* ---- Environment, statistics, driver --------------------------------------------------------- */

typedef struct {
  uint32_t size;
  uint8_t sync;           /* 0 or 1 */
  uint8_t export_version; /* 2 or 3 */
  uint8_t reserved[2];
} hostwait_cai_environment;

/* The cached values; read from the environment at first use. ERR_ENV once after each reading when
 * a spelling was not understood (that switch keeps its default), OK from then on. Spellings, any
 * case: 1 true yes on / 0 false no off; 2 / 3. */
HOSTWAIT_CAI_API int hostwait_cai_env_get(hostwait_cai_environment*, hostwait_cai_error*);
/* Reads the environment again. */
HOSTWAIT_CAI_API void hostwait_cai_env_refresh(void);
/* Other libraries' switches to obey besides our own (own name wins): names joined by ',', e.g.
 * "NUMBA_CUDA_ARRAY_INTERFACE_SYNC,CUPY_CUDA_ARRAY_INTERFACE_SYNC"; NULL or "" for none, the
 * default. A name that ends in EXPORT_VERSION stands for our EXPORT_VERSION, any other for SYNC.
 * Refreshes. At most 255 bytes. */
HOSTWAIT_CAI_API int hostwait_cai_env_aliases(const char* names);

typedef struct {
  uint32_t size;
  uint32_t reserved;
  uint64_t acquires, elided;  /* calls; arrays that needed nothing: same or implicitly ordered */
  uint64_t ready_now;         /* arrays whose producer said None */
  uint64_t waits, back_edges; /* stream waits issued, both ways */
  uint64_t event_waits;       /* on foreign events */
  uint64_t host_waits;        /* the host was blocked */
  uint64_t polls;
  uint64_t opt_outs, opt_outs_pending; /* arrays not ordered by request; … with work pending */
  uint64_t legacy_producer_current, legacy_via_dlpack, legacy_join, legacy_device, legacy_none;
  uint64_t capture_refused, capture_assumed, back_edges_skipped;
  uint64_t events_created, retired, drained;
} hostwait_cai_stats;

HOSTWAIT_CAI_API int hostwait_cai_stats_get(hostwait_cai_stats*); /* of the process */

/* The driver's functions, by their exported signatures (enums as int, CUdeviceptr as uint64_t).
 * Members marked ? may be NULL. */
typedef struct {
  uint32_t size;
  uint32_t reserved;
  int (*ctx_get_current)(void** ctx);
  int (*ctx_push_current)(void* ctx);
  int (*ctx_pop_current)(void** ctx);
  int (*ctx_get_device)(int* device);
  int (*ctx_get_id)(void* ctx, unsigned long long* id); /* ? 12.0 */
  int (*ctx_synchronize)(void);
  int (*primary_ctx_retain)(void** ctx, int device);
  int (*stream_get_ctx)(void* stream, void** ctx);
  int (*stream_get_flags)(void* stream, unsigned* flags);
  int (*stream_query)(void* stream);
  int (*stream_is_capturing)(void* stream, int* status);
  int (*stream_get_capture_info)(void* stream, int* status, uint64_t* id, void** graph,
                                 const void* const** nodes, size_t* count); /* ? _v2, 11.3 */
  int (*stream_wait_event)(void* stream, void* event, unsigned flags);
  int (*event_create)(void** event, unsigned flags);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream);
  int (*event_query)(void* event);
  int (*event_synchronize)(void* event);
  int (*pointer_get_attributes)(unsigned count, int* attributes, void** data, uint64_t ptr);
  int (*device_can_access_peer)(int* can, int device, int peer);
  int (*device_get_attribute)(int* value, int attribute, int device);
  int (*thread_exchange_capture_mode)(int* mode);       /* ? 10.1 */
  int (*get_error_name)(int result, const char** name); /* ? */
} hostwait_cai_driver;

/* Uses `table` (copied) from now on; NULL: libcuda again, an already loaded one first. Forgets all
 * cached events and retired owners without a driver call: for tests and for other drivers; no
 * other thread may be inside the library. */
HOSTWAIT_CAI_API int hostwait_cai_set_driver(const hostwait_cai_driver* table);
/* Loads the driver if that has not happened; ERR_NO_DRIVER where there is none. Optional: every
 * function that needs it does so. Call it early where capture-time latency matters: it also
 * prepares the calling thread's events for the current context. */
HOSTWAIT_CAI_API int hostwait_cai_prepare(hostwait_cai_error*);

#ifdef __cplusplus
}
#endif

#endif /* HOSTWAIT_CAI_H */
