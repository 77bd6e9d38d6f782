// Processes of other jobs: ch_lite_jobs.h, on the device that boot.cpp has started.
#include "ch_lite/ch_lite_jobs.h"

#include <cerrno>
#include <cstring>
#include <span>

#include "ch_lite/boot.h"
#include "ch_lite/ch_lite.h"
#include "ch_lite/device/device.h"
#include "mplite/net/loss.h"

using namespace ch_lite;
using namespace mplite;

namespace {

// What is put off is done at the end, as by every call on the device.
struct Work {
  Work() : hold(g_boot->engine->gate()), scope(*g_boot->device) {}
  Hold hold;
  Device::Scope scope;
};

std::span<const std::uint8_t> bytes_at(const void* memory, std::size_t size) {
  return {static_cast<const std::uint8_t*>(memory), size};
}

int met(int peer) {
  if (peer >= 0) return peer;
  if (peer == -EINVAL) return fail(LITE_ERR_ARG, "the name of a process has no key in it");
  if (peer == -ENOMEM)
    return fail(LITE_ERR_NOMEM, "out of memory for processes of other jobs (%d are known)",
                g_boot->engine->peers() - g_boot->size);
  return fail(LITE_ERR_PEER_LOST,
              "a process of another job was lost, and what was open with it is not completed yet");
}

}  // namespace

int lite_peers(void) {
  return g_boot != nullptr && g_boot->device != nullptr ? g_boot->device->peers() : 0;
}

int lite_name(int peer, void* name) {
  static_assert(kProcessNameBytes == LITE_NAME_BYTES && kPortNameBytes == LITE_PORT_BYTES &&
                kKeyBytes == LITE_PROOF_BYTES);
  Work work;
  ProcessName made;
  if (peer < 0 || peer >= g_boot->engine->peers() || !g_boot->engine->name_of(peer, made))
    return fail(LITE_ERR_ARG, "peer %d has no name", peer);
  std::memcpy(name, &made, sizeof made);
  return LITE_OK;
}

int lite_meet(const void* name) {
  const auto known = decode_process_name(bytes_at(name, LITE_NAME_BYTES));
  if (!known) return fail(LITE_ERR_ARG, "not the name of a process of this version of ch_lite");
  Work work;
  return met(g_boot->engine->connect(*known));
}

int lite_open_port(uint32_t id, void* port) {
  Boot& b = *g_boot;
  Work work;
  PortName made = {};
  b.engine->name_of(b.rank, made.owner);
  made.id = id;
  b.net.random(made.key, sizeof made.key);
  if (b.engine->ports().open(id, made.key) < 0)
    return fail(LITE_ERR_NOMEM, "out of memory for a port");
  std::memcpy(port, &made, sizeof made);
  return LITE_OK;
}

void lite_close_port(uint32_t id) {
  Work work;
  g_boot->engine->ports().close(id);
}

int lite_port_is_open(uint32_t id) {
  Work work;
  return g_boot->engine->ports().key_of(id) != nullptr ? 1 : 0;
}

int lite_meet_at_port(const void* port, void* proof) {
  const auto known = decode_port_name(bytes_at(port, LITE_PORT_BYTES));
  if (!known) return fail(LITE_ERR_ARG, "not the name of a port of this version of ch_lite");
  Work work;
  std::uint8_t made[kKeyBytes];
  make_port_proof(*known, g_boot->keys.open, made);
  std::memcpy(proof, made, sizeof made);
  return met(g_boot->engine->connect_by_port(*known));
}

int lite_check_caller(uint32_t id, int peer, const void* proof) {
  Boot& b = *g_boot;
  Work work;
  const std::uint8_t* key = b.engine->ports().key_of(id);
  std::uint8_t caller[kKeyBytes], shown[kKeyBytes];
  if (key == nullptr || peer < 0 || peer >= b.engine->peers()) return 0;
  b.engine->key_of(peer, caller);
  std::memcpy(shown, proof, sizeof shown);
  PortName port = {};
  b.engine->name_of(b.rank, port.owner);
  port.id = id;
  std::memcpy(port.key, key, sizeof port.key);
  return check_port_proof(port, caller, shown) ? 1 : 0;
}

int lite_check_peer(int peer) {
  Boot& b = *g_boot;
  char who[Engine::kDescribeBytes];
  int error;
  {
    Work work;
    error = b.engine->peer_error(peer);
    if (error == 0) return LITE_OK;
    b.engine->describe(peer, who, sizeof who);
  }
  const char* what = error == ECONNREFUSED
                         ? "there is no such port any more, or its process has ended"
                     : error == EKEYREJECTED ? "the name of the port is not one of that process"
                                             : loss_text(error);
  const int code = fail(LITE_ERR_PEER_LOST, "%s: %s", who, what);
  b.tell_of_lost_peer(peer);
  return code;
}

int lite_has_left(int peer) {
  Work work;
  return g_boot->engine->has_left(peer) ? 1 : 0;
}

void lite_part(int peer) {
  Work work;
  g_boot->engine->disconnect(peer);
}
