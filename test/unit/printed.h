// What a function prints to a file, or says on stderr, as text.
#pragma once
#include <unistd.h>

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

// Also by write(2).
template <typename Action>
std::string said(Action action) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) std::abort();
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  action();
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;
  char part[1024];
  for (ssize_t n;
       (n = pread(fileno(file), part, sizeof part, static_cast<off_t>(text.size()))) > 0;)
    text.append(part, static_cast<std::size_t>(n));
  std::fclose(file);
  return text;
}
