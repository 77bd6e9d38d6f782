// The state tables of requests and messages.
#include "ch_lite/core/request.h"

namespace ch_lite {
namespace {

template <typename... States>
constexpr std::uint16_t set(States... states) {
  return static_cast<std::uint16_t>((0u | ... | (1u << static_cast<unsigned>(states))));
}

}  // namespace

using R = RequestState;
// Row: from. What may follow. kComplete is reachable from every pending state, as any peer can be
// lost.
const std::uint16_t kRequestNext[kRequestStates] = {
    /* kFree */ set(R::kPosted, R::kReceivingChannel, R::kReceivingTransfer, R::kAwaitingCts,
                    R::kSending, R::kSendingAwaitingAck, R::kAwaitingAck, R::kSelfPinned,
                    R::kWaitingCredit, R::kComplete),
    /* kPosted */ set(R::kReceivingChannel, R::kReceivingTransfer, R::kComplete, R::kFree),
    /* kReceivingChannel */ set(R::kComplete),
    /* kReceivingTransfer */ set(R::kReceivingChannel, R::kComplete),
    /* kAwaitingCts */ set(R::kSending, R::kSendingAwaitingAck, R::kComplete),
    /* kSending */ set(R::kComplete),
    /* kSendingAwaitingAck */ set(R::kSending, R::kAwaitingAck, R::kComplete),
    /* kAwaitingAck */ set(R::kComplete),
    /* kSelfPinned */ set(R::kComplete),
    /* kWaitingCredit */
    set(R::kAwaitingCts, R::kSending, R::kReceivingTransfer, R::kAwaitingAnswer, R::kComplete),
    /* kAwaitingAnswer */ set(R::kComplete),
    /* kComplete */ set(R::kReported, R::kFree),
    /* kReported */ set(R::kFree),
};

using M = MessageState;
const std::uint16_t kMessageNext[kMessageStates] = {
    /* kFree */ set(M::kReady, M::kArriving, M::kDeferred, M::kOffered, M::kPinned),
    /* kReady */ set(M::kFree),
    /* kArriving */ set(M::kReady, M::kFailed, M::kFree),
    /* kDeferred */ set(M::kArriving, M::kOffered, M::kFailed, M::kFree),
    /* kOffered */ set(M::kTransfer, M::kFailed, M::kFree),
    /* kPinned */ set(M::kFree),
    /* kTransfer */ set(M::kReady, M::kFree),
    /* kFailed */ set(M::kFree),
};

}  // namespace ch_lite
