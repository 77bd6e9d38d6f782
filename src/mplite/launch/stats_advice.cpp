// What a job's counters advise its user to do: the table of rules.
#include "mplite/launch/stats_advice.h"

#include <algorithm>

#include "mplite/config/knob_text.h"
#include "mplite/config/values.h"
#include "mplite/launch/figures.h"

namespace mplite {
namespace {

using Member = std::uint64_t Counters::*;

// Below this a job is too short for a share of its messages to mean anything.
constexpr std::uint64_t kMessagesMin = 1000;
// What happens less often is not worth a change of the program, whatever its share.
constexpr std::uint64_t kTimesMin = 100;
// Programs that overlap take 2.5 to 5.7 signals per MB at 256 KB to 16 MB
// (docs/measurements/overlap.md), 8.9 without LITE_LOW_WATER (arming.md), and at most one per small
// message.
constexpr std::uint64_t kSignalsPerMessage = 2, kSignalsPerMega = 8;
// Making a connection takes three round trips (TCP's and those of the handshake), as long as six
// small messages one after the other, and system calls of its own.
constexpr std::uint64_t kFramesPerConnection = 20, kConnectionsPerRank = 16;
// One loss in a thousand bounds a connection with a round trip of 0.1 ms to 4.5 Gb/s (Mathis et
// al., 1997: 1.2 segments / (round trip * square root of the share of losses)).
constexpr std::uint64_t kSegmentBytes = 1448, kSegmentsPerLoss = 1000;
// One rank's link bounds a job when half of all bytes pass through it.
constexpr std::size_t kRanksForBottleneck = 4;
constexpr std::uint64_t kBytesForBottleneck = 64 * kMega;

// `part` is `percent` of `whole` at least.
bool is_share(std::uint64_t part, std::uint64_t percent, std::uint64_t whole) {
  return static_cast<double>(part) * 100 >=
         static_cast<double>(whole) * static_cast<double>(percent);
}

std::size_t index_of(Member member) {
  std::size_t index = 0;
  while (counter_info(index).member != member) ++index;
  return index;
}

// "now 4M"; "now 1M or 4M" where ranks differ.
std::string now(const JobStats& job, const char* variable) {
  int distance = 0;
  const std::size_t index = nearest_knob(variable, distance);
  std::vector<std::string> values;
  for (const auto& [rank, stats] : job.seen) {
    char text[1536];
    const std::string value = format_knob(index, stats.knobs, text, sizeof text);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  std::string text = "now ";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? " or " : "") + values[i];
  return text;
}

// ", 91 % of them on rank 3", where one rank has more than half and twice its share.
std::string where(const JobStats& job, Member member) {
  const Spread spread = spread_of(job, index_of(member));
  if (!is_share(spread.max, 50, spread.total) || static_cast<double>(spread.max) < 2 * spread.mean)
    return "";
  return ", " + share(spread.max, spread.total) + " of them on rank " +
         std::to_string(spread.max_rank);
}

// "1 message", "3 messages"
std::string counted(std::uint64_t number, const char* what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

template <typename Has>
bool any_rank(const JobStats& job, Has has) {
  return std::any_of(job.seen.begin(), job.seen.end(),
                     [&](const auto& one) { return has(one.second); });
}

// The rank that has held the largest part of its LITE_UNEXPECTED_MAX, and that part.
double fullest(const JobStats& job, int& rank) {
  double most = -1;
  for (const auto& [number, stats] : job.seen) {
    const double part = static_cast<double>(stats.counters.unexpected_bytes_peak) /
                        static_cast<double>(stats.knobs.unexpected_max);
    if (part <= most) continue;
    most = part;
    rank = number;
  }
  return most;
}

// The rank through which half of the bytes pass, by one direction; -1: none.
int bottleneck(const JobTotals& t, Member direction) {
  const Spread spread = spread_of(t.job, index_of(direction));
  return t.job.seen.size() >= kRanksForBottleneck && spread.total >= kBytesForBottleneck &&
                 is_share(spread.max, 50, spread.total)
             ? spread.max_rank
             : -1;
}

std::uint64_t usual_signals(const JobTotals& t) {
  return kSignalsPerMessage * t.transfers() + kSignalsPerMega * (t.counters.bytes_in / kMega);
}

constexpr AdviceRule kRules[] = {
    {"unexpected",
     {&Counters::unexpected},
     [](const JobTotals& t) {
       return t.messages() >= kMessagesMin && is_share(t.counters.unexpected, 10, t.messages());
     },
     [](const JobTotals& t) {
       return share(t.counters.unexpected, t.messages()) + " of the messages (" +
              grouped(t.counters.unexpected) + where(t.job, &Counters::unexpected) +
              ") were unexpected: they came before their receive was posted, and their " +
              byte_text(t.counters.unexpected_bytes) +
              " had to be stored and copied. Post receives earlier: MPI_Irecv before the "
              "computation, or before the sender is told to send.";
     }},
    {"credit",
     {&Counters::credit_stalls},
     [](const JobTotals& t) {
       return t.counters.credit_stalls >= kTimesMin &&
              is_share(t.counters.credit_stalls, 1, t.transfers());
     },
     [](const JobTotals& t) {
       return "Credit was out " + grouped(t.counters.credit_stalls) + " times (" +
              share(t.counters.credit_stalls, t.transfers()) + " of the messages" +
              where(t.job, &Counters::credit_stalls) +
              "), and the message waited for its receiver. Raise LITE_CREDITS (" +
              now(t.job, "LITE_CREDITS") + "), or post receives earlier.";
     }},
    {"unexpected_memory",
     {&Counters::unexpected_bytes_peak},
     [](const JobTotals& t) {
       int rank = 0;
       return fullest(t.job, rank) >= 0.5;
     },
     [](const JobTotals& t) {
       int rank = 0;
       fullest(t.job, rank);
       const RankStats& stats = t.job.seen.at(rank);
       return "Rank " + std::to_string(rank) + " held " +
              byte_text(stats.counters.unexpected_bytes_peak) +
              " of unexpected messages at a time, of the " + byte_text(stats.knobs.unexpected_max) +
              " that LITE_UNEXPECTED_MAX allows; at that limit senders are slowed down. Post "
              "receives earlier, let senders wait for their receiver now and then, or raise "
              "LITE_UNEXPECTED_MAX.";
     }},
    {"memory_in_handler",
     {&Counters::no_memory_in_handler},
     [](const JobTotals& t) {
       return t.counters.no_memory_in_handler >= kTimesMin &&
              is_share(t.counters.no_memory_in_handler, 1, t.transfers());
     },
     [](const JobTotals& t) {
       return "The signal handler had no buffer ready " + grouped(t.counters.no_memory_in_handler) +
              " times" + where(t.job, &Counters::no_memory_in_handler) +
              ": these messages waited for a thread of the library, or for the next MPI call. Post "
              "receives earlier, so that no buffer is needed, or take LITE_CONTROLLER=thread, "
              "which "
              "may allocate.";
     }},
    {"parked",
     {&Counters::parked},
     [](const JobTotals& t) {
       return t.counters.parked >= kTimesMin &&
              is_share(t.counters.parked, 1, t.counters.frames_in);
     },
     [](const JobTotals& t) {
       return grouped(t.counters.parked) + " frames" + where(t.job, &Counters::parked) +
              ", had to wait for a buffer, and nothing behind them was read meanwhile. Post "
              "receives earlier, or raise LITE_UNEXPECTED_MAX (" +
              now(t.job, "LITE_UNEXPECTED_MAX") + ").";
     }},
    {"no_grace",
     {&Counters::signals},
     [](const JobTotals& t) {
       return t.counters.signals >= kMessagesMin &&
              is_share(t.counters.signals, 50, t.transfers()) &&
              any_rank(t.job, [](const RankStats& r) {
                return !r.knobs.grace && r.knobs.controller == ControllerKind::kSigio;
              });
     },
     [](const JobTotals& t) {
       return grouped(t.counters.signals) +
              " signals interrupted the program, with LITE_GRACE=off, "
              "by which each departure from MPI lets them through. Leave LITE_GRACE at auto, "
              "unless the program computes after every call.";
     }},
    {"no_low_water",
     {&Counters::signals, &Counters::bytes_in},
     [](const JobTotals& t) {
       return t.counters.signals >= kMessagesMin && t.counters.bytes_in >= kMega &&
              t.counters.signals >= kSignalsPerMega * (t.counters.bytes_in / kMega) &&
              any_rank(t.job, [](const RankStats& r) { return r.knobs.low_water_bytes == 0; });
     },
     [](const JobTotals& t) {
       return grouped(t.counters.signals) + " signals for " + byte_text(t.counters.bytes_in) +
              " received, with LITE_LOW_WATER=0, by which each packet raises one. Leave "
              "LITE_LOW_WATER at 256K.";
     }},
    {"signals",
     {&Counters::signals},
     [](const JobTotals& t) {
       return t.counters.signals >= kMessagesMin && t.counters.signals > usual_signals(t);
     },
     [](const JobTotals& t) {
       return grouped(t.counters.signals) + " signals" + where(t.job, &Counters::signals) +
              ", for " + grouped(t.transfers()) + " messages and " +
              byte_text(t.counters.bytes_in) +
              " received: more than it takes to move them, and each interrupts the program for "
              "some microseconds. Where the program does not compute between its calls, "
              "LITE_CONTROLLER=sync takes none; LITE_CONTROLLER=thread moves messages by a thread.";
     }},
    {"backstops",
     {&Counters::backstops},
     [](const JobTotals& t) {
       return t.counters.backstops >= kMessagesMin &&
              is_share(t.counters.backstops, 10, t.transfers());
     },
     [](const JobTotals& t) {
       return "The program stayed away from MPI " + grouped(t.counters.backstops) + " times" +
              where(t.job, &Counters::backstops) +
              " when it was expected back at once, and its messages stood still until a timer saw "
              "to them (100 us or more). LITE_GRACE=off lets the signal through at each departure.";
     }},
    {"gathered_late",
     {&Counters::gathered_late},
     [](const JobTotals& t) {
       return t.counters.gathered_late >= kTimesMin &&
              is_share(t.counters.gathered_late, 5, t.counters.gathered);
     },
     [](const JobTotals& t) {
       return "Small messages that leave together waited for others " +
              grouped(t.counters.gathered_late) + " times" +
              where(t.job, &Counters::gathered_late) +
              ", until a timer sent them, because the program computed behind its last send. "
              "LITE_TUNING=-coalesce sends each at once.";
     }},
    {"connections",
     {&Counters::connections},
     [](const JobTotals& t) {
       return t.counters.connections >= kConnectionsPerRank * t.job.seen.size() &&
              t.counters.frames_out < kFramesPerConnection * t.counters.connections;
     },
     [](const JobTotals& t) {
       return "Each end of a connection sent " +
              grouped(t.counters.frames_out / t.counters.connections) +
              " frames on average, over " + grouped(t.counters.connections / t.job.seen.size()) +
              " connections per rank: making them was a good part of the communication. Talk to "
              "fewer partners (collectives in place of one message to everybody), or do it once "
              "before what is measured.";
     }},
    {"eager_max",
     {&Counters::rndv_msgs},
     [](const JobTotals& t) {
       const std::uint64_t chosen =
           t.counters.rndv_msgs - std::min(t.counters.rndv_msgs, t.counters.credit_stalls);
       return chosen >= kMessagesMin && is_share(chosen, 10, t.messages()) &&
              t.counters.rndv_bytes / t.counters.rndv_msgs < 256 * kKilo &&
              any_rank(t.job, [](const RankStats& r) { return r.knobs.eager_max < 256 * kKilo; });
     },
     [](const JobTotals& t) {
       return grouped(t.counters.rndv_msgs) + " messages of " +
              byte_text(t.counters.rndv_bytes / t.counters.rndv_msgs) +
              " on average went by rendezvous, which asks the receiver first. With "
              "LITE_EAGER_MAX=auto (" +
              now(t.job, "LITE_EAGER_MAX") + ") messages up to 256K are sent at once.";
     }},
    {"socket_buffer",
     {&Counters::writes_full},
     [](const JobTotals& t) {
       return t.counters.writes_full >= kMessagesMin &&
              is_share(t.counters.writes_full, 10, t.counters.writes) &&
              any_rank(t.job, [](const RankStats& r) { return r.knobs.sockbuf != 0; });
     },
     [](const JobTotals& t) {
       return "The kernel took less than was offered at " +
              share(t.counters.writes_full, t.counters.writes) +
              " of the send calls, with a fixed LITE_SOCKBUF (" + now(t.job, "LITE_SOCKBUF") +
              "). 0 lets the kernel choose, by the speed and length of the connection.";
     }},
    {"one_receiver",
     {&Counters::bytes_in},
     [](const JobTotals& t) { return bottleneck(t, &Counters::bytes_in) >= 0; },
     [](const JobTotals& t) {
       return "Rank " + std::to_string(bottleneck(t, &Counters::bytes_in)) + " received " +
              share(spread_of(t.job, index_of(&Counters::bytes_in)).max, t.counters.bytes_in) +
              " of all bytes: its link bounds the job. Spread the work over the ranks, or collect "
              "by MPI_Reduce in place of MPI_Gather where that will do.";
     }},
    {"one_sender",
     {&Counters::bytes_out},
     [](const JobTotals& t) { return bottleneck(t, &Counters::bytes_out) >= 0; },
     [](const JobTotals& t) {
       return "Rank " + std::to_string(bottleneck(t, &Counters::bytes_out)) + " sent " +
              share(spread_of(t.job, index_of(&Counters::bytes_out)).max, t.counters.bytes_out) +
              " of all bytes: its link bounds the job. Where all get the same, MPI_Bcast passes it "
              "on from rank to rank.";
     }},
    {"resent",
     {&Counters::resent},
     [](const JobTotals& t) {
       return t.counters.resent >= kTimesMin &&
              t.counters.resent * kSegmentsPerLoss >= t.counters.bytes_out / kSegmentBytes;
     },
     [](const JobTotals& t) {
       return "TCP had to send " + grouped(t.counters.resent) + " segments again" +
              where(t.job, &Counters::resent) + ", for " + byte_text(t.counters.bytes_out) +
              " sent: the network loses packets, and each loss holds up its connection. Look for "
              "errors and drops of the interfaces (ip -s link) and the switches; where many ranks "
              "send to one, let them take turns.";
     }},
    {"truncated",
     {&Counters::truncated},
     [](const JobTotals& t) { return t.counters.truncated > 0; },
     [](const JobTotals& t) {
       return counted(t.counters.truncated, "message") + where(t.job, &Counters::truncated) +
              ", did not fit the receive, which ends with MPI_ERR_TRUNCATE; the rest of the data "
              "is lost. Give the receive more room, or ask for the length by MPI_Probe.";
     }},
    {"refused",
     {&Counters::connections_refused},
     [](const JobTotals& t) { return t.counters.connections_refused > 0; },
     [](const JobTotals& t) {
       return counted(t.counters.connections_refused, "connection") +
              where(t.job, &Counters::connections_refused) +
              ", did not prove to belong to the job, and got no further. The lines \"dropped a "
              "connection\" on standard error say from where. Keep strangers off by a firewall; "
              "LITE_PORT_RANGE (" +
              now(t.job, "LITE_PORT_RANGE") + ") keeps the job's ports in a range.";
     }},
};

}  // namespace

Spread spread_of(const JobStats& job, std::size_t counter) {
  Spread spread;
  const bool is_peak = counter_info(counter).is_peak;
  bool first = true;
  double sum = 0;
  for (const auto& [rank, stats] : job.seen) {
    const std::uint64_t value = counter_value(counter, stats.counters);
    sum += static_cast<double>(value);
    spread.total = is_peak ? std::max(spread.total, value) : spread.total + value;
    if (first || value < spread.min) {
      spread.min = value;
      spread.min_rank = rank;
    }
    if (first || value > spread.max) {
      spread.max = value;
      spread.max_rank = rank;
    }
    first = false;
  }
  spread.mean = sum / static_cast<double>(job.seen.size());
  return spread;
}

JobTotals::JobTotals(const JobStats& its_job) : job(its_job) {
  for (std::size_t i = 0; i < counter_count(); ++i)
    if (const Member member = counter_info(i).member; member != nullptr)
      counters.*member = spread_of(job, i).total;
}

std::uint64_t JobTotals::messages() const {
  return counters.short_msgs + counters.eager_msgs + counters.rndv_msgs + counters.self_msgs;
}

std::uint64_t JobTotals::transfers() const {
  return messages() + counters.am_msgs + counters.put_msgs + counters.get_msgs;
}

std::size_t advice_rule_count() { return sizeof kRules / sizeof kRules[0]; }
const AdviceRule& advice_rule(std::size_t index) { return kRules[index]; }

}  // namespace mplite
