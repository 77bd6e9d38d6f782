#!/bin/bash
# scripts/install-device on MPICH-1 trees: recognises, refuses, drops in, is idempotent, and --remove restores. The trees are made of the files that it looks for,
# and autoreconf is one that only leaves its mark; the real thing is docs/mpich1.md. On MPICH-4 trees: which versions it takes; the rest is quickstart's.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/unit/verdict.sh
. "$top/test/unit/verdict.sh"
# shellcheck source=test/unit/mpich_tree.sh
. "$top/test/unit/mpich_tree.sh"
work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
printf '#!/bin/sh\necho run >>%s/autoreconf.runs\necho made >configure\nmkdir -p build-aux autom4te.cache\n' "$work" >"$work/bin/autoreconf"
for tool in automake libtoolize pkg-config; do printf '#!/bin/sh\n' >"$work/bin/$tool"; done
chmod +x "$work"/bin/*
export PATH=$work/bin:$PATH

tree() { # NAME VERSION
  local t=$work/$1 file
  rm -rf "$t"
  for file in configure Makefile.in util/mpirun.args.in mpid/ch2/adi2init.c mpid/ch2/packets.h mpid/ch2/chnrndv.c mpid/ch2/mpiddevbase.h mpid/util/queue.c mpid/ch_p4/chdef.h; do
    mkdir -p "$t/$(dirname "$file")"
    echo "the host's $file" >"$t/$file"
  done
  printf '\n\t\t\t  Portable MPI Model Implementation of MPI\n\n\t\t\t Version %s, November, 2005\n' "$2" >"$t/README"
}
install() { # ARGUMENT…
  status=0
  text=$("$top/scripts/install-device" "$@" 2>&1) || status=$?
}
refuses() { # WHAT-IT-SAYS; the tree stays as it was
  [ "$status" = 1 ] && says "$1" && diff -r "$work/before" "$work/mpich" >/dev/null
}
# Or automake or make fails there, long after this script: what Makefile.am includes, and what Makefile and pages are made of.
brings_what_automake_reads() { # PACKAGE
  local file
  for file in $(sed -n 's/^include //p' "$top/Makefile.am") $(grep -ohE '(docs|src|packaging)/[a-z0-9_./-]+\.in\b' "$top/configure.ac" "$top/Makefile.am"); do
    [ -s "$1/$file" ] || return 1
  done
}
before() { rm -rf "$work/before" && cp -a "$work/mpich" "$work/before"; }

tree mpich 1.2.7p1
before
install "$work/mpich"
verdict drops_in test "$status" = 0
verdict drops_in diff -r -x ch_lite "$work/before" "$work/mpich"
for file in setup_ch_lite Makefile.in channel.h chdef.h chconfig.h chpackflow.h mpid_time.h litepriv.c mpirun.lst mpirun.ch_lite.in install_ch_lite \
  lite/configure.ac lite/Makefile.am lite/configure lite/src/ch_lite/mpich1/channel_host.h lite/src/mplite/engine/engine.cpp; do
  verdict "drops_in $file" test -s "$work/mpich/mpid/ch_lite/$file"
done
verdict brings_what_automake_reads brings_what_automake_reads "$work/mpich/mpid/ch_lite/lite"
verdict setup_can_be_run test -x "$work/mpich/mpid/ch_lite/setup_ch_lite"
verdict leaves_out_the_other_host test ! -e "$work/mpich/mpid/ch_lite/lite/src/ch_lite/ch4"

# Nothing to do the second time; what a build has left stays; what is not ours any more goes.
touch "$work/mpich/mpid/ch_lite/litepriv.o" "$work/mpich/mpid/ch_lite/Makefile" "$work/mpich/mpid/ch_lite/lite/src/mplite/engine/engine.o"
touch "$work/mpich/mpid/ch_lite/older.c"
touch -d '2 days ago' "$work/mpich/mpid/ch_lite/channel.h"
install "$work/mpich"
verdict is_idempotent says "files copied: device 0, engine 0"
verdict is_idempotent test "$(wc -l <"$work/autoreconf.runs")" = 1
verdict is_idempotent test "$work/mpich/mpid/ch_lite/setup_ch_lite" -nt "$work/mpich/mpid/ch_lite/channel.h"
verdict keeps_the_build test -e "$work/mpich/mpid/ch_lite/litepriv.o" -a -e "$work/mpich/mpid/ch_lite/Makefile" -a -e "$work/mpich/mpid/ch_lite/lite/src/mplite/engine/engine.o"
verdict drops_what_is_no_longer_ours test ! -e "$work/mpich/mpid/ch_lite/older.c"

# A tree whose files have a second name (cp -al) shares nothing with the other one after a change.
echo "an older one" >"$work/mpich/mpid/ch_lite/lite/Makefile.am"
ln "$work/mpich/mpid/ch_lite/lite/Makefile.am" "$work/second_name"
chmod a-w "$work/mpich/mpid/ch_lite/lite/Makefile.am"
install "$work/mpich"
verdict replaces_files says "files copied: device 0, engine 1"
verdict replaces_files cmp "$top/Makefile.am" "$work/mpich/mpid/ch_lite/lite/Makefile.am"
verdict replaces_files grep -qx "an older one" "$work/second_name"

install --remove "$work/mpich"
verdict removes test "$status" = 0
verdict removes diff -r "$work/before" "$work/mpich"
install --remove "$work/mpich"
verdict removes_nothing_twice says "nothing to remove"

mkdir "$work/mpich/mpid/ch_lite"
echo "somebody else's" >"$work/mpich/mpid/ch_lite/chdef.h"
before
install "$work/mpich"
verdict refuses_a_device_of_somebody_else refuses "was not put there by this script"
install --remove "$work/mpich"
verdict does_not_remove_a_device_of_somebody_else refuses "was not put there by this script"

for version in 1.1.2 2.1; do
  tree mpich "$version"
  before
  install "$work/mpich"
  verdict "refuses_version $version" refuses "is MPICH $version"
done
tree mpich 1.2.7p1
rm "$work/mpich/mpid/ch2/packets.h"
before
install "$work/mpich"
verdict refuses_half_a_tree refuses "mpid/ch2/packets.h is missing"
rm -rf "$work/mpich" && mkdir -p "$work/mpich/src"
before
install "$work/mpich"
verdict refuses_what_is_no_mpich refuses "is not the top of an MPICH"
install "$work/nowhere"
verdict refuses_a_missing_directory says "is not a directory"

# MPICH 4: the versions that were tried, and every other one is refused by name before anything is touched.
tree4() { # VERSION
  rm -rf "$work/mpich"
  mpich_tree "$work/mpich" "$1"
}
for version in 3.4.3 4.0.20 4.1.4 4.2.0b1 4.4.0 5.0.0 5.0.10 5.1.0 ''; do
  tree4 "$version"
  before
  install "$work/mpich"
  verdict "refuses_mpich_4 ${version:-without a version}" refuses "is MPICH ${version:-of unknown version}"
  verdict "refuses_mpich_4 ${version:-without a version}" says "4.0.2"
  verdict "refuses_mpich_4 ${version:-without a version}" says "--force"
done
for version in 4.0 4.0.1 4.0.2 4.0.3 4.1 4.1.3 4.2.0 4.2.1 4.2.3 4.3.2 5.0.1 5.0.2; do
  tree4 "$version"
  install "$work/mpich"
  verdict "takes_mpich $version" says "1/4 copying the package and the glue"
done
verdict brings_what_automake_reads brings_what_automake_reads "$work/mpich/modules/lite"
tree4 4.4.0
install --force "$work/mpich"
verdict force_warns says "warning: ch_lite has never been tried with MPICH 4.4.0"
verdict force_goes_on says "1/4 copying the package and the glue"

# What it puts into the host's sources, by version: each edit where it belongs, and a tree that looks otherwise is refused.
full_tree4() { # VERSION
  rm -rf "$work/mpich"
  whole_mpich_tree "$work/mpich" "$1"
}
ours_in() {
  grep -c -e LITE_PRE_H_INCLUDED -e 'sendbuf == MPI_IN_PLACE' -e 'REQ_NULL, 0 }' -e 'ENABLE_GPU &&' -e lite_start -e FLAG_HAS_COME -e HYDU_fill_layers -e 'maxlen > 1' -e 'uint64_t .*pid' "$work/mpich/src/mpid/ch4/$1" || true
}
edits_are() { # PORTS REDUCE SHARED_MEMORY REQUESTS ABORT WINDOWS ERRORS LOCAL GROUPS END TYPES POSTS SEGMENT FLAGS SHARED_REDUCTIONS PLACES PROXIES GATHER ALLREDUCE REDUCTIONS
  local file counts=()
  for file in src/ch4_spawn.c src/ch4_coll_impl.h shm/src/shm_progress.h shm/posix/posix_rma.h src/ch4_globals.c src/ch4_win.c \
    ../../mpi/errhan/errutil.c ../../mpi/coll/reduce_local/reduce_local.c ../../mpi/group/group_impl.c \
    ../../mpi/init/init_util.c ../../mpi/datatype/typeutil.c src/mpidig_rma_callbacks.c shm/posix/posix_init.c shm/posix/release_gather/release_gather.h shm/posix/posix_coll_release_gather.h ../../pm/hydra/lib/utils/rankmap.c ../../pm/hydra/lib/utils/alloc.c; do
    counts+=("$(ours_in "$file")")
  done
  counts+=("$(grep -rh lite_extent "$work/mpich/src/binding/c/coll" | wc -l)")
  counts+=("$(grep -rl coll_fail "$work/mpich/src/mpi/coll/allreduce" | wc -l)")
  counts+=("$(grep -r -A 3 LITE_PRE_H_INCLUDED "$work/mpich/src/mpi/coll/op" | grep -c 'void MPIR_' || true)")
  [ "${counts[*]}" = "$*" ]
}
for row in "4.0.3 2 3 0 0 0 1 10 1 8 1 1 1 0 3 2 0 0 12 3 10" "4.1.1 2 3 0 0 1 1 10 0 0 1 1 1 0 3 2 2 2 0 3 10" "4.1.2 2 1 0 0 1 1 10 0 0 1 1 1 0 3 2 2 2 0 3 10" \
  "4.1.3 2 0 0 0 1 1 10 0 0 1 1 1 0 3 2 2 2 0 3 10" "4.2.0 2 0 2 2 1 1 10 0 0 1 1 1 0 3 2 2 2 0 0 10" \
  "4.2.3 2 0 2 2 1 1 10 0 0 1 1 1 0 3 2 2 2 0 0 10" "4.3.2 2 0 2 0 1 1 10 0 0 1 1 1 0 3 2 2 2 0 0 10" "5.0.1 2 0 2 0 1 1 10 0 0 1 0 1 4 3 2 2 2 0 0 10" "5.0.2 2 0 2 0 1 1 10 0 0 1 0 1 4 3 2 2 2 0 0 10"; do
  read -r version edits <<<"$row"
  full_tree4 "$version"
  before
  install --force "$work/mpich"
  # shellcheck disable=SC2086  # words
  verdict "edits_the_host $version" edits_are $edits
  verdict "looks_for_errors $version" test "$(grep -c -A 2 LITE_PRE_H_INCLUDED "$work/mpich/src/mpi/request/mpir_request.c")" = 1
  verdict "names_windows $version" grep -q 'generate_win_id(win_comm_ptr)' "$work/mpich/src/mpid/ch4/src/mpidig_win.c"
  verdict "locks_the_map_of_windows $version" test "$(grep -c -A 3 -e MPIDI_LITE_lock_window_map -e MPIDI_LITE_unlock_window_map "$work/mpich/src/mpid/ch4/src/mpidig_win.c")" = 4
  verdict "fetches_pairs $version" test "$(grep -A 1 -e mpi_fetch_and_op -e '^{' "$work/mpich/src/mpid/ch4/shm/posix/posix_rma.h" | grep -c get_extent_macro)" = 1
  verdict "accumulates_without_yaksa $version" grep -q 'use_yaksa = (ENABLE_GPU) && MPIR_Typerep' "$work/mpich/src/mpi/datatype/typerep/src/typerep_yaksa_pack.c"
  case $version in 4.0.*) packs=1 ;; *) packs=0 ;; esac
  verdict "packs_whole_elements $version" test "$(grep -c 'basic_size(dtp->basic_type)' "$work/mpich/src/mpi/datatype/typerep/src/typerep_yaksa_pack.c")" = "$packs"
  verdict "bounds_lines_of_errors $version" test "$(grep -c 'lite_lines > 0' "$work/mpich/src/mpi/errhan/errutil.c")" = 4
  verdict "receives_partitions $version" test "$(grep -c -e 'req, u.recv.context_id) = comm->recvcontext_id' -e 'am_hdr.context_id = comm->context_id' -e 'tag, comm->recvcontext_id' "$work/mpich/src/mpid/ch4/src/mpidig_part.c")" = 3
  verdict "cuts_by_size $version" test "$(grep -c recvtype_extent "$work/mpich/src/mpi/coll/allgatherv/allgatherv_intra_ring.c")" = 1
  case $version in 4.[012].*) handlers=6 ;; *) handlers=4 ;; esac
  verdict "calls_handlers $version" test "$(cat "$work"/mpich/src/mpi/errhan/*.c | grep -c MPIDI_LITE_error_handler_)" = "$handlers"
  verdict "cuts_no_blocks $version" grep -q '^    min = total_count;$' "$work/mpich/src/mpi/coll/iallgatherv/iallgatherv_intra_sched_ring.c"
  case $version in 4.0.*) lengths=14 ;; *) lengths=1 ;; esac
  verdict "counts_long_data $version" test "$(cat "$work"/mpich/src/mpi/coll/{scatter,iscatter,ibcast,bcast,igather}/*.[ch] | grep -c 'MPI_Aint /\* ch_lite')" = "$lengths"
  verdict "counts_long_data $version" test "$(cat "$work"/mpich/src/mpi/coll/ibcast/ibcast{.h,_utils.c} | grep -c 'comm_ptr, MPI_Aint nbytes,')" = "$((lengths > 1 ? 2 : 0))"
  case $version in 5.*) names=1 ;; *) names=0 ;; esac
  verdict "names_jobs $version" test "$(grep -c 'MPIR_add_world(lite_job, size)' "$work/mpich/src/util/mpir_pmi.c")" = "$names"
  verdict "notes_many_jobs $version" test "$(grep -h -c 65536 "$work/mpich/src/mpi/group/grouputil.c" "$work/mpich/src/mpid/ch4/src/ch4_proc.c" | tr -d '\n')" = "$names$names"
  case $version in 5.*) shared="0 3 3" ;; *) shared="1 4 4" ;; esac
  verdict "shares_errors_of_leaders $version" test "$(grep -c 'share_error(local_comm, local_leader, MPI_SUCCESS)' "$work/mpich/src/mpid/ch4/src/ch4_comm.c") $(grep -A 2 'share_error(.*, mpi_errno)' "$work/mpich/src/mpi/comm/comm_impl.c" | grep -c '^        MPIR_ERR_CHECK') $(grep -A 1 'share_error(.*, MPI_SUCCESS)' "$work/mpich/src/mpi/comm/comm_impl.c" | grep -c '^        MPIR_ERR_CHECK')" = "$shared"
  verdict "shares_errors_of_leaders $version" test "$(cat "$work"/mpich/src/mpi/comm/{contextid,comm_split}.c | grep -c MPIDI_LITE_share_error)" = 4
  verdict "shares_errors_of_leaders $version" test "$(grep -A 1 '^    } else {$' "$work/mpich/src/mpi/comm/contextid.c" "$work/mpich/src/mpi/comm/comm_impl.c" | grep -c LITE_PRE_H_INCLUDED)" = 2
  case $version in 4.[012].*) between="0 0 0 0 0" ;; 4.*) between="15 0 15 15 6" ;; *) between="0 15 15 15 6" ;; esac
  inter=("$work"/mpich/src/mpi/coll/*/*_inter_*.c)
  verdict "goes_on_behind_errors $version" test "$(grep -h 'MPIDI_LITE_GO_ON(error, errflag, lite_error)' "${inter[@]}" | wc -l) $(grep -h 'MPIDI_LITE_GO_ON(error, coll_attr, lite_error)' "${inter[@]}" | wc -l) $(grep -h -A 2 '^{$' "${inter[@]}" | grep -c 'int lite_error = ' || true) $(grep -h -A 2 '^    if (lite_error' "${inter[@]}" | grep -c '^        return lite_error' || true) $(grep -h -A 4 'MPIDI_LITE_share_error(newcomm_ptr, 0' "${inter[@]}" | grep -c '^ *mpi_errno = MPIR_' || true)" = "$between"
  verdict "goes_on_behind_errors $version" test "$(grep -h -B 2 'MPIDI_LITE_recoverable(mpi_errno)' "${inter[@]}" | grep -c '^ *b);$')" = 4
  verdict "has_errors_of_scatter $version" test "$(grep -c '^        mpi_errno = MPIR_Scatterv\?_impl(a,$' "$work/mpich/src/mpid/ch4/src/ch4_coll.h")" = 2
  case $version in 4.[01].*) causes="0 1" ;; *) causes="1 2" ;; esac
  verdict "has_errors_of_messages $version" test "$(grep -c 'mpi_errno = status_array' "$work/mpich/src/mpi/coll/helper_fns.c") $(grep -c 'MPIR_Request_free' "$work/mpich/src/mpi/coll/helper_fns.c")" = "$causes"
  verdict "ends_its_own_job $version" test "$(grep -A 2 'comm_ptr = MPIDI_LITE_comm_to_end(comm_ptr)' "$work/mpich/src/mpi/errhan/errutil.c" | grep -c Handle_fatal_error)" = 1
  verdict "chooses_algorithms $version" grep -q '"comm_size<=2":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}},"avg_msg_size<=0":{"a":{}},"avg_msg_size<=2048"' "$work/mpich/src/mpi/coll/src/csel_json_autogen.c"
  verdict "chooses_algorithms $version" grep -q '"comm_size<=2":{"algorithm=MPIR_Reduce_intra_binomial":{}},"count=any"' "$work/mpich/src/mpi/coll/src/csel_json_autogen.c"
  verdict "receives_from_neighbours $version" test "$(cat "$work"/mpich/src/mpi/coll/ineighbor_*/*.c | grep -c -e 'lite_i = 0; lite_i < indegree' -e 'MPI_CART ? lite_i ^ 1')" = 12
  verdict "sends_and_receives $version" test "$(grep -c -e 'lite_send_alone(s\?e\?n\?d\?buf, sendcount' -e 'send(tmpbuf, lite_packed, MPI' -e '^    MPI_Aint lite_packed = 0' "$work/mpich/src/mpi/pt2pt/sendrecv.c")" = 4
  verdict "completes_them $version" test "$(grep -c -e 'req->status.MPI_ERROR = ' -e 'status = e->u.recv.rreq->status' "$work/mpich/src/mpid/common/sched/mpidu_sched.c")" = 5
  verdict "lets_go_of_types_once $version" test "$(grep -A 1 '^                            MPIR_Comm_release(e->u.send.comm);$' "$work/mpich/src/mpid/common/sched/mpidu_sched.c" | grep -c '^                            MPIR_Datatype_release')" = 2
  verdict "lets_go_of_types_once $version" test "$(grep -c Datatype_release "$work/mpich/src/mpid/common/sched/mpidu_sched.c")" = 2
  copies=0 counted=0 doubling=0
  case $version in 4.[01].* | 4.2.0) copies=2 ;; esac
  case $version in 4.[012].*) counted=5 ;; esac
  case $version in 4.0.*) doubling=5 ;; esac
  verdict "gathers_at_each_start $version" test "$(grep -c -e 'MPIR_Sched_copy(sendbuf' "$work/mpich/src/mpi/coll/igather/igather_intra_sched_binomial.c")" = "$copies"
  verdict "gathers_at_each_start $version" test "$(grep -c -e 'e, s);$' -e 'E, s);$' -e 'MPIR_SCHED_BARRIER(s)' "$work/mpich/src/mpi/coll/igather/igather_intra_sched_binomial.c")" = "$((2 * copies))"
  verdict "scatters_at_each_start $version" test "$(grep -c lite_ "$work/mpich/src/mpi/coll/iscatter/iscatter_intra_sched_binomial.c")" = "$counted"
  verdict "gathers_all_at_each_start $version" test "$(grep -c lite_ "$work/mpich/src/mpi/coll/iallgather/iallgather_intra_sched_recursive_doubling.c")" = "$doubling"
  verdict "gathers_all_at_each_start $version" test "$(grep -c recv_dtp "$work/mpich/src/mpi/coll/iallgather/iallgather_intra_sched_recursive_doubling.c")" = 0
  verdict "starts_messages_of_nobody $version" test "$(grep -c -e '^ *if (lite_nobody)$' -e 'kind == MPIR_REQUEST_KIND__PREQUEST_SEND ||' -e create_null_recv "$work/mpich/src/mpid/ch4/src/ch4_startall.h")" = 3
  case $version in 4.[01].*) buffered="1 1 0" ;; *) buffered="5 2 1" ;; esac
  verdict "buffers_messages $version" test "$(grep -c 'void \*buf, MPI_Aint count' "$work/mpich/src/mpi/pt2pt/bsendutil.c") $(grep -c 'void \*\(buf\|\), MPI_Aint' "$work/mpich/src/include/mpir_bsend.h") $(grep -A 1 '^            MPIR_Request_free' "$work/mpich/src/mpi/pt2pt/bsendutil.c" | grep -c '^            DL_DELETE(\*head_p, elt);$')" = "$buffered"
  verdict "buffers_messages $version" test "$(tr -cd '{}' <"$work/mpich/src/mpi/pt2pt/bsendutil.c")" = "$(case $version in 4.[01].*) ;; *) echo '{}}}' ;; esac)"
  install --remove "$work/mpich"
  verdict "removes_the_edits $version" diff -r "$work/before/src" "$work/mpich/src"
