// Included by a test program that asks for more than any memory: malloc() then gives null under the
// sanitizers too, which would end the program. One file of a program only.
#pragma once

extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
