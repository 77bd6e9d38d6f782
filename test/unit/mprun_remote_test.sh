#!/bin/bash
# lite-mprun with ranks on other hosts: placement, output, input, ends, and what a remote shell's command line tells. The remote shell is one without a network
# (LITE_RSH), which starts in another directory and with an empty environment, as on another host. In the build directory.
# shellcheck disable=SC2016  # what the ranks' shells expand
set -u
launcher=${LITE_MPRUN:-$PWD/lite-mprun} self=$PWD/test/unit/mprun_test
# shellcheck source=test/unit/verdict.sh
. "$(dirname "$0")/verdict.sh"
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
cat >"$work/rsh" <<END
#!/bin/bash
printf '%s\n' "\$*" >>"$work/commands"
host=\$1
shift
[ "\$host" != down ] || { echo "rsh: no route to \$host" >&2; exit 255; }
cd / && exec env -i PATH="\$PATH" HOME=/ ON_HOST="\$host" sh -c "\$*"
END
chmod +x "$work/rsh"
export LITE_RSH="$work/rsh" LITE_IFACE=lo LITE_PROFILE=none
unset MPLITE_SIZE MPLITE_RANK MPLITE_FD ON_HOST

run() { # ARGUMENT…  -> $text, $status; standard input from our caller
  : >"$work/commands"
  status=0
  text=$(timeout 30 "$launcher" "$@" 2>&1) || status=$?
}

printf 'here # a comment\n\nthere:2\n%s\n' "$(hostname)" >"$work/machines"
show="echo rank \$MPLITE_RANK of \$MPLITE_SIZE on \${ON_HOST:-this} in \$PWD with \${LITE_FRAME:-nothing} rsh \${LITE_RSH:-unset}"
cd "$work" || exit 2
run -n 6 -machinefile machines -x LITE_FRAME=8K sh -c "$show" </dev/null
verdict ranks_are_placed_in_the_order_of_the_file test "$status" = 0
for line in "rank 0 of 6 on here" "rank 1 of 6 on there" "rank 2 of 6 on there" "rank 3 of 6 on this" "rank 4 of 6 on here" "rank 5 of 6 on there"; do
  verdict ranks_are_placed_in_the_order_of_the_file says "$line in $work with 8K rsh unset"
done
verdict command_lines_tell_nothing_but_the_agent test "$(sort -u "$work/commands")" = "$(printf "%s exec '%s' --agent\n" here "$launcher" there "$launcher")"

for controller in sigio thread; do
  run -n 4 -machinefile machines -x LITE_CONTROLLER=$controller "$self" ring </dev/null
  verdict ranks_meet_across_hosts test "$status" = 0
  verdict ranks_meet_across_hosts says "ring of 4 by $controller"
done

# What a rank's environment has: neither the addresses, of which the secret is made, nor anything of the launcher's but LITE_*.
printf 'here\n' >"$work/machines"
NOT_FOR_RANKS=1 run -n 1 -machinefile machines sh -c 'tr "\0" "\n" </proc/self/environ' </dev/null
verdict ranks_get_nothing_but_lite_settings test \
  "$(sed 's/=.*//' <<<"$text" | grep -vxE 'LITE_MPRUN|OLDPWD|SHLVL|_' | sort | tr '\n' ' ')" = "HOME LITE_IFACE LITE_PROFILE MPLITE_FD MPLITE_RANK MPLITE_SIZE ON_HOST PATH PWD "

# Wherever the one that fails is, the others end, on their hosts, too: nobody is left who sleeps.
nap=60.$$
for places in 'here there' "here $(hostname)" "$(hostname) there"; do
  tr ' ' '\n' <<<"$places" >"$work/machines"
  run -n 2 -machinefile machines sh -c "test \$MPLITE_RANK = 1 && { sleep 0.3; exit 7; }; exec sleep $nap" </dev/null
  verdict "first_failure_ends_the_others $places" test "$status" = 7
  verdict "first_failure_ends_the_others $places" says "rank 1"
  verdict "first_failure_ends_the_others $places" test -z "$(pgrep -f "^sleep $nap")"
done
printf 'here\nthere\n' >"$work/machines"
run -n 2 -machinefile machines sh -c 'test $MPLITE_RANK = 0 && kill -9 $$; exec sleep 60' </dev/null
verdict killed_rank_is_told test "$status" = 137
verdict killed_rank_is_told says "signal 9"
run -n 2 -machinefile machines ./no-such-program </dev/null
verdict missing_program_is_told test "$status" = 127
verdict missing_program_is_told says "./no-such-program: No such file"

run -n 2 -machinefile machines sh -c 'cat | wc -c' < <(head -c 3000000 /dev/zero)
verdict input_goes_to_rank_0 test "$(sort -n <<<"$text" | tr '\n' ' ')" = "0 3000000 "
run -n 2 -machinefile machines sh -c 'head -c 2000000 /dev/zero | tr "\0" x' </dev/null
verdict output_arrives_whole test "${#text}" = 4000000

printf 'here\ndown\n' >"$work/machines"
run -n 2 -machinefile machines sleep 60 </dev/null
verdict unreachable_host_is_told test "$status" = 255
verdict unreachable_host_is_told says "rank 1: the remote shell to down (LITE_RSH) ended before the rank did"
LITE_RSH=./no-such-shell run -n 1 -machinefile machines true </dev/null
verdict missing_shell_is_told says "LITE_RSH names the command"

