// What went wrong where no request stands for it: kept until the application can be told, once.
// Noted by the protocol files and the device, told by Core::take_trouble. Gate held.
#pragma once
#include <cstdarg>
#include <cstdio>

#include "ch_lite/ch_lite.h"

namespace ch_lite {

class Trouble {
 public:
  // LITE_ERR_*, or LITE_OK: there is none.
  int code() const { return code_; }
  int peer() const { return peer_; }  // -1: no certain one
  const char* text() const { return text_; }

  // Of several, the first. Ordinary context.
  [[gnu::cold, gnu::noinline, gnu::format(printf, 4, 5)]] void note(int code, int peer,
                                                                    const char* format, ...) {
    if (code_ != LITE_OK) return;
    code_ = code;
    peer_ = peer;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text_, sizeof text_, format, arguments);
    va_end(arguments);
  }
  void forget() { code_ = LITE_OK; }

 private:
  int code_ = LITE_OK;
  int peer_ = -1;
  char text_[160] = "";
};

}  // namespace ch_lite
