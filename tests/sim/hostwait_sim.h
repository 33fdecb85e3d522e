/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Control interface of the simulated driver: a test double of libcuda.so.1, for tests only.
 *
 * Environment, read at the first call:
 *   HOSTWAIT_SIM_DEVICES=N       1 to 8 devices (default 1)
 *   HOSTWAIT_SIM_FAIL=CALL=CODE[@NTH],…  the call (exact symbol) answers CODE without doing
 *                                anything: always, or only at its NTH call, counted from 1
 *   HOSTWAIT_SIM_COPY_SPEED=B    bytes per second at which copies and memsets keep a stream busy
 *                                (default 0: as fast as the machine copies)
 *
 * A stream is given as its CUstream handle; 0 and 1 mean the legacy stream and 2 the calling
 * thread's own stream, of the calling thread's current context. Results are CUresult values.
 */
#ifndef HOSTWAIT_SIM_H
#define HOSTWAIT_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Present in the simulated driver only: how a program can tell it from the real one. */
int hostwait_sim_present(void);

/* Puts work on the stream that ends when it is released; several holds of a stream nest, and one
 * release ends them all. */
int hostwait_sim_hold(void* stream);
int hostwait_sim_release(void* stream);
void hostwait_sim_release_all(void);

/* Host threads that wait inside a driver call at this moment. */
int hostwait_sim_waiting_threads(void);
/* Sleeps until at least `threads` threads wait, or the time is over: 1 or 0. */
int hostwait_sim_await_waiting(int threads, unsigned milliseconds);

/* Calls of the exact symbol so far, and those of them in which the host was stopped at least once.
 * UINT64_MAX for a name the driver does not export. */
uint64_t hostwait_sim_calls(const char* symbol);
uint64_t hostwait_sim_host_waits(const char* symbol);
/* Calls of names that are exported but not simulated (CUDA_ERROR_NOT_SUPPORTED). */
uint64_t hostwait_sim_unsupported_calls(void);
/* 1 simulated, 0 exported only, -1 unknown name. */
int hostwait_sim_is_simulated(const char* symbol);
void hostwait_sim_reset_counts(void);

/* As HOSTWAIT_SIM_FAIL for one call; nth counts from now, 0 means every call, result 0 ends it.
 * Returns 0, or -1 for an unknown name. */
int hostwait_sim_fail(const char* symbol, int result, unsigned nth);

/* See HOSTWAIT_SIM_COPY_SPEED. */
void hostwait_sim_set_copy_speed(uint64_t bytes_per_second);

/* Keeps the names of the calls made while on, in order of entry; switching on empties the list. */
void hostwait_sim_record(int on);
size_t hostwait_sim_recorded_count(void);
const char* hostwait_sim_recorded(size_t index); /* NULL past the end */

#ifdef __cplusplus
}
#endif
#endif
