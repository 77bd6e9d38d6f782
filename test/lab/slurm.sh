# hosts: 2
# controllers: sigio
# Slurm as the launcher: slurmctld and a slurmd per host, with a munged, a configuration and folders of their own; srun starts two ranks on each host. Skipped where Debian's packages are not installed.
. "$(dirname "$0")/lab.sh"

# An installation with another PMIx than MPICH's own speaks nothing else.
if "$LAB_PREFIX/bin/mpichversion" | grep -q -- '--with-pmix='; then pmi=pmix; else pmi=pmi2; fi
skip_without slurm-wlm munged slurmctld slurmd srun sinfo
PATH=$PATH:/usr/sbin

# ---- the daemons ----

slurm=$LAB_DIR/slurm
mkdir -p "$slurm/state" "$slurm/h0/tmp" "$slurm/h1/tmp" "$slurm/tmp"
head -c 128 /dev/urandom >"$slurm/munge.key"
chmod 600 "$slurm/munge.key"
cat >"$slurm/slurm.conf" <<END
ClusterName=lab
SlurmctldHost=h0($LAB_ADDR_0)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/%n
TmpFS=$slurm/tmp
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MailProg=/bin/true
MpiDefault=none
KillWait=5
NodeName=h0 NodeAddr=$LAB_ADDR_0 CPUs=64
NodeName=h1 NodeAddr=$LAB_ADDR_1 CPUs=64
PartitionName=all Nodes=ALL Default=YES
END
# slurmd of 22.05 does not start where it finds no cgroups, as in a network namespace, unless it is told a version of them; it uses
# none of them here. Later ones can be told so.
case $(slurmd -V) in
  *' 22.'*) echo CgroupPlugin=cgroup/v1 ;;
  *) echo CgroupPlugin=disabled ;;
esac >"$slurm/cgroup.conf"
export SLURM_CONF=$slurm/slurm.conf

daemons_log=$slurm/daemons.out
# --force: its folder is below /tmp, where everybody may write. On a host of the lab, so that the lab ends it if we cannot.
start_daemon 0 munged --force --foreground --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" \
  --pid-file="$slurm/munged.pid" --log-file="$slurm/munged.log" --seed-file="$slurm/munge.seed"
wait_for "$slurm/munge.socket" 20
start_daemon 0 slurmctld -D
# Files of the same name on all hosts of a job: Slurm's PMIx has some, and MPICH 5 names its shared memory by Slurm's number of the
# job, which begins at 1 here, and leaves it behind when the job is killed. Only the daemon and its jobs see the mounts.
for host in 0 1; do
  # shellcheck disable=SC2016  # the inner shell's
  start_daemon "$host" sh -c 'mount --bind "$1" "$2" && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D' sh "$slurm/h$host/tmp" "$slurm/tmp"
done
nodes_up() { [ "$(timeout 5 "$LAB_ENTER" 0 sinfo -h -N -o %t 2>"$out" | grep -c '^idle$')" = 2 ]; }
await_daemons nodes_up
up=$?
result "$up" "munged, slurmctld and a slurmd per host start ($(srun --version))" "$daemons_log"
[ "$up" = 0 ] || { plan; exit 0; }

# ---- jobs: job() of lab.sh, with srun in place of mpiexec ----

# srun ends with 128 and the signal that has ended a task, as timeout does when a job hangs.
cat >"$slurm/srun" <<END
#!/bin/sh
shift
"$LAB_ENTER" 0 srun --mpi=$pmi --nodes=2 "\$@"
code=\$?
[ "\$code" -lt 128 ] || code=100
exit "\$code"
END
chmod +x "$slurm/srun"
LAB_MPIEXEC=$slurm/srun
stat_over() { # RANK FIELD FLOOR
  local value
  value=$(stat_of "$out" "$1" "$2")
  [ "${value:-0}" -ge "$3" ]
}

# Ranks 0 and 2 on h0, 1 and 3 on h1. A connection carries data only after both sides have proved that they know the job's secret.
before=$(bytes_sent 0)
LITE_STATS=1 job 60 4 --distribution=cyclic "$programs/messages" 5 1000 100000 2000000
passed messages && stat_over 0 short_msgs 5 && stat_over 0 eager_msgs 5 &&
  stat_over 0 rndv_msgs 5 && stat_over 0 connections 1 && stat_over 1 connections 1
verdict $? "srun -n 4 --mpi=$pmi: messages of every protocol between the hosts, proved to by the job's secret"
bytes=$(($(bytes_sent 0) - before))
[ "$bytes" -gt 10500000 ]
verdict $? "they crossed the link ($bytes bytes)"

LITE_STATS=1 job 60 4 --ntasks-per-node=2 "$programs/messages" 5 10000
short_bytes=$(stat_of "$out" 0 short_bytes)
passed messages && [ "${short_bytes:-50000}" -lt 10000 ]
verdict $? "ranks on one host talk through shared memory ($short_bytes bytes by the device)"

