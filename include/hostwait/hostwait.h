/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * The policy interface. C99 and later, C++; header only, no library to link.
 *
 * Every function works in a program that runs without hostwait: it then does nothing and says so
 * in its result. The preloaded library is found once, by dlsym(RTLD_DEFAULT, "hostwait_api"); a
 * weak reference would be fixed to zero at link time in non-PIE programs. (Link -ldl on glibc
 * older than 2.34.)
 *
 * Thread-safety: every function may be called from any thread at any time. Frames pushed by
 * hostwait_push belong to the calling thread; frames pushed by hostwait_push_process apply to every
 * thread below its own frames. The newest thread frame that names a kind decides, then the newest
 * process frame, then the default of HOSTWAIT_OPTIONS. A new thread starts without frames. */
#ifndef HOSTWAIT_HOSTWAIT_H
#define HOSTWAIT_HOSTWAIT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to do when a call of a named kind would wait. */
typedef enum {
  HOSTWAIT_ALLOW, /* count only, cheapest */
  HOSTWAIT_LOG,   /* record the finding */
  HOSTWAIT_FAIL,  /* record it as a violation; the call is made */
  HOSTWAIT_ERROR, /* do not make the call: it returns CUDA_ERROR_NOT_PERMITTED (800) */
  HOSTWAIT_ABORT, /* print the finding and abort() */
  HOSTWAIT_TRAP   /* raise SIGTRAP, then make the call */
} hostwait_action;

/* Kinds, bits 0..13; frozen. */
enum {
  HOSTWAIT_DEVICE_SYNC = 1 << 0,
  HOSTWAIT_STREAM_SYNC = 1 << 1,
  HOSTWAIT_EVENT_SYNC = 1 << 2,
  HOSTWAIT_COPY = 1 << 3,       /* blocking by name */
  HOSTWAIT_ASYNC_COPY = 1 << 4, /* async by name, waits because of the memory */
  HOSTWAIT_MEMSET = 1 << 5,
  HOSTWAIT_FREE = 1 << 6,
  HOSTWAIT_HOST_FREE = 1 << 7, /* unpin, unregister */
  HOSTWAIT_ALLOC = 1 << 8,
  HOSTWAIT_MODULE = 1 << 9,   /* load, unload, first use */
  HOSTWAIT_CONTEXT = 1 << 10, /* limits, reset, destroy */
  HOSTWAIT_QUEUE_FULL = 1 << 11,
  HOSTWAIT_POLL = 1 << 12,
  HOSTWAIT_UNLISTED = 1 << 13,
  HOSTWAIT_EXPLICIT = 0x7,
  HOSTWAIT_SYNC = 0x3f,
  HOSTWAIT_ALL = 0x7ff
};

/* Errors of the functions below (all negative). */
enum {
  HOSTWAIT_NOT_ARMED = -1,    /* queue_full, poll, unlisted: arm them at start (arm=...) */
  HOSTWAIT_INVALID = -2,      /* unknown action or kind, token that is not on top */
  HOSTWAIT_NO_ROOM = -3,      /* frames are nested too deep (64 per thread, 64 per process) */
  HOSTWAIT_NOT_AVAILABLE = -4 /* nothing to return */
};

/* One finding, as given to a callback and by hostwait_last_refused. */
typedef struct {
  uint32_t size; /* sizeof(hostwait_finding) as the filler knows it */
  uint32_t kind; /* one HOSTWAIT_... bit */
  hostwait_action action;
  int32_t verdict;    /* enum hostwait_verdict of record.h */
  const char* call;   /* the driver's symbol; static */
  const char* label;  /* of the deciding frame, "" for none; valid during the callback only */
  uint64_t id;        /* number of this refusal or violation in this process, from 1 */
  uint64_t bytes;     /* of a copy or memset, else 0 */
  uint64_t ns;        /* time inside the call, 0 when refused */
  uint64_t thread_id; /* kernel thread id */
} hostwait_finding;

typedef struct {
  uint32_t size; /* set by the caller: sizeof(hostwait_stats) */
  uint32_t reserved;
  uint64_t calls, waited, latent, refused, held, violations; /* of this process */
  uint64_t allowed;         /* let through uncounted in the record, this thread */
  uint64_t mismatched_pops; /* pops with a token that was not on top */
  uint64_t waited_ns;
} hostwait_stats;

typedef void (*hostwait_callback)(const hostwait_finding*, void* user);

/* The table behind the functions; use the functions. Grows at its end only. */
typedef struct {
  uint32_t size;
  uint32_t version;
  int (*push)(hostwait_action, uint32_t kinds, const char* label, int process);
  int (*pop)(int token, int process);
  int (*set_callback)(hostwait_callback, void* user);
  void (*step)(void);
  void (*steady)(void);
  int (*stats_get)(hostwait_stats*);
  int (*last_refused)(hostwait_finding*);
  int (*set_paused)(int paused);
  int (*action_of)(uint32_t kind); /* may be NULL */
  int (*audit)(const char* what);  /* may be NULL */
} hostwait_api_table;

