// On which addresses a process may be called, and the listeners there. Used by process.cpp and
// lite_info.cpp. Ordinary context only.
#pragma once
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "mplite/base/address.h"
#include "mplite/config/iface_list.h"
#include "mplite/config/knobs.h"
#include "mplite/net/listening_sockets.h"

namespace mplite {

class Net;

// One address of one interface, as getifaddrs tells.
struct Candidate {
  char name[16] = {};
  unsigned flags = 0;             // IFF_*
  sockaddr_storage address = {};  // a link-local IPv6 address with its scope id
};

// The best, and what else may lead here; port 0.
struct InterfaceChoice {
  char name[16] = {};
  sockaddr_storage address = {};
  struct Other {
    char name[16] = {};
    sockaddr_storage address = {};
  } more[kAddressesMax - 1] = {};
  int more_count = 0;
  // Of all addresses that might have been chosen, whatever the wanted family (address.h).
  std::uint8_t kinds = 0;
};

// Pure. Default: up and with carrier, not loopback, not the bridge of a container or
// virtual-machine system; with Family::kAny those of IPv4, then tunnels, then global IPv6, each in
// the order of the list; link-local and loopback addresses only when nothing else is there, and
// then one. Of an interface one address of each family, the second one behind those of all other
// interfaces; of kAddressesMax one is of either family where there are both. `wanted` overrides all
// of that, and what it names must exist. `seen` (`size` bytes, always written) tells each candidate
// and why it was left out. False: nothing fits; then `seen` is the error sentence.
bool choose_interface(const Candidate* list, int count, const IfaceList& wanted, Family family,
                      InterfaceChoice& choice, char* seen, std::size_t size);

// The candidates of this machine. Returns how many were written (at most `room`), or -errno.
// Allocates inside getifaddrs.
int list_interfaces(Candidate* list, int room);
inline constexpr int kCandidatesMax = 256;

// The name of the interface with that address; "" if there is none. Allocates.
void interface_of(const sockaddr_storage& address, char (&name)[16]);

// Opens a listener on the choice, in the port range of the knobs (each port tried once, starting at
// one that depends on the process). Returns the descriptor and sets choice.address's port, or
// -errno with a sentence in `error`.
int open_listener(Net& net, InterfaceChoice& choice, const Knobs& knobs, char* error,
                  std::size_t size);

// The same for what else may lead here, behind the first. An address where nobody can listen is
// taken out of the choice.
void open_more_listeners(Net& net, InterfaceChoice& choice, const Knobs& knobs,
                         ListeningSockets& listeners);

}  // namespace mplite