runs=0
for ((i = 0; i < 5; i++)); do
  job 20 4 "$programs/messages" 0
  if [ "$code" != 0 ]; then break; fi
  runs=$((runs + 1))
done
[ "$runs" = 5 ]
verdict $? "three ranks on one host and one on the other start, $runs times of 5"

# Without the protocol each process is a job of one rank.
code=0
timeout -k 10 60 "$LAB_ENTER" 0 srun --mpi=none --nodes=2 --ntasks=4 "$programs/pingpong" >"$out" 2>&1 </dev/null || code=$?
[ "$(grep -c '^ch_lite: srun has started 4 processes, and each is a job of one rank, .*: use srun --mpi=pmi2$' "$out")" = 1 ]
verdict $? "srun without --mpi: said once, with the cure"

# ---- jobs that connect, and spawn ----

if [ "$pmi" = pmi2 ]; then
  job 60 2 "$programs/dynamic" accept "$LAB_DIR/port" 1 &
  accepts=$!
  (
    out=$LAB_DIR/caller
    job 60 2 "$programs/dynamic" connect "$LAB_DIR/port" 1
  )
  wait "$accepts"
  checks_hold accept "$out" && checks_hold connect "$LAB_DIR/caller"
  verdict $? "two jobs of srun connect by a port"

  # The step of the spawned processes is beside the one that spawns, on processors that this one holds as well.
  code=0
  SLURM_OVERLAP=1 timeout -k 10 60 "$LAB_ENTER" 0 salloc --quiet --nodes=2 --ntasks=8 \
    srun --mpi=pmi2 --nodes=1 --ntasks=1 "$programs/dynamic" spawn 3 >"$out" 2>&1 </dev/null || code=$?
  passed spawn
  verdict $? "processes are spawned in an allocation that has room for them"
fi

# ---- the secret file ----

for file in secret other; do
  head -c 32 /dev/urandom >"$slurm/$file"
  chmod 600 "$slurm/$file"
done
LITE_SECRET_FILE=$slurm/secret LITE_STATS=1 job 60 4 --distribution=cyclic "$programs/messages" 3 1000
passed messages && stat_over 0 connections 1
verdict $? "with LITE_SECRET_FILE the ranks talk"

# Rank 1 with a setting of its own; the job ends by an error, soon, and one line tells why.
rank_1_with() { # SENTENCE VARIABLE=VALUE TEXT…
  local text told=0
  # shellcheck disable=SC2016  # the variables of the task's shell
  timed_job 60 4 --distribution=cyclic sh -c '[ "$SLURM_PROCID" != 1 ] || export "$1"; shift; exec "$@"' sh "$2" "$programs/messages" 3 1000
  ! hung && [ "$code" != 0 ] && [ "$elapsed_ms" -lt 10000 ] && [ "$(grep -c '^ch_lite: ' "$out")" = 1 ] || told=1
  for text in "${@:3}"; do grep '^ch_lite: ' "$out" | grep -F -- "$text" >/dev/null || told=1; done
  verdict "$told" "$1 ($elapsed_ms ms)"
}
rank_1_with "a secret file on one rank only is told by rank and host" "LITE_SECRET_FILE=$slurm/other" \
  "rank 0 on host h0 has no LITE_SECRET_FILE, and rank 1 on host h1 has one"
export LITE_SECRET_FILE=$slurm/secret
rank_1_with "different secret files are told by rank and host" "LITE_SECRET_FILE=$slurm/other" \
  "LITE_SECRET_FILE differ between rank 0 on host h0 and rank 1 on host h1"
unset LITE_SECRET_FILE
rank_1_with "a rank that cannot start is told by rank and host, and ends the job" "LITE_CREDITS=few" \
  "rank 1 on host h1 cannot start" 'LITE_CREDITS="few" is not allowed'

# ---- a rank dies ----

# srun leaves the others alone when one is killed: it is the library's own error that ends the job.
rank_dies() { # CASE SENTENCE PATTERN
  trouble_job "$1"
  ! hung && [ "$code" != 0 ] && [ "$elapsed_ms" -lt 20000 ] && grep -E "$3" "$out" >/dev/null &&
    grep -E 'rank 1 on host h1 \(10\.77\.0\.2 port [0-9]+\)' "$out" >/dev/null
  verdict $? "$2 ($elapsed_ms ms)"
}
rank_dies recv "a receive from a killed rank is an MPI error that names it" '^error: MPI_Recv'
rank_dies fatal "with MPI_ERRORS_ARE_FATAL a killed rank ends the job, and is named" '^ch_lite'
timed_job 60 4 "$programs/trouble" recv "$LAB_DIR/unused"
! hung && [ "$code" != 0 ] && [ "$elapsed_ms" -lt 10000 ] && grep -q '^trouble: want' "$out"
verdict $? "MPI_Abort ends the job ($elapsed_ms ms)"
plan
