// A child made by fork() and its parent's job: what keeps them apart. Raised by Controller::start,
// lowered by Controller::stop.
//
// A child has copies of our memory and of our descriptors. The kernel's side of a socket or of the
// epoll set is not copied, it is shared: an epoll_ctl, a read or a write in the child would be felt
// by the parent; and a socket that the child merely holds stays open when the parent dies, so that
// its peers are not told. So in the child, before fork() returns there: the gate is closed for good
// (who calls MPI there is told, and that process ends; a child's MPI error could end the whole
// job), each descriptor of ours is replaced by one that leads nowhere, and the controller gives
// signal mask and handler back. posix_spawn(), vfork() and system() run no such handlers and need
// none: all descriptors are close-on-exec. (The mask: docs/coexistence.md.)
#pragma once

namespace mplite {

class Engine;

// Ordinary context. One engine at a time, the last one counts. `in_child(arg)` is called in the
// child's only thread, the gate closed.
void fork_shield_raise(Engine& engine, void (*in_child)(void* arg), void* arg);
void fork_shield_lower(const Engine& engine);

}  // namespace mplite
