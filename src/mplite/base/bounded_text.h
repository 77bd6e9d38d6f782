// Text appended to a buffer of fixed size; what does not fit is cut off. For sentences made in
// ordinary context.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace mplite {

// Always terminated, unless `size` is 0.
class BoundedText {
 public:
  BoundedText(char* text, std::size_t size) : text_(text), size_(size) {
    if (size_ > 0) text_[0] = '\0';
  }
  void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    if (used_ >= size_) return;
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(text_ + used_, size_ - used_, format, arguments);
    va_end(arguments);
    if (n > 0) used_ += static_cast<std::size_t>(n);
  }

  // Without what was cut off.
  std::size_t length() const { return used_ < size_ ? used_ : size_ - (size_ > 0 ? 1 : 0); }

 private:
  char* text_;
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace mplite
