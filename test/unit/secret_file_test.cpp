// secret_file.h: which files are taken, and what is said of the others.
#include "mplite/runtime/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "run_tests.h"

using namespace mplite;

namespace {

struct Fixture {
  std::string directory, path;
  SecretFile file;
  char error[1024] = "";
  Fixture() {
    char made[] = "/tmp/lite-secret.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(made));
    directory = made;
    path = directory + "/file";
  }
  ~Fixture() {
    const std::string command = "rm -rf " + directory;
    ck_assert_int_eq(std::system(command.c_str()), 0);
  }
  void write(const std::string& content, mode_t mode = 0600) {
    std::FILE* out = std::fopen(path.c_str(), "w");
    ck_assert_ptr_nonnull(out);
    std::fwrite(content.data(), 1, content.size(), out);
    std::fclose(out);
    ck_assert_int_eq(chmod(path.c_str(), mode), 0);
  }
  bool read() { return read_secret_file(path.c_str(), file, error, sizeof error); }
  void refused(const std::string& told) {
    alarm(5);
    ck_assert(!read());
    alarm(0);
    ck_assert(!file.there);
    const std::string sentence = "LITE_SECRET_FILE=" + path + " cannot be used: " + told;
    ck_assert_str_eq(error, sentence.c_str());
  }
};

START_TEST(private_file_of_allowed_length_is_taken) {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{32}, std::size_t{4096}})
    for (const mode_t mode : {0600u, 0400u}) {
      Fixture f;
      f.write(std::string(bytes, '\0'), mode);
      ck_assert_msg(f.read(), "%s", f.error);
      ck_assert(f.file.there);
    }
}
END_TEST

START_TEST(every_byte_counts_and_the_two_keys_are_apart) {
  Fixture f, g;
  f.write(std::string(32, 'a'));
  g.write(std::string(32, 'a') + "\n");
  ck_assert(f.read() && g.read());
  ck_assert_mem_ne(f.file.job_key, g.file.job_key, sizeof f.file.job_key);
  ck_assert_mem_ne(f.file.print_key, g.file.print_key, sizeof f.file.print_key);
  ck_assert_mem_ne(f.file.job_key, f.file.print_key, sizeof f.file.job_key);
  SecretFile again;
  ck_assert(read_secret_file(f.path.c_str(), again, f.error, sizeof f.error));
  ck_assert_mem_eq(f.file.job_key, again.job_key, sizeof again.job_key);
}
END_TEST

START_TEST(file_that_others_may_use_is_refused_with_mode_and_cure) {
  for (const mode_t mode : {0640u, 0604u, 0660u, 0644u, 0601u}) {
    Fixture f;
    f.write(std::string(32, 'a'), mode);
    char told[96];
    std::snprintf(told, sizeof told,
                  "its mode is %04o, so others than its owner may use it: chmod 600 ", mode);
    f.refused(told + f.path);
  }
}
END_TEST

START_TEST(file_of_another_user_is_refused) {
  if (geteuid() != 0) return;
  Fixture f;
  f.write(std::string(32, 'a'));
  ck_assert_int_eq(chown(f.path.c_str(), 4711, 4711), 0);
  f.refused("it belongs to user 4711, not to you (0) or root");
}
END_TEST

START_TEST(length_and_kind_are_checked) {
  Fixture f;
  f.refused("No such file or directory");
  f.write(std::string(15, 'a'));
  f.refused("it has fewer than 16 bytes; 32 are enough: head -c 32 /dev/urandom >" + f.path);
  f.write(std::string(4097, 'a'));
  f.refused("it has more than 4096 bytes; 32 are enough: head -c 32 /dev/urandom >" + f.path);
  ck_assert_int_eq(unlink(f.path.c_str()), 0);
  ck_assert_int_eq(mkfifo(f.path.c_str(), 0600), 0);
  f.refused("it is a named pipe, not a regular file");
  ck_assert_int_eq(unlink(f.path.c_str()), 0);
  ck_assert_int_eq(mkdir(f.path.c_str(), 0700), 0);
  f.refused("it is a directory, not a regular file");
}
END_TEST

START_TEST(without_a_file_there_is_no_fingerprint) {
  std::uint8_t share[kSecretBytes] = {1}, print[kFingerprintBytes], zero[kFingerprintBytes] = {};
  std::memset(print, 0xee, sizeof print);
  make_fingerprint(SecretFile(), share, print);
  ck_assert_mem_eq(print, zero, sizeof zero);
}
END_TEST

}  // namespace

int main() { return run_tests("secret_file"); }
