# For tests of scripts: a tree of an MPICH 4 or 5 that has just what scripts/install-device looks
# for, the lines that it edits included.

# What any tree of that version has: the version's number, and the list of configure's parts.
mpich_tree() { # DIRECTORY VERSION
  mkdir -p "$1/maint" "$1/src/mpid/ch4/netmod/ucx"
  printf 'm4_define([MPICH_VERSION_m4],[%s])dnl\n' "$2" >"$1/maint/version.m4"
  printf 'm4_include([src/mpid/ch4/subconfigure.m4])\n[src_mpid_ch4],\n' >"$1/subsys_include.m4"
}

# And the files that get lines of ours.
whole_mpich_tree() { # DIRECTORY VERSION
  local ch4=$1/src/mpid/ch4 op=$1/src/mpi/coll/op name file
  mpich_tree "$1" "$2"
  mkdir -p "$ch4/src" "$ch4/shm/src" "$ch4/shm/posix/release_gather" "$op" "$1/src/mpi/errhan" "$1/src/mpi/init" "$1/src/mpi/datatype" "$1/src/mpi/coll/reduce_local" "$1/src/pm/hydra/lib/utils"
  touch "$1/configure.ac" "$1/Makefile.am" "$ch4/netmod/Makefile.mk"
  {
    echo '    mpi_errno = MPIDI_NM_get_local_upids(MPIR_Process.comm_self, &addrname_size, &addrname);'
    echo '    free_port_name_tag(tag);'
  } >"$ch4/src/ch4_spawn.c"
  {
    echo 'int MPIDI_Reduce_intra_composition_alpha(int a)'
    for name in MPIDI_NM MPIDI_SHM; do
      echo "    mpi_errno = ${name}_mpi_reduce(sendbuf, recvbuf, count, datatype, op, 0, comm->node_comm,"
    done
    echo '            MPIDI_NM_mpi_reduce(comm->node_roots_comm->rank == 0 ? MPI_IN_PLACE : inter_sendbuf,'
    echo 'int MPIDI_Reduce_intra_composition_beta(int a)'
  } >"$ch4/src/ch4_coll_impl.h"
  echo '    ret = MPIDI_POSIX_progress(vci, made_progress);' >"$ch4/shm/src/shm_progress.h"
  {
    echo 'static int get_max_overscribe(struct HYD_node *node_list);'
    echo '    int max_oversubscribe = get_max_overscribe(node_list);'
    echo '    int rank = 0;'
  } >"$1/src/pm/hydra/lib/utils/rankmap.c"
  echo '    proxy->filler_processes = 0;' >"$1/src/pm/hydra/lib/utils/alloc.c"
  {
    echo '#define MPIDI_POSIX_RELEASE_GATHER_WAIT_WHILE_LESS_THAN(ptr, value)   \'
    echo '    do {   \'
    echo '        while (MPL_atomic_acquire_load_uint64(ptr) < (value))    { \'
    echo '            if (++spin_count >= 10000) {   \'
    echo '            }   \'
    echo '        }   \'
    echo '    }   \'
    echo '    while (0)'
  } >"$ch4/shm/posix/release_gather/release_gather.h"
  for name in bcast reduce allreduce barrier; do
    echo "MPL_STATIC_INLINE_PREFIX int MPIDI_POSIX_mpi_${name}_release_gather(int a)"
    echo '    MPIDI_POSIX_COMM(comm_ptr, release_gather).num_collective_calls++;'
  done >"$ch4/shm/posix/posix_coll_release_gather.h"
  echo '        MPIR_pmi_abort(exit_code, error_msg);' >"$ch4/src/ch4_globals.c"
  echo '    mpi_errno = MPIDIG_mpi_win_free(win_ptr);' >"$ch4/src/ch4_win.c"
  {
    echo '    MPID_Abort(comm_ptr, MPI_SUCCESS, errcode, error_msg);'
    printf '%s\n' '    if (MPIR_Err_is_fatal(errcode) || comm_ptr == NULL) {' '        MPIR_Handle_fatal_error(comm_ptr, fcname, errcode);' '    }' '        MPIR_Handle_fatal_error(comm_ptr, fcname, errcode);'
    for name in comm_ptr win_ptr; do printf '        switch (%s->errhandler->language) {\n                }\n        }\n' "$name"; done
    echo 'static void MPIR_Err_print_stack_string(int errcode, char *str, int maxlen);'
    echo '    maxlen > 0'
    echo 'static void MPIR_Err_print_stack_string(int errcode, char *str, int maxlen)'
    printf '    if (maxlen > 0)\n%.0s' 1 2 3 4
    echo '        while (tmp_errcode != MPI_SUCCESS) {'
    echo '        while (errcode != MPI_SUCCESS) {'
    echo '}'
    echo '    maxlen > 0'
    echo '            while (errorcode != MPI_SUCCESS) {'
    echo 'static void CombineSpecificCodes(int error1_code, int error2_code, int error2_class)'
    printf '{\n        for (;;) {\n}\n        for (;;) {\n'
  } >"$1/src/mpi/errhan/errutil.c"
  mkdir -p "$1/src/mpi/group"
  {
    printf '    int size1, i, k, g1_idx, g2_idx, l1_pid, l2_pid, nnew;\n%.0s' 1 2
    echo '    int g1_idx, g2_idx, nnew, i, k, size1, size2, mylpid;'
    echo '    int i, g2_idx, l1_pid, l2_pid;'
    echo '            int lpid = group_ptr1->lrank_to_lpid[i].lpid;'
    echo '        int lpid_offset = gp2->lrank_to_lpid[0].lpid;'
    echo '        MPIR_Assert(lpid_offset >= 0);'
    echo '            int g1_lpid;'
    echo '        int l1_pid, l2_pid;'
  } >"$1/src/mpi/group/group_impl.c"
  echo '        if (MPIR_Typerep_reduce_is_supported(op, datatype)) {' >"$1/src/mpi/coll/reduce_local/reduce_local.c"
  mkdir -p "$1/src/mpi/coll/allreduce"
  for file in recursive_doubling reduce_scatter_allgather smp; do
    echo '    return mpi_errno;' >"$1/src/mpi/coll/allreduce/allreduce_intra_$file.c"
  done
  mkdir -p "$1/src/binding/c/coll"
  for file in allgatherv iallgatherv; do
    printf '            MPIR_Localcopy(sendbuf, sendcount, sendtype, recvbuf, recvcounts[0], recvtype);\n%.0s' 1 2 >"$1/src/binding/c/coll/$file.c"
  done
  mkdir -p "$1/maint/tuning/coll/mpir" "$1/src/mpi/coll/src"
  {
    printf '{\n"collective=allreduce":\n{\n"comm_type=intra":\n{\n"avg_msg_size<=0":\n{"a":{}},\n"avg_msg_size<=8":\n{"b":{}}}},\n'
    printf '"collective=reduce":\n{\n"comm_type=intra":\n{\n"count=any":\n{"c":{}}}}}\n'
  } >"$1/maint/tuning/coll/mpir/generic.json"
  printf 'tr -d "[:space:]" <maint/tuning/coll/mpir/generic.json >src/mpi/coll/src/csel_json_autogen.c\n' >"$1/maint/tuning/coll/json_gen.sh"
  (cd "$1" && sh maint/tuning/coll/json_gen.sh)
  echo '                fstack[i].f = 0;' >"$1/src/mpi/init/init_util.c"
  echo '    ++MPIDIG_WIN(win, sync).pw.count;' >"$ch4/src/mpidig_rma_callbacks.c"
  mkdir -p "$1/src/mpi/request"
  {
    echo 'int MPIR_Request_completion_processing(MPIR_Request * request_ptr, MPI_Status * status)'
    printf '{\n        case MPIR_REQUEST_KIND__PREQUEST_SEND:\n}\n'
    echo 'int MPIR_Request_get_error(MPIR_Request * request_ptr)'
    printf '{\n        case MPIR_REQUEST_KIND__PREQUEST_SEND:\n}\n'
  } >"$1/src/mpi/request/mpir_request.c"
  {
    echo '    MPIDIG_WIN(win, win_id) = MPIDIG_generate_win_id(comm_ptr);'
    echo '    MPIDIU_map_set(MPIDI_global.win_map, MPIDIG_WIN(win, win_id), win, MPL_MEM_RMA);'
    echo '    MPIDIU_map_erase(MPIDI_global.win_map, MPIDIG_WIN(win, win_id));'
  } >"$ch4/src/mpidig_win.c"
  {
    echo '        MPIDI_PART_REQUEST(req, u.recv.context_id) = comm->context_id;'
    echo '    am_hdr.context_id = comm->context_id;'
    echo '        MPIDIG_rreq_dequeue(source, tag, comm->context_id, &MPIDI_global.part_unexp_list,'
  } >"$ch4/src/mpidig_part.c"
  mkdir -p "$1/src/mpi/coll/allgatherv"
  {
    echo '    MPIR_Datatype_get_extent_macro(recvtype, recvtype_extent);'
    echo '        max * recvtype_extent > MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE) {'
    echo '        chunk_count = MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE / recvtype_extent;'
  } >"$1/src/mpi/coll/allgatherv/allgatherv_intra_ring.c"
  printf '    switch (errhandler->language) {\n        }\n    }\n' >"$1/src/mpi/errhan/errhan_impl.c"
  mkdir -p "$1/src/mpi/coll/iallgatherv"
  echo '    if (min * recvtype_extent < MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE)' >"$1/src/mpi/coll/iallgatherv/iallgatherv_intra_sched_ring.c"
  for file in alltoall alltoallv alltoallw; do
    mkdir -p "$1/src/mpi/coll/ineighbor_$file"
    case $2-$file in
      4.0*-alltoall[vw]) name='l = 0; l < indegree; ++l' ;;
      *) name='l = indegree - 1; l >= 0; l--' ;;
    esac
    echo "    for ($name) {" | tee "$1/src/mpi/coll/ineighbor_$file/ineighbor_${file}_allcomm_sched_linear.c" \
      >"$1/src/mpi/coll/ineighbor_$file/ineighbor_${file}_tsp_linear.c"
  done
  mkdir -p "$1/src/mpi/pt2pt" "$1/src/mpid/common/sched" "$1/src/include"
  echo 'int MPIR_Bsend_isend(const void *, int, MPI_Datatype, int, int, MPIR_Comm *, MPIR_Request **);' >"$1/src/include/mpir_bsend.h"
  name='const void *buf, int count, MPI_Datatype dtype,'
  echo "int MPIR_Bsend_isend($name" >"$1/src/mpi/pt2pt/bsendutil.c"
  case $2 in
    4.[01]*) ;;
    *)
      echo "int MPIR_Bsend_isend($name" >>"$1/src/include/mpir_bsend.h"
      {
        printf '                            %s\n' "$name" "$name" "$name" "$name"
        printf '%s\n' 'static void bsend_auto_reap(struct MPII_BsendBuffer_auto *automatic)' '{' \
          '            MPIR_Request_free(elt->req);' '        }' '        DL_DELETE(*head_p, elt);' '        MPL_free(elt);' '    }' '}'
      } >>"$1/src/mpi/pt2pt/bsendutil.c"
      ;;
  esac
  {
    echo '        mpi_errno = MPID_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm_ptr,'
    echo '    void *tmpbuf = NULL;'
    for name in 'sendrecv_impl(const void *sendbuf,sendbuf' 'sendrecv_replace_impl(void *buf,buf'; do
      echo "int MPIR_I${name%,*}, MPI_Aint count,"
      case $2 in 4.0*) ;; *) echo '        MPIR_Request *lw_req = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);' ;; esac
      echo "        mpi_errno = MPID_Isend(${name#*,}, sendcount, sendtype, dest, sendtag, comm_ptr,"
    done
    printf '    void *tmpbuf = NULL;\n        MPIR_Assert(tmpbuf_size == actual_pack_bytes);\n'
    echo '    mpi_errno = MPIR_Sched_pt2pt_send(tmpbuf, count, datatype, sendtag, dest, comm_ptr, s);'
  } >"$1/src/mpi/pt2pt/sendrecv.c"
  {
    for name in SEND RECV; do
      printf '        case MPIDU_SCHED_ENTRY_PT2PT_%s:\n' $name
      printf '                e->status = MPIDU_SCHED_ENTRY_STATUS_FAILED;\n            break;\n'
    done
    for name in SEND PT2PT_SEND PT2PT_RECV; do
      echo "                case MPIDU_SCHED_ENTRY_$name:"
      [ $name = SEND ] || echo '                        if (s->req->status.MPI_ERROR) {'
      [ $name = PT2PT_RECV ] || echo '                            MPIR_Comm_release(e->u.send.comm);'
      case $2-$name in
        4.0*-PT2PT_SEND)
          echo '                            MPIR_Comm_release(e->u.send.comm);'
          echo '                        MPIR_Datatype_release_if_not_builtin(e->u.send.datatype);'
          ;;
        *SEND) echo '                            MPIR_Datatype_release_if_not_builtin(e->u.send.datatype);' ;;
      esac
      echo '                    break;'
    done
  } >"$1/src/mpid/common/sched/mpidu_sched.c"
  mkdir -p "$1"/src/mpi/coll/{scatter,iscatter,ibcast,bcast,igather}
  printf '    int relative_rank, nbytes;\n    int tmp_buf_size = 0;\n' >"$1/src/mpi/coll/scatter/scatter_intra_binomial.c"
  case $2 in 4.0*) name=int ;; *) name=MPI_Aint ;; esac
  printf "    $name %s;\n" sendcount nbytes 'tmp_buf_size = 0' >"$1/src/mpi/coll/iscatter/iscatter_intra_sched_binomial.c"
  {
    printf '    int %s_bytes;\n' curr n initial
    echo 'int MPII_Iscatter_for_bcast_sched(void *tmp_buf, int root, MPIR_Comm * comm_ptr, int nbytes,'
  } >"$1/src/mpi/coll/ibcast/ibcast.h"
  {
    echo 'int MPII_Iscatter_for_bcast_sched(void *tmp_buf, int root, MPIR_Comm * comm_ptr, int nbytes,'
    echo '    int scatter_size, curr_size, recv_size, send_size;'
  } >"$1/src/mpi/coll/ibcast/ibcast_utils.c"
  {
    printf '    int is_contig, type_size, nbytes;\n    int scatter_size, curr_size;\n'
    echo '        int left_count, right_count, left_disp, right_disp, rel_j, rel_jnext;'
  } >"$1/src/mpi/coll/ibcast/ibcast_intra_sched_scatter_ring_allgather.c"
  echo '    int scatter_size, recv_size = 0;' >"$1/src/mpi/coll/bcast/bcast_utils.c"
  {
    echo '    int tmp_buf_size, missing;'
    case $2 in
      4.[01]* | 4.2.[012])
        printf '            mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype,\n'
        printf '                                       recvcount, recvtype);\n            MPIR_ERR_CHECK(mpi_errno);\n'
        printf '        mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, tmp_buf, nbytes, MPI_BYTE);\n        MPIR_ERR_CHECK(mpi_errno);\n'
        ;;
    esac
  } >"$1/src/mpi/coll/igather/igather_intra_sched_binomial.c"
  case $2 in
    4.[012]* | 4.3.[01])
      {
        printf 'static int calc_send_count_root(MPIR_Comm * comm, int tag, void *state, void *state2)\n    ss->curr_count = 0;\n'
        printf '            ss->curr_count = ss->nbytes * comm_size;\n            ss->curr_count = sendcount * comm_size;\n'
      } >>"$1/src/mpi/coll/iscatter/iscatter_intra_sched_binomial.c"
      ;;
  esac
  mkdir -p "$1/src/mpi/coll/iallgather"
  case $2 in
    4.0* | 4.1)
      printf '%s\n' '    MPI_Aint curr_count;' 'static int dtp_release_ref(MPIR_Comm * comm, int tag, void *state)' \
        '    MPIR_Datatype *recv_dtp = state;' '    MPIR_Datatype_ptr_release(recv_dtp);' '    MPIR_Datatype *recv_dtp;' \
        '    recv_dtp = NULL;' '    }' '    if (recv_dtp)' '        MPIR_Datatype_ptr_add_ref(recv_dtp);' \
        '    if (recv_dtp) {' '        mpi_errno = MPIR_Sched_cb(dtp_release_ref, recv_dtp, s);'
      ;;
    *) echo 'static int reset_shared_state(MPIR_Comm * comm, int tag, void *state)' ;;
  esac >"$1/src/mpi/coll/iallgather/iallgather_intra_sched_recursive_doubling.c"
  case $2 in 4.0*) name='        ' ;; *) name='    ' ;; esac
  printf '%sif (MPIDI_PREQUEST(preq, rank) == MPI_PROC_NULL)\n' "$name" >"$ch4/src/ch4_startall.h"
  mkdir -p "$1/src/mpi/datatype/typerep/src"
  {
    echo '        element_size = MPIR_Datatype_get_basic_size(datatype);'
    case $2 in 4.0*) echo '            element_size = MPIR_Datatype_get_basic_size(datatype);' ;; esac
    echo '    bool use_yaksa = MPIR_Typerep_reduce_is_supported(op, source_dtp);'
  } >"$1/src/mpi/datatype/typerep/src/typerep_yaksa_pack.c"
  mkdir -p "$1/src/util"
  echo '    int world_idx = MPIR_add_world(pmi_kvs_name, size);' >"$1/src/util/mpir_pmi.c"
  printf '#define MPIR_MAX_WORLDS 1024\n    int world_idx = num_worlds++;\n' >"$1/src/mpi/group/grouputil.c"
  echo '#define MPIDI_CH4_AVTABLE_INITIAL_SIZE 1024' >"$ch4/src/ch4_proc.c"
  mkdir -p "$1/src/mpi/comm"
  name='        MPIR_ERR_CHECK(mpi_errno);'
  {
    case $2 in 5.*) ;; *) printf '%s\n' 'int MPIR_Intercomm_create_impl(MPIR_Comm * a)' '            MPIC_Sendrecv(a)' "$name" "        /* we're the other processes */" '  fn_fail:' '}' ;; esac
    printf '%s\n' 'int MPIR_Intercomm_merge_impl(MPIR_Comm * a)' '    if (comm_ptr->rank == 0) {' '        mpi_errno = MPIC_Sendrecv(a)' "$name" '    }' "$name" '}'
    printf '%s\n' 'int MPIR_Comm_create_inter(MPIR_Comm * a)' '        mpi_errno = MPIC_Sendrecv(a)' "$name" "$name" '        mpi_errno = MPIC_Sendrecv(b)' "$name" '        /* The other processes */' '}'
  } >"$1/src/mpi/comm/comm_impl.c"
  printf '%s\n' 'int MPIR_Get_intercomm_contextid(MPIR_Comm * a)' '    if (comm_ptr->rank == 0) {' '        mpi_errno = MPIC_Sendrecv(a)' "$name" '    }' "$name" '}' >"$1/src/mpi/comm/contextid.c"
  printf '%s\n' '            mpi_errno = MPIC_Sendrecv(a)' "    $name" '            /* Broadcast to the other members of the local group */' >"$1/src/mpi/comm/comm_split.c"
  printf '        MPIR_Scatter%s_impl(a,\n' '' v >"$ch4/src/ch4_coll.h"
  printf '%s\n' '    mpi_errno = MPIR_Waitall(numreq, request_ptrs, status_array);' '    mpi_errno = MPIR_Waitall(numreq, requests, status_array);' '            mpi_errno = MPIR_Process_status(&status_array[i]);' >"$1/src/mpi/coll/helper_fns.c"
  # A collective, its algorithm, and what it calls last: between groups, and in its own.
  while read -r name file between last; do
    mkdir -p "$1/src/mpi/coll/$name"
    printf '%s\n' '#include "mpiimpl.h"' "int MPIR_$file(MPIR_Comm * a)" '{' "        mpi_errno = $between(a," '                  b);' '        MPIR_ERR_CHECK(mpi_errno);' "    mpi_errno = $last(a);" '    return mpi_errno;' '}' >"$1/src/mpi/coll/$name/${name}_inter_$file.c"
  done <<'INTER'