static inline const hostwait_api_table* hostwait_api_get_(void) {
  /* Concurrent first calls store the same value. 1 stands for "looked, absent". */
  static const void* found;
  const void* table = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (table == NULL) {
    const hostwait_api_table* const* symbol;
    *(void**)(&symbol) = dlsym(RTLD_DEFAULT, "hostwait_api");
    table = symbol != NULL && *symbol != NULL ? (const void*)*symbol : (const void*)1;
    __atomic_store_n(&found, table, __ATOMIC_RELAXED);
  }
  return table == (const void*)1 ? NULL : (const hostwait_api_table*)table;
}

/* 1: the preloaded library is in this process; 0: it is not. */
static inline int hostwait_present(void) {
  return hostwait_api_get_() != NULL;
}

/* Pushes a frame of this thread. Returns a token > 0 for hostwait_pop, 0 where the shim is absent,
 * or an error < 0 (nothing is pushed then). */
static inline int hostwait_push(hostwait_action action, uint32_t kinds) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->push(action, kinds, NULL, 0) : 0;
}

/* The same with a label that findings carry; copied, cut at 63 bytes. */
static inline int hostwait_push_label(hostwait_action action, uint32_t kinds, const char* label) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->push(action, kinds, label, 0) : 0;
}

/* Removes the frame that `token` names if it is this thread's newest. Anything else, also a token
 * popped twice or on another thread, changes nothing, is counted and returns HOSTWAIT_INVALID.
 * Token 0 (shim absent) is accepted and returns 0. */
static inline int hostwait_pop(int token) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api && token != 0 ? api->pop(token, 0) : 0;
}

/* Process-wide frames: for waits on threads that you did not start (autograd engines, loaders). */
static inline int hostwait_push_process(hostwait_action action, uint32_t kinds, const char* label) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->push(action, kinds, label, 1) : 0;
}
static inline int hostwait_pop_process(int token) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api && token != 0 ? api->pop(token, 1) : 0;
}

/* Called on the thread of each violation or refusal, before the call returns. It must not throw,
 * jump or call CUDA. NULL removes it. Returns 0, also where the shim is absent. */
static inline int hostwait_set_callback(hostwait_callback callback, void* user) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->set_callback(callback, user) : 0;
}

/* The hostwait_action that a call of this one kind would meet on this thread now, or
 * HOSTWAIT_NOT_AVAILABLE where the shim is absent or too old to say. */
static inline int hostwait_action_of(uint32_t kind) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api && api->size > offsetof(hostwait_api_table, action_of) && api->action_of
             ? api->action_of(kind)
             : HOSTWAIT_NOT_AVAILABLE;
}

/* Records a finding that is no wait: an order between streams that was opted out of while work was
 * pending. `what` becomes its label (cut at 63 bytes). Never a violation. Returns 0, or
 * HOSTWAIT_NOT_AVAILABLE where the shim is absent or too old. */
static inline int hostwait_audit(const char* what) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api && api->size > offsetof(hostwait_api_table, audit) && api->audit
             ? api->audit(what)
             : HOSTWAIT_NOT_AVAILABLE;
}

/* Stops and resumes recording and refusing in the whole process, from the next catalogued call of
 * each thread on. `hostwait set PID pause` is a switch of its own: recording goes on while neither
 * is on. From any thread. Return 0, or HOSTWAIT_NOT_AVAILABLE where the shim is absent. */
static inline int hostwait_pause(void) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->set_paused(1) : HOSTWAIT_NOT_AVAILABLE;
}
static inline int hostwait_resume(void) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->set_paused(0) : HOSTWAIT_NOT_AVAILABLE;
}

/* Marks the end of a step; hostwait_steady marks the end of warm-up. */
static inline void hostwait_step(void) {
  const hostwait_api_table* api = hostwait_api_get_();
  if (api) api->step();
}
static inline void hostwait_steady(void) {
  const hostwait_api_table* api = hostwait_api_get_();
  if (api) api->steady();
}

/* Fills `stats` (its size must be set). Returns 0, or HOSTWAIT_NOT_AVAILABLE where the shim is
 * absent. */
static inline int hostwait_stats_get(hostwait_stats* stats) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->stats_get(stats) : HOSTWAIT_NOT_AVAILABLE;
}

/* This thread's last refused call: the driver can return 800 on its own, too. `finding->size` must
 * be set. Returns 0, or HOSTWAIT_NOT_AVAILABLE if nothing was refused on this thread. */
static inline int hostwait_last_refused(hostwait_finding* finding) {
  const hostwait_api_table* api = hostwait_api_get_();
  return api ? api->last_refused(finding) : HOSTWAIT_NOT_AVAILABLE;
}

#ifdef __cplusplus
}
#endif

#endif /* HOSTWAIT_HOSTWAIT_H */
