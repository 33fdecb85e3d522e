// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors

// Goroutines that wait by cgo. A goroutine that is not locked to its thread may push a frame on one
// thread and pop it on another: that is counted and harmless.
package main

/*
#cgo LDFLAGS: -ldl -lpthread
#define _GNU_SOURCE
#include <hostwait/hostwait.h>
#include "guest.h"

static int go_begin(void) { guest_begin(); return 0; }
static int go_wait(void) { return guest_here() + guest_wait(); }
static int go_push(void) { return hostwait_push(HOSTWAIT_LOG, HOSTWAIT_SYNC); }
static int go_pop(int token) { return hostwait_pop(token); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

func main() {
	C.go_begin()
	var group sync.WaitGroup
	var failed, calls int64
	for task := 0; task < 64; task++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 20; i++ {
				token := C.go_push()
				runtime.Gosched() // may go on on another thread
				if C.go_wait() != 0 {
					atomic.AddInt64(&failed, 1)
				}
				atomic.AddInt64(&calls, 1)
				runtime.Gosched()
				C.go_pop(token)
			}
		}()
	}
	group.Wait()
	defer func() {
		fmt.Println("recovered", recover() != nil, "failed", failed, "calls", calls)
	}()
	var nothing *int
	*nothing = int(C.go_wait()) // Go's own SIGSEGV handler must still be the one
}
