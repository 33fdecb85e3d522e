/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * The record, format version 1: one memory-mapped file per process that made a catalogued call.
 *
 * Layout. A header of HOSTWAIT_RECORD_HEADER_BYTES with a table of extents. Each extent holds
 * `count` entries of `entry_size` bytes, all of one section id, from `offset`. A section may have
 * several extents: its entries are numbered through them in table order, first extent full before
 * the next one begins. All integers have the writer's byte order (little-endian on every supported
 * machine). Times are nanoseconds; `*_mono_ns` is CLOCK_MONOTONIC, `*_real_ns` CLOCK_REALTIME.
 *
 * Concurrency. The writer publishes an entry by storing `count` (release) after its bytes, and an
 * extent by storing `extent_count` last. Counters have one writer each and are plain relaxed
 * stores: a reader of a live file may see a sum that is a few calls old, never a torn 64-bit word.
 *
 * Compatibility. Readers skip section ids they do not know and bytes of an entry beyond the size
 * they know. An entry shorter than the reader's struct is read as if followed by zeros. Another
 * major version is not read at all. */
#ifndef HOSTWAIT_RECORD_H
#define HOSTWAIT_RECORD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOSTWAIT_RECORD_MAGIC "HOSTWAIT" /* 8 bytes, no terminator in the file */
#define HOSTWAIT_RECORD_SUFFIX ".hwr"

enum {
  HOSTWAIT_RECORD_MAJOR = 1,
  HOSTWAIT_RECORD_MINOR = 1, /* 1: sections captures and holders, long calls of threads */
  HOSTWAIT_RECORD_HEADER_BYTES = 4096,
  HOSTWAIT_RECORD_MAX_EXTENTS = 120,
  HOSTWAIT_RECORD_MAX_RELATIONS = 1024 /* entries of captures and of holders, each */
};

enum hostwait_record_state {
  HOSTWAIT_RECORD_OPEN = 1,  /* the process runs, or died without sealing */
  HOSTWAIT_RECORD_SEALED = 2 /* the process ended and said so */
};

enum hostwait_record_flag {
  HOSTWAIT_RECORD_BLIND = 1u << 0,        /* some driver calls could not be seen: `blind` strings */
  HOSTWAIT_RECORD_FULL = 1u << 1,         /* a limit was reached: later sites fell into "other" */
  HOSTWAIT_RECORD_CONFIG_ERROR = 1u << 2, /* HOSTWAIT_OPTIONS was wrong and defaults were used */
  HOSTWAIT_RECORD_ANONYMOUS = 1u << 3     /* no file could be had: seen only by a live reader */
};

enum hostwait_record_section {
  HOSTWAIT_SECTION_CALLS = 1,
  HOSTWAIT_SECTION_SITES = 2,
  HOSTWAIT_SECTION_THREADS = 3,
  HOSTWAIT_SECTION_FRAMES = 4,
  HOSTWAIT_SECTION_PYTHON_CODE = 5,
  HOSTWAIT_SECTION_STRINGS = 6, /* entry_size 1; a reference is a byte index; 0 is "" */
  HOSTWAIT_SECTION_MODULES = 7,
  HOSTWAIT_SECTION_COUNTERS = 8,
  HOSTWAIT_SECTION_HISTOGRAMS = 9, /* entry i belongs to counters entry i */
  HOSTWAIT_SECTION_RANGES = 10,
  HOSTWAIT_SECTION_STEPS = 11,
  HOSTWAIT_SECTION_TRACE = 12,
  HOSTWAIT_SECTION_CAPTURES = 13,
  HOSTWAIT_SECTION_CONTROL = 14,
  HOSTWAIT_SECTION_HOLDERS = 15
};

/* Bits 0..13 of hostwait.h's kinds, as numbers. */
enum hostwait_kind_number {
  HOSTWAIT_KIND_DEVICE_SYNC,
  HOSTWAIT_KIND_STREAM_SYNC,
  HOSTWAIT_KIND_EVENT_SYNC,
  HOSTWAIT_KIND_COPY,
  HOSTWAIT_KIND_ASYNC_COPY,
  HOSTWAIT_KIND_MEMSET,
  HOSTWAIT_KIND_FREE,
  HOSTWAIT_KIND_HOST_FREE,
  HOSTWAIT_KIND_ALLOC,
  HOSTWAIT_KIND_MODULE,
  HOSTWAIT_KIND_CONTEXT,
  HOSTWAIT_KIND_QUEUE_FULL,
  HOSTWAIT_KIND_POLL,
  HOSTWAIT_KIND_UNLISTED,
  HOSTWAIT_KIND_COUNT
};