allgather local_gather_remote_bcast MPIR_Gather MPIR_Bcast
allgatherv remote_gather_local_bcast MPIR_Gatherv MPIR_Type_indexed_large_impl
allreduce reduce_exchange_bcast MPIC_Sendrecv MPIR_Bcast(recvbuf,count
alltoall pairwise_exchange MPIC_Sendrecv none
alltoallv pairwise_exchange MPIC_Sendrecv none
alltoallw pairwise_exchange MPIC_Sendrecv none
barrier bcast MPIR_Bcast MPIR_Bcast
bcast remote_send_local_bcast MPIC_Recv MPIR_Bcast_allcomm_auto(buffer
gather linear MPIC_Recv none
gather local_gather_remote_send MPIR_Gather MPIC_Send
reduce local_reduce_remote_send MPIR_Reduce MPIC_Send
reduce_scatter remote_reduce_local_scatter MPIR_Reduce_allcomm_auto MPIR_Scatterv(tmp_buf
reduce_scatter_block remote_reduce_local_scatter MPIR_Reduce_allcomm_auto MPIR_Scatter(tmp_buf
scatter linear MPIC_Recv none
scatter remote_send_local_scatter MPIC_Recv MPIR_Scatter(tmp_buf
INTER
  sed -i 's/recvbuf,count/recvbuf, count/' "$1/src/mpi/coll/allreduce/allreduce_inter_reduce_exchange_bcast.c"
  printf '%s\n' 'int MPID_Intercomm_exchange_map(MPIR_Comm * a)' '    int pure_intracomm = 1;' '                    (MPL_DBG_FDEST, "Intercomm map exchange stage 2: intra-group"));' '  fn_fail:' '}' '  fn_fail:' >"$ch4/src/ch4_comm.c"
  echo '            mpi_pairtypes[i].dtype = MPI_DATATYPE_NULL;' >"$1/src/mpi/datatype/typeutil.c"
  {
    echo '        unsigned world_id = MPIR_Process.world_id;'
    for name in shm vci; do echo "                 \"/mpich_${name}_%x_%d\", world_id, node_id);"; done
  } >"$ch4/shm/posix/posix_init.c"
  {
    for name in put get; do
      echo "        MPIR_Typerep_req $name = { MPIR_TYPEREP_REQ_NULL, NULL };"
    done
    for name in compare_and_swap fetch_and_op; do
      echo "MPL_STATIC_INLINE_PREFIX int MPIDI_POSIX_mpi_$name(int a)"
      printf '{\n    MPIR_Datatype_get_size_macro(datatype, dtype_sz);\n}\n'
    done
  } >"$ch4/shm/posix/posix_rma.h"
  # up to 4.3 a file each: opsum.c; MAXF is in opmax.c
  for name in BAND BOR BXOR LAND LOR LXOR MAXF MINF PROD SUM NO_OP; do
    file=${name,,} file=op${file%f}.c
    case $2 in 5.*) file=op_fns.c ;; esac
    echo "void MPIR_$name(void *invec, void *inoutvec, MPI_Aint * Len, MPI_Datatype * type)" >>"$op/$file"
  done
}