# What a remote shell says of its own, before the agent speaks or in its place. A host's name chooses.
cat >"$work/talker" <<'END'
#!/bin/bash
case $1 in
  motd) printf 'Welcome to \033[1mmotd\033[0m\r\n\r\n  Last login: today\n' ;;
  early) printf 'no newline at the end' ;;
  garbage) exec yes 'rubbish and rubbish' ;;
  binary) exec cat /dev/urandom ;;
  mute) exit 0 ;;
  refuses) echo 'This account is not available.'; exit 1 ;;
  hangs) exec sleep 60 ;;
  half) printf 'Password: '; exec sleep 60 ;;
  closes) exec >&- </dev/null sleep 60 ;;
  mixes) shift; sh -c "$*" | { IFS= read -r -d '' -n 22 word; printf '%s' "$word"; echo 'a line between the frames'; cat; }; exit ;;
esac
exec "${0%/*}/rsh" "$@"
END
chmod +x "$work/talker"
talk() { # HOST  -> $text, $status, $seconds: a rank here and one there
  local begin
  printf '%s\n%s\n' "$(hostname)" "$1" >"$work/machines"
  begin=$(date +%s)
  LITE_RSH=$work/talker LITE_CONNECT_TIMEOUT=2s run -n 2 -machinefile machines "$self" ring </dev/null
  seconds=$(($(date +%s) - begin))
}
for host in motd early; do
  talk $host
  verdict "banner_does_no_harm $host" test "$status" = 0
  verdict "banner_does_no_harm $host" says "ring of 2 by"
done
verdict banner_is_shown says "lite-mprun: early says: no newline at the end"
talk motd
verdict banner_is_shown says "lite-mprun: motd says: Welcome to ?[1mmotd?[0m"
verdict banner_is_shown says "lite-mprun: motd says:   Last login: today"
for host in garbage binary; do
  talk $host
  verdict "endless_text_is_given_up $host" test "$status" = 1 -a "$seconds" -lt 10
  verdict "endless_text_is_given_up $host" says "rank 1: the remote shell to $host (LITE_RSH) says much, and not what lite-mprun --agent begins with"
  verdict "endless_text_is_given_up $host" test "${#text}" -lt 1500
done
talk garbage
verdict endless_text_is_shown says "  | rubbish and rubbish"
talk mute
verdict silent_end_is_told test "$status" = 1 -a "$seconds" -lt 10
verdict silent_end_is_told says "rank 1: the remote shell to mute (LITE_RSH) ended before the rank did"
talk refuses
verdict last_words_are_shown says "  | This account is not available."
for host in hangs half; do
  talk $host
  verdict "hanging_shell_is_given_up $host" test "$status" = 1 -a "$seconds" -lt 10
  verdict "hanging_shell_is_given_up $host" says "rank 1: the remote shell to $host (LITE_RSH) has not started lite-mprun --agent within 2.0 s (LITE_CONNECT_TIMEOUT)"
done
verdict hanging_shell_is_given_up says "  | Password: "
talk closes
verdict closed_output_is_told test "$status" = 1 -a "$seconds" -lt 10
verdict closed_output_is_told says "the remote shell to closes (LITE_RSH) has closed its output, but goes on"
talk mixes
verdict text_between_frames_is_told test "$status" = 1 -a "$seconds" -lt 10
verdict text_between_frames_is_told says "the remote shell to mixes (LITE_RSH) mixes something into what the agent says"
printf 'there\n' >"$work/machines"
LITE_CONNECT_TIMEOUT=soon run -n 1 -machinefile machines true </dev/null
verdict wrong_timeout_is_refused test "$status" = 2
verdict wrong_timeout_is_refused says LITE_CONNECT_TIMEOUT
text=$(printf 'hello\n' | timeout 10 "$launcher" --agent 2>&1) && status=0 || status=$?
verdict agent_is_for_lite_mprun_only test "$status" = 1
verdict agent_is_for_lite_mprun_only says "  | hello"

for wrong in 'a:0' 'a:x' '-oProxyCommand=x' ':3' '# nothing'; do
  printf '%s\n' "$wrong" >"$work/machines"
  run -n 1 -machinefile machines true </dev/null
  verdict "wrong_machine_file_is_refused $wrong" test "$status" = 2
done
run -n 1 -machinefile no-such-file true </dev/null
verdict missing_machine_file_is_told says "no-such-file: No such file"

# The launcher's end, however it comes, is that of its ranks: the last of them closes the pipe.
printf 'here\nthere\n' >"$work/machines"
for signal in TERM KILL; do
  coproc "$launcher" -n 2 -machinefile machines sh -c 'echo up; exec sleep 60' </dev/null 2>&1
  pid=$COPROC_PID
  exec {out}<&"${COPROC[0]}" # our own: the shell closes its end as soon as it hears of the launcher's end
  read -r -t 20 -u "$out" _ && read -r -t 20 -u "$out" _
  kill -$signal "$pid"
  text=$(timeout 15 cat <&"$out") && status=0 || status=$?
  exec {out}<&-
  wait "$pid" 2>/dev/null
  left=$(pgrep -f "^$launcher --agent" | wc -l)
  verdict "ended_launcher_ends_its_ranks $signal" test "$status:$left" = 0:0
done

# Also of one that takes SIGTERM for no end, and goes on writing.
printf 'here\n' >"$work/machines"
coproc "$launcher" -n 1 -machinefile machines sh -c 'trap "" TERM; while :; do echo up; sleep 0.5; done' </dev/null 2>&1
pid=$COPROC_PID
exec {out}<&"${COPROC[0]}"
read -r -t 20 -u "$out" _
kill -KILL "$pid"
exec {out}<&-
wait "$pid" 2>/dev/null
for ((turn = 0; turn < 60; turn++)); do
  pgrep -f "^$launcher --agent" >/dev/null || break
  sleep 0.1
done
verdict rank_that_goes_on_is_killed test "$turn" -lt 60

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