/* Which work the call would wait for, decided before it is made. */
enum hostwait_verdict {
  HOSTWAIT_VERDICT_NONE = 0,
  HOSTWAIT_VERDICT_STREAM = 1,  /* its own stream, or the event's work */
  HOSTWAIT_VERDICT_LEGACY = 2,  /* the legacy stream and blocking streams */
  HOSTWAIT_VERDICT_CONTEXT = 3, /* every stream of the context */
  HOSTWAIT_VERDICT_DEPENDS = 4, /* `reason` says on what */
  HOSTWAIT_VERDICT_UNMEASURED = 5
};

enum hostwait_reason {
  HOSTWAIT_REASON_NONE = 0,
  HOSTWAIT_REASON_STAGING_LIMIT =
      1, /* pageable upload: small copies are staged while room is left */
  HOSTWAIT_REASON_QUEUE_DEPTH = 2,
  HOSTWAIT_REASON_LAZY_LOAD = 3,
  HOSTWAIT_REASON_UNMEASURED = 4, /* outside the domain in which the rule was measured */
  HOSTWAIT_REASON_CAPTURE = 5,    /* a stream capture is open: the call may fail, not wait */
  HOSTWAIT_REASON_GRAPH_NODES = 6 /* a graph may hold copies that wait */
};

enum hostwait_direction {
  HOSTWAIT_DIRECTION_NONE = 0,
  HOSTWAIT_DIRECTION_H2D = 1,
  HOSTWAIT_DIRECTION_D2H = 2,
  HOSTWAIT_DIRECTION_D2D = 3,
  HOSTWAIT_DIRECTION_H2H = 4
};

enum hostwait_memory {
  HOSTWAIT_MEMORY_UNKNOWN = 0,
  HOSTWAIT_MEMORY_PAGEABLE = 1,
  HOSTWAIT_MEMORY_PINNED = 2, /* allocated pinned or registered */
  HOSTWAIT_MEMORY_DEVICE = 3,
  HOSTWAIT_MEMORY_MANAGED = 4,
  HOSTWAIT_MEMORY_ARRAY = 5,
  HOSTWAIT_MEMORY_POOL = 6 /* stream-ordered allocation */
};

struct hostwait_record_extent {
  uint32_t id; /* enum hostwait_record_section */
  uint32_t entry_size;
  uint64_t offset; /* from the start of the file, a multiple of 64 */
  uint32_t count;
  uint32_t capacity;
};

struct hostwait_record_header {
  char magic[8];
  uint16_t major, minor;
  uint32_t header_bytes; /* HOSTWAIT_RECORD_HEADER_BYTES */
  uint32_t state;        /* enum hostwait_record_state */
  uint32_t flags;        /* enum hostwait_record_flag */
  char run_id[32];       /* hexadecimal, NUL-padded; empty under a bare preload */
  uint32_t pid, ppid;
  int32_t rank, world; /* from RANK/WORLD_SIZE and the like; -1 where unknown */
  uint64_t start_real_ns, start_mono_ns;
  uint64_t end_mono_ns;            /* 0 until sealed */
  uint64_t file_bytes;             /* bytes of the file in use, header included */
  uint32_t driver_version;         /* cuDriverGetVersion, 0 before it is known */
  uint32_t dropped_sites;          /* site look-ups that fell into "other" */
  uint32_t program, host, options; /* strings */
  uint64_t unseen_locks;           /* calls counted at "other" because a lock was held */
  uint64_t mismatched_pops;
  char driver_text[32];   /* "580.159.03", NUL-padded, where it is known */
  char routes[96];        /* comma list, NUL-padded: "dlsym, cuGetProcAddress" */
  char why_blind[256];    /* lines joined by '\n', NUL-padded */
  uint64_t fold_sequence; /* odd while an ended thread's counters move to thread 0: a reader that
                             wants exact sums reads it before and after, and again if it moved */
  uint32_t python_note;   /* string: why findings bear no Python frames, or how far to trust them */
  uint32_t reserved32;
  uint64_t reserved[14];
  uint32_t extent_count;
  uint32_t max_extents;
  struct hostwait_record_extent extents[HOSTWAIT_RECORD_MAX_EXTENTS];
};

