// Names of processes and ports of other jobs, as bytes from anywhere, and an engine that is told to
// meet them.
#include "mplite/net/process_name.h"

#include "fuzz.h"
#include "sim_ranks.h"

using namespace mplite;
using fuzz::check;

namespace {

ProcessName true_name() {
  std::uint8_t random[kKeyBytes] = {5};
  return make_process_name(sim::FakeWorld::address(1), make_key_pair(random).open, 1 << 20);
}

}  // namespace

std::vector<fuzz::Seed> fuzz_seeds() {
  PortName port = {true_name(), 3, {1, 2, 3}};
  fuzz::Seed whole = {0}, name = {1};
  fuzz::put(whole, port);
  fuzz::put(name, port.owner);
  ProcessName six = port.owner;
  six.family = 6;
  six.address[0] = 0xfe;
  six.address[1] = 0x80;
  fuzz::Seed local = {1};
  fuzz::put(local, six);
  fuzz::Seed several = whole;
  several.insert(several.end(), name.begin(), name.end());
  several.insert(several.end(), local.begin(), local.end());
  return {whole, name, local, several};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Choices input(data, size);
  std::uint8_t random[kKeyBytes] = {9};
  static const KeyPair keys = make_key_pair(random);
  SimRanks ranks(
      2, SimRanks::no_faults(), [&](EngineOptions& o) { o.keys = keys; }, 1, 0b10);
  std::memcpy(ranks.peers[0].name_key, keys.open, kKeyBytes);
  Engine& engine = ranks.engine(0);
  while (input.any()) {
    const std::uint8_t what = input.byte();
    const std::size_t bytes = what >= 240       ? what - 240
                              : (what & 1) != 0 ? kProcessNameBytes
                                                : kPortNameBytes;
    const auto from = input.bytes(bytes);
    fuzz::Block exact(from.size());
    std::copy(from.begin(), from.end(), exact.data());
    const std::span<const std::uint8_t> name(exact.data(), exact.size());
    const auto process = decode_process_name(name);
    const auto port = decode_port_name(name);
    check(!(process && port));
    if (!process && !port) continue;
    const ProcessName& owner = process ? *process : port->owner;
    check((owner.family == 4 || owner.family == 6) && owner.port != 0 && owner.window != 0);
    const sockaddr_storage address = listener_of(owner, 7);
    ProcessName same = make_process_name(address, owner.key, owner.window);
    check(listener_of(same, 7).ss_family == address.ss_family && same.port == owner.port);
    if (port) {
      std::uint8_t proof[kKeyBytes];
      make_port_proof(*port, owner.key, proof);
      check(check_port_proof(*port, owner.key, proof));
    }
    ranks.as(0);
    Hold hold(engine.gate());
    const int peer = port ? engine.connect_by_port(*port) : engine.connect(owner);
    check(peer < engine.peers());
    if (peer < 0) continue;
    ProcessName told;
    check(engine.name_of(peer, told) && std::memcmp(told.key, owner.key, kKeyBytes) == 0);
    if (what % 4 >= 2) engine.reach(peer);
    if (what % 8 >= 4) engine.disconnect(peer);
    if (what % 16 >= 8) {
      engine.refill();
      engine.poll_all();
      ranks.world.skip(1'000'000);
    }
  }
  ranks.turn(2);
  return 0;
}
