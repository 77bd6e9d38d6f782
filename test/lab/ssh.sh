# hosts: 2
# controllers: sigio
# ssh as the launcher: an sshd per host with keys of its own; mpiexec with hosts, and in the environment of a PBS job with a node file. Skipped where openssh-server is not installed.
. "$(dirname "$0")/lab.sh"

sshd=/usr/sbin/sshd
skip_without openssh-server "$sshd" ssh ssh-keygen

# ---- the daemons ----

ssh=$LAB_DIR/ssh
mkdir -p "$ssh"
chmod 700 "$ssh"
ssh-keygen -q -t ed25519 -N '' -f "$ssh/host_key" && ssh-keygen -q -t ed25519 -N '' -f "$ssh/user_key"
cp "$ssh/user_key.pub" "$ssh/authorized_keys"
cat >"$ssh/sshd_config" <<END
HostKey $ssh/host_key
AuthorizedKeysFile $ssh/authorized_keys
PidFile none
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
END
for host in 0 1; do printf 'h%s %s\n' "$host" "$(cat "$ssh/host_key.pub")"; done >"$ssh/known_hosts"
cat >"$ssh/config" <<END
IdentityFile $ssh/user_key
IdentitiesOnly yes
UserKnownHostsFile $ssh/known_hosts
StrictHostKeyChecking yes
BatchMode yes
END
# What a user has in ~/.ssh/config.
cat >"$ssh/ssh" <<END
#!/bin/sh
exec ssh -F "$ssh/config" "\$@"
END
chmod +x "$ssh/ssh"

daemons_log=$ssh/daemons.out
# Without PAM, which wants more than a container has, sshd refuses root where its password is locked.
printf 'root:*:::::::\nsshd:!:::::::\n' >"$ssh/shadow"
for host in 0 1; do
  # shellcheck disable=SC2016  # the inner shell's
  start_daemon "$host" sh -c 'mount -t tmpfs tmpfs /run && mkdir -m 0755 /run/sshd && mount --bind "$1" /etc/shadow && shift && exec "$@"' \
    sh "$ssh/shadow" "$sshd" -D -e -f "$ssh/sshd_config"
done
hosts_answer() {
  local host
  for host in 0 1; do [ "$(timeout 10 "$LAB_ENTER" 0 "$ssh/ssh" "h$host" hostname 2>>"$daemons_log")" = "h$host" ] || return 1; done
}
await_daemons hosts_answer
up=$?
result "$up" "an sshd per host answers ($(ssh -V 2>&1))" "$daemons_log"
[ "$up" = 0 ] || { plan; exit 0; }

# ---- jobs: job() of lab.sh, started by ssh ----

cat >"$ssh/mpiexec" <<END
#!/bin/sh
prefix=\$1
shift
exec "$LAB_ENTER" 0 "\$prefix/bin/mpiexec" -launcher-exec "$ssh/ssh" "\$@"
END
# The same in a job of PBS, for which mpiexec takes ranks and hosts from the node file.
cat >"$ssh/in-pbs" <<END
#!/bin/sh
prefix=\$1
shift 3
PBS_ENVIRONMENT=PBS_BATCH PBS_JOBID=1.h0 PBS_NODEFILE=$ssh/nodes
export PBS_ENVIRONMENT PBS_JOBID PBS_NODEFILE
exec "$LAB_ENTER" 0 "\$prefix/bin/mpiexec" -launcher-exec "$ssh/ssh" "\$@"
END
chmod +x "$ssh/mpiexec" "$ssh/in-pbs"
LAB_MPIEXEC=$ssh/mpiexec

LITE_STATS=1 job 60 4 -hosts h0,h1 -ppn 2 -verbose "$programs/messages" 5 1000
ranks_talked 4 && grep "Launch arguments: $ssh/ssh -x h1 " "$out" >"$ssh/launched"
verdict $? "mpiexec -hosts h0,h1 -ppn 2: four ranks, those on the other host started by ssh"
before=$(bytes_sent 0)
LITE_STATS=1 job 60 2 -hosts h0,h1 -ppn 1 "$programs/messages" 5 1000 100000 2000000
ranks_talked 2
verdict $? "messages of every protocol between the hosts"
bytes=$(($(bytes_sent 0) - before))
[ "$bytes" -gt 10500000 ]
verdict $? "they crossed the link ($bytes bytes)"

job 60 2 -hosts h0,h1 -ppn 1 "$programs/dynamic" spawn 3
passed spawn
verdict $? "processes are spawned by ssh"

trouble_job recv -hosts h0,h1 -ppn 1 -disable-auto-cleanup
[ "$code" != 0 ] && [ "$elapsed_ms" -lt 20000 ] && grep '^error: MPI_Recv' "$out" >"$ssh/error" &&
  grep 'rank 1 on host h1 ' "$out" >"$ssh/error"
verdict $? "a receive from a killed rank is an MPI error that names it ($elapsed_ms ms)"

printf 'h0\nh0\nh1\n' >"$ssh/nodes"
LAB_MPIEXEC=$ssh/in-pbs
LITE_STATS=1 job 60 3 "$programs/messages" 5 1000
ranks_talked 3
verdict $? "in the environment of a PBS job: a rank for each line of the node file, by ssh"
plan