struct hostwait_record_call {
  uint32_t name; /* string: the driver symbol, "cuMemcpyHtoD_v2" */
  uint16_t kind; /* enum hostwait_kind_number */
  uint16_t row;  /* the shim's row number, for debugging only */
};

struct hostwait_record_site {
  uint32_t call;          /* index into calls */
  uint8_t verdict;        /* enum hostwait_verdict */
  uint8_t reason;         /* enum hostwait_reason */
  uint8_t direction;      /* enum hostwait_direction */
  uint8_t memory;         /* source in the low nibble, destination in the high one */
  uint32_t native;        /* frame of the caller (innermost), 0 = no stack */
  uint32_t python;        /* frame (innermost), 0 = none */
  uint32_t label, range;  /* string; range index + 1, 0 = none */
  uint32_t first_thread;  /* index into threads */
  uint32_t flags;         /* HOSTWAIT_SITE_... */
  uint64_t first_mono_ns; /* when it was first seen */
  uint64_t bytes;         /* size of the first call's copy or memset, 0 = none */
  uint64_t stream;        /* handle of the first call's stream, 0 = none or null stream */
};
enum {
  HOSTWAIT_SITE_OTHER = 1u << 0,
  HOSTWAIT_SITE_IN_CAPTURE = 1u << 1,
  HOSTWAIT_SITE_AUDIT =
      1u << 2, /* no call was made: an order was opted out of; the label says it */
  /* With gap=1. The site holds no calls: how long the thread queued nothing after the calls of the
   * site that is the same but for this flag. Of its counters total_ns, max_ns and the histogram are
   * of these gaps; calls is 0. */
  HOSTWAIT_SITE_GAP = 1u << 3
};

struct hostwait_record_thread {
  uint32_t tid;   /* 0: the entry that ended threads are folded into (always entry 0) */
  uint32_t state; /* 0 free, 1 alive, 2 ended */
  char name[16];  /* NUL-padded */
  uint64_t start_mono_ns, end_mono_ns;
  uint64_t in_call_since_ns; /* CLOCK_MONOTONIC; 0 = not in a catalogued call */
  uint32_t in_call;          /* calls index + 1 while in one */
  uint32_t in_site;          /* sites index + 1 where known */
  uint64_t allowed;          /* calls let through under `allow` */
  uint64_t recorded;         /* calls recorded */
  /* The last call that stayed longer than its own cost: who was inside what, for a call on another
   * thread that it held up. `long_since_ns` is 0 while the other words change. */
  uint64_t long_since_ns, long_until_ns;
  uint32_t long_call; /* calls index + 1 */
  uint32_t long_site; /* sites index + 1 where known */
  uint64_t reserved[2];
};

/* Prefix tree of stacks. Entry 0 is the root and stands for "no frame". A native node holds a
 * return address (the address after the call). A Python node holds a code index and a line. */
struct hostwait_record_frame {
  uint64_t where;  /* native: absolute address; Python: code index << 32 | line */
  uint32_t parent; /* the caller's frame; 0 = outermost */
  uint32_t module; /* index into modules, HOSTWAIT_FRAME_NO_MODULE, or HOSTWAIT_FRAME_PYTHON */
};
#define HOSTWAIT_FRAME_NO_MODULE 0xffffffffu
#define HOSTWAIT_FRAME_PYTHON 0xfffffffeu

struct hostwait_record_python_code {
  uint32_t file, qualname; /* strings */
  uint32_t first_line;
  uint32_t flags;
};

/* A module at one stretch of addresses during one generation of the loader's list. */
struct hostwait_record_module {
  uint64_t start, end; /* mapped range, end exclusive */
  uint64_t bias;       /* address - ELF virtual address */
  uint32_t path;       /* string */
  uint32_t generation; /* loader generation in which it was first seen */
  uint32_t build_id_bytes;
  uint8_t build_id[20];
  uint32_t flags; /* bit 0: libcuda; bit 1: hostwait's own */
  uint32_t reserved;
};
enum { HOSTWAIT_MODULE_DRIVER = 1u << 0, HOSTWAIT_MODULE_OWN = 1u << 1 };

