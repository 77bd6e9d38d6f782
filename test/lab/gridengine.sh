# hosts: 2
# controllers: sigio
# Grid Engine as the batch system: a qmaster and an execd per host, with a root, a cell and a spool of their own; jobs of qsub start ranks on both hosts by qrsh. Skipped where Debian's packages are not installed.
. "$(dirname "$0")/lab.sh"

tools=/usr/lib/gridengine defaults=/usr/share/gridengine
skip_without gridengine sge_qmaster sge_execd qconf qsub qhost qstat "$tools/spooldefaults"
PATH=$PATH:/usr/sbin

# ---- the daemons ----

sge=$LAB_DIR/sge
mkdir -p "$sge/default/common" "$sge/spool/qmaster/job_scripts"
for part in bin lib util utilbin; do ln -s "/var/lib/gridengine/$part" "$sge/$part"; done
cat >"$sge/default/common/bootstrap" <<END
admin_user              none
default_domain          none
ignore_fqdn             true
spooling_method         classic
spooling_lib            libspoolc
spooling_params         $sge/default/common;$sge/spool/qmaster
binary_path             /usr/sbin
qmaster_spool_dir       $sge/spool/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
END
echo h0 >"$sge/default/common/act_qmaster"
# SGE_ND: the daemons stay in the foreground.
export SGE_ROOT=$sge SGE_CELL=default SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445 SGE_ND=1
on_master() { timeout -k 5 30 "$LAB_ENTER" 0 "$@"; }
# Root's jobs run; what a job is made of is Debian's otherwise.
sed -e "s,^execd_spool_dir .*,execd_spool_dir $sge/spool," -e 's/^min_\([ug]id\) .*/min_\1 0/' "$defaults/default-configuration" >"$sge/configuration"
{
  on_master "$tools/spoolinit" classic libspoolc "$sge/default/common;$sge/spool/qmaster" init
  on_master "$tools/spooldefaults" configuration "$sge/configuration"
  on_master "$tools/spooldefaults" complexes "$defaults/util/resources/centry"
  on_master "$tools/spooldefaults" usersets "$defaults/util/resources/usersets"
  on_master "$tools/spooldefaults" managers root
} >"$sge/set-up.log" 2>&1

daemons_log=$sge/daemons.out
answers_qconf() { timeout -k 5 10 "$LAB_ENTER" 0 qconf -ah h1; }
hosts_up() { [ "$(timeout -k 5 10 "$LAB_ENTER" 0 qhost 2>"$out" | grep -c '^h[01] .* lx-')" = 2 ]; }
start_daemon 0 sge_qmaster
await_daemons answers_qconf >>"$sge/set-up.log" 2>&1 && on_master qconf -as h0 >>"$sge/set-up.log" 2>&1 &&
  start_daemon 0 sge_execd && start_daemon 1 sge_execd && await_daemons hosts_up
up=$?
cat "$daemons_log" >>"$sge/set-up.log"
result "$up" "sge_qmaster and an sge_execd per host start ($(on_master qstat -help 2>"$out" | head -n 1))" "$sge/set-up.log"
[ "$up" = 0 ] || { plan; exit 0; }

# A parallel environment as docs/launchers.md has it, a queue with it on both hosts, and a scheduler that looks every second.
cat >"$sge/environment" <<'END'
pe_name            mpi
slots              64
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    $round_robin
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
END
{
  on_master qconf -Ap "$sge/environment"
  on_master qconf -sq >"$sge/template"
  sed -e 's/^qname .*/qname all.q/' -e 's/^hostlist .*/hostlist h0 h1/' -e 's/^pe_list .*/pe_list mpi/' -e 's/^slots .*/slots 8/' \
    -e 's/^load_thresholds .*/load_thresholds NONE/' "$sge/template" >"$sge/queue"
  on_master qconf -Aq "$sge/queue"
  on_master qconf -ssconf >"$sge/template"
  sed -e 's/^schedule_interval .*/schedule_interval 0:0:1/' -e 's/^\(flush_[a-z]*_sec\) .*/\1 1/' "$sge/template" >"$sge/scheduler"
  on_master qconf -Msconf "$sge/scheduler"
} >>"$sge/set-up.log" 2>&1
on_master qstat -f >"$out" 2>&1
[ "$(grep -c '^all.q@h[01] .* 0/0/8 ' "$out")" = 2 ]
result $? "a parallel environment and a queue on both hosts" "$sge/set-up.log"

# ---- jobs: job() of lab.sh, with qsub and mpiexec in the job ----

# The job's code is qsub's; its output comes from a file.
cat >"$sge/submit" <<END
#!/bin/sh
# submit PREFIX -n SLOTS ARGUMENTS of mpiexec…
prefix=\$1 slots=\$3
shift 3
rm -f "$sge/output"
"$LAB_ENTER" 0 qsub -sync y -b y -V -wd "$sge" -j y -o "$sge/output" -N mpi -pe mpi "\$slots" "\$prefix/bin/mpiexec" "\$@" >"$sge/submitted" 2>&1
code=\$?
cat "$sge/submitted" "$sge/output"
exit "\$code"
END
chmod +x "$sge/submit"
LAB_MPIEXEC=$sge/submit

LITE_STATS=1 job 60 4 -verbose "$programs/messages" 5 1000
ranks_talked 4
verdict $? "a job of qsub -pe mpi 4: four ranks by mpiexec without -n or hosts"
grep '^.*Launch arguments: .*/qrsh -inherit -V h[01] ' "$out" >"$sge/launched"
verdict $? "those on the other host were started by qrsh -inherit"
# Grid Engine chooses which host comes first, and with that who sends.
sent_by_both() { echo $(($(bytes_sent 0) + $(bytes_sent 1))); }
before=$(sent_by_both)
LITE_STATS=1 job 60 2 "$programs/messages" 5 1000 100000 2000000
ranks_talked 2
verdict $? "messages of every protocol between the hosts"
bytes=$(($(sent_by_both) - before))
[ "$bytes" -gt 10500000 ]
verdict $? "they crossed the link ($bytes bytes)"

job 60 2 "$programs/dynamic" spawn 3
passed spawn
verdict $? "processes are spawned in a job"

# ---- a rank dies ----

trouble_job recv -disable-auto-cleanup
[ "$code" != 0 ] && [ "$elapsed_ms" -lt 30000 ] && grep '^error: MPI_Recv' "$out" >"$sge/error" &&
  grep 'rank 1 on host h[01] ' "$out" >"$sge/error"
verdict $? "a receive from a killed rank is an MPI error that names it, and the job fails ($elapsed_ms ms)"
plan
