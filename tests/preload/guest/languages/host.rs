// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Threads, a panic that is caught, and a call from a destructor during the unwinding.
use std::ffi::{c_char, c_int, c_uint, c_void, CString};

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn look(name: &str) -> *mut c_void {
    let library = CString::new("libcuda.so.1").unwrap();
    let symbol = CString::new(name).unwrap();
    let found = unsafe { dlsym(dlopen(library.as_ptr(), 2), symbol.as_ptr()) };
    assert!(!found.is_null());
    found
}

fn wait() -> c_int {
    let call: extern "C" fn() -> c_int = unsafe { std::mem::transmute(look("cuCtxSynchronize")) };
    call()
}

struct WaitsAtTheEnd;
impl Drop for WaitsAtTheEnd {
    fn drop(&mut self) {
        wait();
    }
}

fn main() {
    let init: extern "C" fn(c_uint) -> c_int = unsafe { std::mem::transmute(look("cuInit")) };
    let retain: extern "C" fn(*mut *mut c_void, c_int) -> c_int =
        unsafe { std::mem::transmute(look("cuDevicePrimaryCtxRetain")) };
    let current: extern "C" fn(*mut c_void) -> c_int =
        unsafe { std::mem::transmute(look("cuCtxSetCurrent")) };
    let mut context: *mut c_void = std::ptr::null_mut();
    assert_eq!(init(0) + retain(&mut context, 0) + current(context), 0);
    let context = context as usize;
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let here = current(context as *mut c_void);
                here + (0..50).map(|_| wait()).sum::<c_int>()
            })
        })
        .collect();
    let failed: c_int = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| {
        let _end = WaitsAtTheEnd;
        panic!("on purpose");
    });
    println!("failed {} caught {}", failed, caught.is_err());
}
