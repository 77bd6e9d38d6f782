// A job of one rank that was meant to be one rank of several.
#include "mplite/runtime/lone_rank.h"

#include <cstdio>
#include <cstdlib>

namespace mplite {
namespace {

// What a launcher says of the processes that it has started together.
struct Launcher {
  const char* name;
  const char* count;  // variables
  const char* number;
  const char* cure;
};
constexpr Launcher kLaunchers[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "start it by the mpirun of the installation that it was built with (mpicc's folder)"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "use srun --mpi=pmi2"},
};

// Set by launchers whose protocol this MPI speaks: then one rank is what was asked for.
constexpr const char* kSpoken[] = {"PMI_RANK", "PMI_FD", "PMI_PORT"};

int number_in(const char* text) { return text != nullptr ? std::atoi(text) : -1; }

}  // namespace

const char* doubt_lone_rank(const char* (*environment)(const char* name), char* text,
                            std::size_t size) {
  for (const char* name : kSpoken)
    if (environment(name) != nullptr) return nullptr;
  for (const Launcher& launcher : kLaunchers) {
    const int count = number_in(environment(launcher.count));
    if (count < 2) continue;
    if (number_in(environment(launcher.number)) != 0) return nullptr;
    std::snprintf(
        text, size,
        "%s has started %d processes, and each is a job of one rank, as it does not speak "
        "this MPI's protocol (PMI): %s",
        launcher.name, count, launcher.cure);
    return text;
  }
  return nullptr;
}

}  // namespace mplite
