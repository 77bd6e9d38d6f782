// lone_rank.h: which environments of a job of one rank are doubted, and where it is said.
#include "mplite/runtime/lone_rank.h"

#include <cstring>
#include <map>
#include <string>

#include "run_tests.h"

namespace {

std::map<std::string, const char*> g_environment;
const char* lookup(const char* name) {
  const auto found = g_environment.find(name);
  return found != g_environment.end() ? found->second : nullptr;
}
std::string doubt(const std::map<std::string, const char*>& environment) {
  g_environment = environment;
  char text[512];
  const char* sentence = mplite::doubt_lone_rank(lookup, text, sizeof text);
  return {text, sentence != nullptr ? std::strlen(text) : 0};
}

void expect(const std::map<std::string, const char*>& environment, const char* sentence) {
  const std::string text = doubt(environment);
  ck_assert_str_eq(text.c_str(), sentence);
}

START_TEST(one_rank_by_itself_is_not_doubted) {
  expect({}, "");
  expect({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}, "");
  expect({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}, "");
  // a script of sbatch, which is no step
  expect({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}, "");
  expect({{"SLURM_STEP_NUM_TASKS", "many"}, {"SLURM_PROCID", "0"}}, "");
}
END_TEST

START_TEST(one_rank_of_a_launcher_that_is_understood_is_not_doubted) {
  for (const char* name : {"PMI_RANK", "PMI_FD", "PMI_PORT"})
    expect({{name, "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}, "");
}
END_TEST

START_TEST(steps_of_slurm_are_doubted_once) {
  expect({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}},
         "srun has started 4 processes, and each is a job of one rank, as it does not "
         "speak this MPI's protocol (PMI): use srun --mpi=pmi2");
  expect({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}}, "");
  expect({{"SLURM_STEP_NUM_TASKS", "4"}}, "");
}
END_TEST

// Within a step of Slurm, too.
START_TEST(open_mpis_launcher_is_named) {
  std::map<std::string, const char*> environment = {{"OMPI_COMM_WORLD_SIZE", "16"},
                                                    {"OMPI_COMM_WORLD_RANK", "0"},
                                                    {"SLURM_STEP_NUM_TASKS", "2"},
                                                    {"SLURM_PROCID", "0"}};
  const std::string text = doubt(environment);
  ck_assert_msg(text.starts_with("Open MPI's mpirun has started 16 processes, and each is a job"),
                "%s", text.c_str());
  environment["OMPI_COMM_WORLD_RANK"] = "1";
  expect(environment, "");
}
END_TEST

}  // namespace

int main() { return run_tests("lone_rank"); }
