#!/bin/bash
# lite-info's options: the versions as the sources have them, counters explained and summed up, and what it refuses. In the build directory.
set -u
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
passed=0 failed=0
run() { # ARGUMENT…
  status=0
  text=$(./lite-info "$@" 2>&1) || status=$?
}

version=$(sed -nE 's/^AC_INIT\(\[ch_lite\], \[([^]]*)\]\)$/\1/p' "$top/configure.ac")
wire=$(sed -nE 's/.* kWireVersion = ([0-9]+);$/\1/p' "$top/src/mplite/net/frame.h")
status=0 text=
verdict the_sources_have_versions test -n "$version" -a -n "$wire"
run --version
verdict version_is_told test "$status:$text" = "0:ch_lite $version, wire version $wire"
# whoever asks for the version may have a setting that is wrong with it
LITE_FRAME=nonsense run --version
verdict version_is_told_whatever_the_settings test "$status:$text" = "0:ch_lite $version, wire version $wire"
run --json
verdict json_has_the_versions says "\"version\": \"$version\","
verdict json_has_the_versions says "\"wire_version\": $wire,"
verdict json_is_json python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$text"
run --help
verdict help_names_the_options test "$status" = 0
for option in --json --markdown --man --version --explain --stats; do verdict "help_names_the_options $option" says "$option"; done
run --versions
verdict wrong_option_is_refused test "$status" = 2
LITE_FRAME=nonsense run
verdict wrong_setting_is_told test "$status" = 1
verdict wrong_setting_is_told says "LITE_FRAME=\"nonsense\""

is_json() { python3 -m json.tool >/dev/null <<<"$text"; }
is_usage_error() { test "$status" = 2 && says "$1" && says "lite-info --help"; }

# also with a setting that is wrong
LITE_FRAME=nonsense run --explain
verdict counters_are_explained test "$status" = 0
verdict counters_are_explained says "  unexpected_bytes       bytes        Data of the messages that arrived before"
verdict counters_are_explained says "Connections. They are made when"
run --explain --json
verdict counters_are_explained_to_programs test "$status" = 0
verdict counters_are_explained_to_programs is_json
verdict counters_are_explained_to_programs says '"name": "unexpected_bytes", "group": "Unexpected messages", "unit": "bytes"'
json=$text
run --json --explain
verdict order_of_options_does_not_matter test "$text" = "$json"

# a job's output, as the library writes the lines: every counter that --explain lists, with the value 7
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
counters=$(sed -nE 's/.*"name": "([a-z_]+)", "group".*/\1=7/p' <<<"$json" | tr '\n' ' ')
line() { echo "lite-stats rank=$1 ranks=$2 job=$3 controller=sigio ${counters}LITE_CREDITS=1M"; }
{
  echo "the program's own words"
  line 0 2 10.0.0.1:4711
  echo "[1] $(line 1 2 10.0.0.1:4711 | sed 's/credit_stalls=7/credit_stalls=1900/')"
} >"$work/job"
run --stats "$work/job"
verdict lines_of_a_job_are_summed_up test "$status" = 0
verdict lines_of_a_job_are_summed_up says "Job 10.0.0.1:4711: 2 ranks, controller sigio; LITE_CREDITS=1M."
verdict lines_of_a_job_are_summed_up says "- Credit was out 1,907 times"
verdict lines_of_a_job_are_summed_up says "Raise LITE_CREDITS (now 1M)"
summary=$text
run --stats <"$work/job"
verdict standard_input_is_read test "$status:$text" = "0:$summary"
run --stats - <"$work/job"
verdict standard_input_is_read test "$status:$text" = "0:$summary"
run --json --stats "$work/job"
verdict lines_of_a_job_are_summed_up_for_programs test "$status" = 0
verdict lines_of_a_job_are_summed_up_for_programs is_json
verdict lines_of_a_job_are_summed_up_for_programs says '"credit_stalls": {"total": 1907, "min": 7, "min_rank": 0, "max": 1900, "max_rank": 1'
line 0 1 10.0.0.2:99 >"$work/other"
run --stats "$work/job" "$work/other"
verdict several_files_and_jobs says "2 jobs, by the address of rank 0."
verdict several_files_and_jobs says "Job 10.0.0.2:99: 1 rank"

{
  line 0 2 10.0.0.1:4711
  line 1 2 10.0.0.1:4711 | cut -c1-200
} >"$work/cut"
run --stats "$work/cut"
verdict damaged_line_is_told test "$status" = 1
verdict damaged_line_is_told says "lite-info: $work/cut:2: "
verdict damaged_line_is_told says "No line of rank 1: "
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "lite-stats rank=$i"; done >"$work/cut"
run --stats "$work/cut"
verdict many_damaged_lines_are_counted test "$status" = 1
verdict many_damaged_lines_are_counted says "2 more lines are damaged"
echo hello >"$work/none"
run --stats "$work/none"
verdict output_without_lines_is_told test "$status" = 1
verdict output_without_lines_is_told says "run the job with LITE_STATS=1, and keep its standard error"
run --stats "$work/absent" "$work/job"
verdict missing_file_is_told test "$status" = 1
verdict missing_file_is_told says "lite-info: $work/absent: No such file or directory"
verdict missing_file_is_told says "Job 10.0.0.1:4711: 2 ranks"
run --stats "$work"
verdict directory_is_told says "lite-info: $work: Is a directory"
run --stats --markdown
verdict wrong_combination_is_refused is_usage_error "--markdown with --stats"
run --explain --man
verdict wrong_combination_is_refused is_usage_error "--man with --explain"
run --explain --stats
verdict wrong_combination_is_refused is_usage_error "one of them at a time"
run --explain "$work/job"
verdict explain_takes_no_file is_usage_error "$work/job: --explain takes no file"

run --job 4711 4712
verdict job_takes_one_process is_usage_error "4712: --job takes one process's number"
run --job --stats
verdict wrong_combination_is_refused is_usage_error "--job with --stats"
run --job 0x10
verdict process_is_a_number is_usage_error "0x10: --job takes"
run --job 1073741823
verdict missing_process_is_told test "$status" = 1
verdict missing_process_is_told says "there is no process 1073741823 on this host"
run --job $$
verdict process_without_ranks_is_told test "$status" = 1
verdict process_without_ranks_is_told says "is no rank of ch_lite"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
