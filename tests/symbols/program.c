/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * Waits from odd places: `program plugin PATH FUNCTION…` calls functions of a plugin, which is
 * loaded, unloaded and, before each further one, replaced by PATH.next; `program generated` waits
 * below machine code that is in no file; `program hostile` under names made to trick a terminal;
 * `program worker` on a library's thread, `program callback` in a function of its own there. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hostwait/hostwait.h"
#ifdef HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

static CUcontext context;
static CUresult (*set_current)(CUcontext);
static CUresult (*synchronize)(void);

static void start(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) exit(3);
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  CUresult (*retain)(CUcontext*, CUdevice) =
      (CUresult(*)(CUcontext*, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
  set_current = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
  synchronize = (CUresult(*)(void))dlsym(driver, "cuCtxSynchronize");
  if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0) exit(3);
}

static int call(void) {
  return synchronize() == CUDA_SUCCESS ? 0 : 1;
}

static int plugins(const char* path, int count, char** functions) {
  for (int i = 0; i < count; ++i) {
    char next[4096];
    snprintf(next, sizeof next, "%s.next", path);
    if (i > 0 && rename(next, path) != 0) return 4;
    void* plugin = dlopen(path, RTLD_NOW);
    if (plugin == NULL) return 5;
    int (*function)(int (*)(void)) = (int (*)(int (*)(void)))dlsym(plugin, functions[i]);
    if (function == NULL || function(call) != 1) return 6;
    dlclose(plugin);
  }
  return 0;
}

static int generated(void) {
  unsigned char* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 7;
#if defined(__x86_64__)
  /* push rbp; mov rbp, rsp; movabs rax, call; call rax; pop rbp; ret */
  const unsigned char text[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
                                0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3};
  int (*target)(void) = call;
  memcpy(code, text, sizeof text);
  memcpy(code + 6, &target, sizeof target);
  int (*function)(void);
  memcpy(&function, &code, sizeof function);
  for (int i = 0; i < 100; ++i)
    if (function() != 0) return 6;
  munmap(code, 4096);
  return 0;
#else
  return 8;
#endif
}

int hostile_name(void) __asm__("hostile_name");
__attribute__((noinline)) int hostile_name(void) {
#line 7 "/x/\033[2Jsource.c"
  return call() + 1;
}

static int hostile(void) {
  pthread_setname_np(pthread_self(), "\033[5mname\n");
#ifdef HAVE_NVTX
  nvtxRangePushA("range\033]0;owned\a\n\xe2\x80\xae");
#endif
  const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, "label\033[31m\r\"\\\xff");
  const int result = hostile_name();
  hostwait_pop(token);
  return result - 1;
}

#ifdef HAVE_WORKER
int library_works(int (*set)(void*), void* context, int (*function)(void));
static int worker(int own_function) {
  int (*set)(void*);
  int (*driver)(void);
  memcpy(&set, &set_current, sizeof set);
  memcpy(&driver, &synchronize, sizeof driver);
  return library_works(set, context, own_function ? call : driver);
}
#endif

int main(int argc, char** argv) {
  start();
  if (argc > 3 && strcmp(argv[1], "plugin") == 0) return plugins(argv[2], argc - 3, argv + 3);
  if (argc > 1 && strcmp(argv[1], "generated") == 0) return generated();
  if (argc > 1 && strcmp(argv[1], "hostile") == 0) return hostile();
#ifdef HAVE_WORKER
  if (argc > 1 && strcmp(argv[1], "worker") == 0) return worker(0);
  if (argc > 1 && strcmp(argv[1], "callback") == 0) return worker(1);
#endif
  return 2;
}