struct hostwait_record_counters {
  uint32_t thread; /* index into threads */
  uint32_t site;   /* index into sites; HOSTWAIT_COUNTERS_FREE: this entry is unused (all zeros) */
  uint64_t calls;
  uint64_t waited;
  uint32_t latent, refused, held, violations; /* saturating */
  uint64_t total_ns, max_ns;                  /* time inside the driver's function, all calls */
  uint64_t waited_ns;                         /* the same, of those that waited */
};
#define HOSTWAIT_COUNTERS_FREE 0xffffffffu

/* Bucket i counts calls with floor(log2(max(ns, 1))) == i; the last one takes the rest.
 * Saturating. */
struct hostwait_record_histogram {
  uint32_t bucket[32];
};

struct hostwait_record_range {
  uint32_t path; /* string: "train_step/forward" */
  uint32_t domain;
};

/* hostwait_step and hostwait_steady, in order. Past the section's limit the last entry is written
 * again, so that its number stays the number of steps so far. */
struct hostwait_record_step {
  uint64_t mono_ns;
  uint32_t number; /* steps ended so far, this one included */
  uint16_t thread; /* index into threads */
  uint16_t flags;
};
enum { HOSTWAIT_STEP_STEADY = 1u << 0 }; /* not a step: the end of warm-up */

/* A call that broke an open stream capture, or was refused before it could: both threads, both call
 * sites. One entry for each (begin site, breaking site, both threads, result, flags); sums besides.
 * The sums are written with atomic additions. */
struct hostwait_record_capture {
  uint32_t begin_site, site;         /* sites; HOSTWAIT_CAPTURE_NO_SITE where it is not known */
  uint32_t begin_tid, tid;           /* begin_tid 0: the capture's begin was not seen */
  char begin_thread[16], thread[16]; /* names, NUL-padded */
  uint32_t mode;                     /* CUstreamCaptureMode of the capture */
  int32_t result;                    /* what the driver answered; 0 where the call was refused */
  uint32_t flags;                    /* enum hostwait_capture_flag */
  uint32_t reserved0;
  uint64_t begin_mono_ns,
      mono_ns;     /* of the first: when the capture was begun, when it was broken */
  uint64_t stream; /* handle of the capture's origin stream */
  uint64_t count, violations;
  uint64_t reserved[1];
};
#define HOSTWAIT_CAPTURE_NO_SITE 0xffffffffu
enum hostwait_capture_flag {
  HOSTWAIT_CAPTURE_REFUSED = 1u << 0,  /* the call was not made and the capture lived on */
  HOSTWAIT_CAPTURE_POSSIBLE = 1u << 1, /* the driver said that a capture was broken; which of the
                                          open ones is a guess */
  HOSTWAIT_CAPTURE_ON_STREAM = 1u << 2 /* the call was made on the capture's own stream */
};

/* A call that was held up, and the call on another thread that was in progress for most of that
 * time. One entry for each (held site, holding call, holding thread). */
struct hostwait_record_holder {
  uint32_t site;        /* sites: the call that was held up */
  uint32_t holder_call; /* calls */
  uint32_t holder_site; /* sites index + 1; 0 where it is not known */
  uint32_t holder_tid, tid;
  uint32_t reserved0;
  char holder_thread[16], thread[16]; /* names, NUL-padded; `thread` of the first that was held */
  uint64_t holder_since_ns;           /* CLOCK_MONOTONIC, of the newest */
  uint64_t count, total_ns, max_ns;   /* time of the held calls */
  uint64_t reserved[2];
};

/* One entry, written by `hostwait set` into a live record and read by the program's threads. */
struct hostwait_record_control {
  uint32_t generation; /* increased last, after the other words */
  uint32_t paused;     /* 1: record and refuse nothing */
  uint64_t actions; /* default action of kind i in bits 4i..4i+3; hostwait_action + 1, 0 = keep */
  uint64_t reserved[6];
};

#ifdef __cplusplus
}
#endif

#endif /* HOSTWAIT_RECORD_H */