done
# What an older script edited, and this one does not.
full_tree4 4.3.2
install "$work/mpich"
echo 'as it was' | tee "$work/mpich/.ch_lite/backup/src/older.c" >"$work/original"
echo 'edited' | tee "$work/mpich/.ch_lite/older.c" >"$work/mpich/src/older.c"
install "$work/mpich"
verdict puts_back_what_it_does_not_edit_any_more cmp "$work/original" "$work/mpich/src/older.c"
# A release that mends it itself.
full_tree4 5.0.2
echo '    proxy->filler_processes++;' >>"$work/mpich/src/pm/hydra/lib/utils/alloc.c"
mended=(src/mpi/coll/ineighbor_alltoall/ineighbor_alltoall_tsp_linear.c src/mpi/pt2pt/sendrecv.c src/mpid/common/sched/mpidu_sched.c src/mpid/ch4/src/ch4_startall.h src/mpi/pt2pt/bsendutil.c)
for file in "${mended[@]}"; do echo 'mended' >"$work/mpich/$file"; done
install "$work/mpich"
verdict leaves_what_is_mended says "4/4 MPICH: making its configure"
verdict leaves_what_is_mended test "$(ours_in ../../pm/hydra/lib/utils/rankmap.c)" = 0
for file in "${mended[@]}"; do verdict "leaves_what_is_mended $file" grep -qx mended "$work/mpich/$file"; done
full_tree4 4.3.2
echo 'something else' >"$work/mpich/src/mpid/ch4/shm/src/shm_progress.h"
install "$work/mpich"
verdict refuses_a_tree_that_was_changed says "does not poll shared memory the way that MPICH 4.3.2 does"
# What somebody has changed since is not lost, and another version's originals are not put in its place.
full_tree4 4.3.2
install "$work/mpich"
verdict puts_in_once_more test "$(ours_in src/ch4_win.c)" = 1
install "$work/mpich"
verdict puts_in_once_more test "$(ours_in src/ch4_win.c)" = 1
echo '/* their own */' >>"$work/mpich/src/mpid/ch4/src/ch4_win.c"
install "$work/mpich"
verdict keeps_a_change_of_somebody_else says "ch4_win.c was changed since the device was put in"
verdict keeps_a_change_of_somebody_else grep -q 'their own' "$work/mpich/src/mpid/ch4/src/ch4_win.c"
install --remove "$work/mpich"
full_tree4 4.3.2
install "$work/mpich"
cp "$work/mpich/.ch_lite/ch4_win.c" "$work/mpich/.ch_lite/ch4_win.c.new"
echo '/* what an older script made */' >"$work/mpich/.ch_lite/ch4_win.c" # as after an interruption
install "$work/mpich"
verdict goes_on_after_an_interruption test "$(ours_in src/ch4_win.c)" = 1 -a ! -e "$work/mpich/.ch_lite/ch4_win.c.new"
sed -i 's/4\.3\.2/4.3.1/' "$work/mpich/maint/version.m4"
install "$work/mpich"
verdict refuses_what_has_become_another_version says "was another version of MPICH when the device was put in"
# An older script took 4.0.3 too: what it left can be taken out.
tree4 4.0.3
mkdir -p "$work/mpich/modules/lite" "$work/mpich/.ch_lite"
install --remove "$work/mpich"
verdict removes_from_any_mpich_4 test "$status" = 0 -a ! -e "$work/mpich/modules/lite"

total=$((passed + failed))
echo "$((passed * 100 / total))%: Checks: $total, Failures: $failed, Errors: 0"
[ "$failed" = 0 ]
