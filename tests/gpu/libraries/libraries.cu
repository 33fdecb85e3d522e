// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// cuBLAS and cuSOLVER behind a busy stream: their waits are the library's, and a report should name
// its function. Prints the bytes of the results as a checksum; prints nothing that varies.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: status %d\n", what, status);
  std::exit(3);
}
#define CHECK(call) check(static_cast<int>(call), #call)

std::uint64_t checksum = 1469598103934665603u;
void add(const void* data, std::size_t n) {
  for (std::size_t i = 0; i < n; i++)
    checksum = (checksum ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
}

}  // namespace

// Kept out of line: a report shows them as the user's functions.
__attribute__((noinline)) void dot_with_host_result(cublasHandle_t blas, const float* x, int n) {
  float result = 0;
  CHECK(cublasSdot(blas, n, x, 1, x, 1, &result));
  add(&result, sizeof result);
}

__attribute__((noinline)) void norm_with_host_result(cublasHandle_t blas, const float* x, int n) {
  float result = 0;
  CHECK(cublasSnrm2(blas, n, x, 1, &result));
  add(&result, sizeof result);
}

__attribute__((noinline)) void eigenvalues(cusolverDnHandle_t solver, float* a, float* w, int n) {
  int room = 0, *info = nullptr;
  CHECK(cusolverDnSsyevd_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, a,
                                    n, w, &room));
  float* work = nullptr;
  CHECK(cudaMalloc(&work, sizeof(float) * room));
  CHECK(cudaMalloc(&info, sizeof(int)));
  CHECK(cusolverDnSsyevd(solver, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, a, n, w, work,
                         room, info));
  int status = -1;
  CHECK(cudaMemcpy(&status, info, sizeof status, cudaMemcpyDeviceToHost));
  add(&status, sizeof status);
  CHECK(cudaFree(work));
  CHECK(cudaFree(info));
}

int main() {
  constexpr int n = 256;
  std::vector<float> matrix(n * n);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) matrix[i * n + j] = 1.0f / (1 + i + j) + (i == j ? 2.0f : 0.0f);
  float *a = nullptr, *w = nullptr;
  CHECK(cudaMalloc(&a, sizeof(float) * n * n));
  CHECK(cudaMalloc(&w, sizeof(float) * n));
  CHECK(cudaMemcpy(a, matrix.data(), sizeof(float) * n * n, cudaMemcpyHostToDevice));
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  CHECK(cublasCreate(&blas));
  CHECK(cusolverDnCreate(&solver));
  for (int i = 0; i < 5; i++) {
    dot_with_host_result(blas, a, n * n);
    norm_with_host_result(blas, a, n * n);
  }
  eigenvalues(solver, a, w, n);
  std::vector<float> values(n);
  CHECK(cudaMemcpy(values.data(), w, sizeof(float) * n, cudaMemcpyDeviceToHost));
  add(values.data(), sizeof(float) * n);
  CHECK(cublasDestroy(blas));
  CHECK(cusolverDnDestroy(solver));
  CHECK(cudaFree(a));
  CHECK(cudaFree(w));
  CHECK(cudaDeviceSynchronize());
  std::printf("checksum %016llx\n", static_cast<unsigned long long>(checksum));
  return 0;
}
