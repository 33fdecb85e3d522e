// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Demangling and shortening.
#include "demangle.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <vector>

namespace hostwait {

namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Length of "operator…" at `at` including its symbol characters; 0 if there is none.
std::size_t operator_length(std::string_view text, std::size_t at) {
  constexpr std::string_view word = "operator";
  if (text.substr(at, word.size()) != word || (at > 0 && is_name_char(text[at - 1]))) return 0;
  std::size_t end = at + word.size();
  if (end < text.size() && is_name_char(text[end])) return 0;
  if (text.substr(end, 2) == "()") return end + 2 - at;
  while (end < text.size() && std::string_view("<>=!+-*/%^&|~,[]").find(text[end]) != text.npos)
    ++end;
  if (end == at + word.size() && end < text.size() && text[end] == ' ') {
    // operator new, operator bool, operator std::string: up to the parameters.
    while (end < text.size() && text[end] != '(' && text[end] != '<') ++end;
  }
  return end - at;
}

// The end of the bracketed part that begins at `at`, one past its closing bracket.
std::size_t skip_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (const std::size_t length = operator_length(text, i); length > 0) {
      i += length - 1;
      continue;
    }
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;
    if ((c == '>' || c == ')' || c == '}' || c == ']') && --depth == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

std::string strip_signature(std::string_view text) {
  std::string out;
  std::size_t name_begin = 0;  // in out: after the return type
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = operator_length(text, i); length > 0) {
      out += text.substr(i, length);
      i += length;
      continue;
    }
    const char c = text[i];
    if (c == '<') {
      i = skip_brackets(text, i);
    } else if (c == '[') {  // [abi:cxx11], [clone .isra.0]
      i = skip_brackets(text, i);
    } else if (c == '{') {
      const std::size_t end = skip_brackets(text, i);
      out +=
          text.substr(i, 7) == "{lambda" ? std::string_view("{lambda}") : text.substr(i, end - i);
      i = end;
    } else if (c == '(') {
      constexpr std::string_view anonymous = "(anonymous namespace)";
      if (text.substr(i, anonymous.size()) == anonymous) {
        out += anonymous;
        i += anonymous.size();
        continue;
      }
      const std::size_t end = skip_brackets(text, i);
      // Parameters of an enclosing function ("f(int)::{lambda}") are left out; the last ones end
      // the name.
      if (text.find("::", end) == text.npos || text.substr(end, 2) != "::") {
        const std::string_view rest = text.substr(end);
        if (rest.starts_with(" const::") || rest.starts_with(" &::")) {
          i = text.find("::", end);
          continue;
        }
        break;
      }
      i = end;
    } else if (c == ' ') {
      // What came before was a return type, a qualifier or "void".
      if (!out.empty()) name_begin = out.size() + 1;
      out += c;
      ++i;
    } else {
      out += c;
      ++i;
    }
  }
  while (!out.empty() && out.back() == ' ') {
    out.pop_back();
    if (name_begin > out.size()) name_begin = 0;
  }
  if (name_begin < out.size()) out.erase(0, name_begin);
  return out.empty() ? std::string(text) : out;
}

std::string readable_name(const char* symbol) {
  const std::string_view raw = symbol;
  if (!raw.starts_with("_Z") && !raw.starts_with("__Z")) return std::string(raw);
  // Compiler suffixes (".isra.0", ".cold") say nothing to the reader.
  const std::string mangled(raw.substr(0, raw.find('.')));
  int status = 0;
  char* demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  if (status != 0 || demangled == nullptr) return std::string(raw);
  std::string name = strip_signature(demangled);
  std::free(demangled);
  return name;
}

std::string shorten_name(const std::string& full) {
  std::string name = full;
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(anonymous); at != std::string::npos;
       at = name.find(anonymous, at))
    name.erase(at, anonymous.size());
  // A lambda is called by the function that it stands in.
  for (const std::string_view part : {"::{lambda}::operator()", "::{lambda}"}) {
    while (name.size() > part.size() && std::string_view(name).ends_with(part))
      name.resize(name.size() - part.size());
  }
  std::vector<std::size_t> parts{0};
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] == ':' && name[i + 1] == ':') {
      parts.push_back(i + 2);
      ++i;
    }
  }
  if (parts.size() <= 4) return name;
  return name.substr(0, parts[2]) + "…::" + name.substr(parts.back());
}

}  // namespace hostwait
