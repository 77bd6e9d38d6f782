// An exception that nobody catches (victim.c).
#include <stdexcept>

extern "C" void throw_uncaught();

extern "C" void throw_uncaught()
{
    throw std::runtime_error("nobody catches this");
}
