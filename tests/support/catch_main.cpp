// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The test runner's main, compiled once.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
// A name or tag that matches no case fails the run: Catch2 3 does so by itself.
int main(int argc, char** argv) {
  Catch::Session session;
  if (const int status = session.applyCommandLine(argc, argv); status != 0) return status;
  auto& warnings = session.configData().warnings;
  warnings = static_cast<Catch::WarnAbout::What>(warnings | Catch::WarnAbout::NoTests);
  return session.run();
}
#endif
