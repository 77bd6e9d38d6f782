// What a function prints to a file, as text.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

template <typename Print>
std::string printed(Print print) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  print(out);
  std::fclose(out);
  const std::string result(text, size);
  std::free(text);
  return result;
}
