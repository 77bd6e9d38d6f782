// Which interface a process listens on, and the listener there. Used by process.cpp and
// lite_info.cpp. Ordinary context only.
#pragma once
#include <sys/socket.h>

#include <cstddef>

#include "mplite/config/iface_list.h"
#include "mplite/config/knobs.h"

namespace mplite {

class Net;

// One address of one interface, as getifaddrs tells.
struct Candidate {
  char name[16] = {};
  unsigned flags = 0;             // IFF_*
  sockaddr_storage address = {};  // a link-local IPv6 address with its scope id
};

struct InterfaceChoice {
  char name[16] = {};
  sockaddr_storage address = {};  // port 0
};

// Pure. Default: up and with carrier, not loopback, not the bridge of a container or
// virtual-machine system; in the order of the list; with Family::kAny the first IPv4, else the
// first global IPv6, else a link-local one; loopback only when nothing else is there. `wanted`
// overrides all of that and what it names must exist. `seen` (`size` bytes, always written) tells
// each candidate and why it was left out. False: nothing fits; then `seen` is the error sentence.
bool choose_interface(const Candidate* list, int count, const IfaceList& wanted, Family family,
                      InterfaceChoice& choice, char* seen, std::size_t size);

// The candidates of this machine. Returns how many were written (at most `room`), or -errno.
// Allocates inside getifaddrs.
int list_interfaces(Candidate* list, int room);
inline constexpr int kCandidatesMax = 256;

// Opens a listener on the choice, in the port range of the knobs (each port tried once, starting at
// one that depends on the process). Returns the descriptor and sets choice.address's port, or
// -errno with a sentence in `error`.
int open_listener(Net& net, InterfaceChoice& choice, const Knobs& knobs, char* error,
                  std::size_t size);

}  // namespace mplite
