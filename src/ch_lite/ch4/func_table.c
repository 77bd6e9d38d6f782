/* The module as the host sees it: two tables of functions, of which ours serve point-to-point,
 * active messages, put and get, start and end. The rest is ch4's own code over active messages:
 * static functions of the host's fallback headers, instantiated here and nowhere else. */

/* The fallback headers define functions of the names that netmod_impl.h gives to its calls through
 * the table. */
#define NETMOD_DISABLE_INLINES
#include "lite_coll.h"
#include "netmod_am_fallback_coll.h"
#include "netmod_am_fallback_part.h"
/* Not these: ch4's synchronization, instantiated here too, would call hooks that do nothing. Ours
 * are below, by the same names. */
#define MPIDI_NM_rma_win_cmpl_hook MPIDI_LITE_no_win_cmpl_hook
#define MPIDI_NM_rma_win_local_cmpl_hook MPIDI_LITE_no_win_local_cmpl_hook
#define MPIDI_NM_rma_target_cmpl_hook MPIDI_LITE_no_target_cmpl_hook
#define MPIDI_NM_rma_target_local_cmpl_hook MPIDI_LITE_no_target_local_cmpl_hook
#define MPIDI_NM_mpi_put MPIDI_LITE_no_mpi_put
#define MPIDI_NM_mpi_get MPIDI_LITE_no_mpi_get
#define MPIDI_NM_mpi_rput MPIDI_LITE_no_mpi_rput
#define MPIDI_NM_mpi_rget MPIDI_LITE_no_mpi_rget
#include "netmod_am_fallback_rma.h"
#undef MPIDI_NM_rma_win_cmpl_hook
#undef MPIDI_NM_rma_win_local_cmpl_hook
#undef MPIDI_NM_rma_target_cmpl_hook
#undef MPIDI_NM_rma_target_local_cmpl_hook
#undef MPIDI_NM_mpi_put
#undef MPIDI_NM_mpi_get
#undef MPIDI_NM_mpi_rput
#undef MPIDI_NM_mpi_rget

/* In this file the host's inlined code calls the module by these names, and without going through
 * the table. */
#define BY_NAME(type_, name_, parameters_, arguments_)          \
    MPL_STATIC_INLINE_PREFIX type_ MPIDI_NM_##name_ parameters_ \
    {                                                           \
        return MPIDI_LITE_##name_ arguments_;                   \
    }

/* *INDENT-OFF* */
BY_NAME(int, progress, (MPIDI_LITE_PROGRESS_PARAMETERS), (MPIDI_LITE_PROGRESS_ARGUMENTS))
BY_NAME(int, mpi_isend,
        (const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, MPIR_Comm *comm,
         int attr, MPIDI_av_entry_t *av, MPIR_Request **request),
        (buf, count, datatype, rank, tag, comm, attr, av, request))
#if LITE_HOST_BELOW(4, 1, 0)
BY_NAME(int, isend_coll,
        (const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, MPIR_Comm *comm,
         int attr, MPIDI_av_entry_t *av, MPIR_Request **request, MPIR_Errflag_t *errflag),
        (buf, count, datatype, rank, tag, comm, attr, av, request, errflag))
BY_NAME(int, mpi_issend,
        (const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, MPIR_Comm *comm,
         int attr, MPIDI_av_entry_t *av, MPIR_Request **request),
        (buf, count, datatype, rank, tag, comm, attr, av, request))
#endif
BY_NAME(int, mpi_cancel_send, (MPIR_Request * sreq), (sreq))
BY_NAME(int, mpi_irecv,
        (void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, MPIR_Comm *comm,
         int attr, MPIDI_av_entry_t *av, MPIR_Request **request, MPIR_Request *partner),
        (buf, count, datatype, rank, tag, comm, attr, av, request, partner))
BY_NAME(int, mpi_imrecv, (void *buf, MPI_Aint count, MPI_Datatype datatype, MPIR_Request *message),
        (buf, count, datatype, message))
BY_NAME(int, mpi_cancel_recv, (MPIDI_LITE_CANCEL_RECV_PARAMETERS),
        (MPIDI_LITE_CANCEL_RECV_ARGUMENTS))
BY_NAME(int, mpi_iprobe,
        (int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, int *flag,
         MPI_Status *status),
        (source, tag, comm, attr, av, flag, status))
BY_NAME(int, mpi_improbe,
        (int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, int *flag,
         MPIR_Request **message, MPI_Status *status),
        (source, tag, comm, attr, av, flag, message, status))
BY_NAME(int, am_send_hdr,
        (int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr, MPI_Aint am_hdr_sz,
         int src_vci, int dst_vci),
        (rank, comm, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci))
BY_NAME(int, am_send_hdr_reply,
        (MPIR_Comm * comm, int rank, int handler_id, const void *am_hdr, MPI_Aint am_hdr_sz,
         int src_vci, int dst_vci),
        (comm, rank, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci))
BY_NAME(int, am_isend,
        (int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr, MPI_Aint am_hdr_sz,
         const void *data, MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
         MPIR_Request *sreq),
        (rank, comm, handler_id, am_hdr, am_hdr_sz, data, count, datatype, src_vci, dst_vci, sreq))
BY_NAME(int, am_isend_reply,
        (MPIR_Comm * comm, int rank, int handler_id, const void *am_hdr, MPI_Aint am_hdr_sz,
         const void *data, MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
         MPIR_Request *sreq),
        (comm, rank, handler_id, am_hdr, am_hdr_sz, data, count, datatype, src_vci, dst_vci, sreq))
BY_NAME(MPIDIG_recv_data_copy_cb, am_get_data_copy_cb, (uint32_t attr), (attr))
BY_NAME(MPI_Aint, am_hdr_max_sz, (void), ())
BY_NAME(MPI_Aint, am_eager_limit, (void), ())
BY_NAME(MPI_Aint, am_eager_buf_limit, (void), ())
BY_NAME(bool, am_check_eager,
        (MPI_Aint am_hdr_sz, MPI_Aint data_sz, const void *data, MPI_Aint count,
         MPI_Datatype datatype, MPIR_Request *sreq),
        (am_hdr_sz, data_sz, data, count, datatype, sreq))
#if LITE_HOST_SINCE(4, 3, 0)
BY_NAME(bool, am_can_do_tag, (MPIDI_LITE_AM_CAN_DO_TAG_PARAMETERS),
        (MPIDI_LITE_AM_CAN_DO_TAG_ARGUMENTS))
BY_NAME(int, am_tag_send,
        (int rank, MPIR_Comm *comm, int handler_id, int tag, const void *buf, MPI_Aint count,
         MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request *sreq),
        (rank, comm, handler_id, tag, buf, count, datatype, src_vci, dst_vci, sreq))
BY_NAME(int, am_tag_recv,
        (int rank, MPIR_Comm *comm, int handler_id, int tag, void *buf, MPI_Aint count,
         MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request *rreq),
        (rank, comm, handler_id, tag, buf, count, datatype, src_vci, dst_vci, rreq))
#endif
BY_NAME(void, am_request_init, (MPIR_Request * req), (req))
BY_NAME(void, am_request_finalize, (MPIR_Request * req), (req))
#if LITE_HOST_BELOW(5, 0, 0)
BY_NAME(int, comm_get_gpid, (MPIR_Comm * comm, int idx, uint64_t *gpid, bool is_remote),
        (comm, idx, gpid, is_remote))
#endif
BY_NAME(int, rank_is_local, (int rank, MPIR_Comm *comm), (rank, comm))
BY_NAME(int, rma_win_cmpl_hook, (MPIR_Win * win), (win))
BY_NAME(int, rma_win_local_cmpl_hook, (MPIR_Win * win), (win))
BY_NAME(int, rma_target_cmpl_hook, (int rank, MPIR_Win *win), (rank, win))
BY_NAME(int, rma_target_local_cmpl_hook, (int rank, MPIR_Win *win), (rank, win))
BY_NAME(int, mpi_put,
        (const void *origin_addr, MPIDI_LITE_rma_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, MPIDI_LITE_rma_count target_count,
         MPI_Datatype target_datatype, MPIR_Win *win, MPIDI_av_entry_t *addr,
         MPIDI_winattr_t winattr),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, addr, winattr))
BY_NAME(int, mpi_get,
        (void *origin_addr, MPIDI_LITE_rma_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, MPIDI_LITE_rma_count target_count,
         MPI_Datatype target_datatype, MPIR_Win *win, MPIDI_av_entry_t *addr,
         MPIDI_winattr_t winattr),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, addr, winattr))
BY_NAME(int, mpi_rput,
        (const void *origin_addr, MPIDI_LITE_rma_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, MPIDI_LITE_rma_count target_count,
         MPI_Datatype target_datatype, MPIR_Win *win, MPIDI_av_entry_t *addr,
         MPIDI_winattr_t winattr, MPIR_Request **request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, addr, winattr, request))
BY_NAME(int, mpi_rget,
        (void *origin_addr, MPIDI_LITE_rma_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, MPIDI_LITE_rma_count target_count,
         MPI_Datatype target_datatype, MPIR_Win *win, MPIDI_av_entry_t *addr,
         MPIDI_winattr_t winattr, MPIR_Request **request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, addr, winattr, request))
/* *INDENT-ON* */

MPIDI_NM_funcs_t MPIDI_NM_lite_funcs = {
    /* ours */
    .init_local = MPIDI_LITE_init_local,
    .mpi_finalize_hook = MPIDI_LITE_mpi_finalize_hook,
#if LITE_HOST_SINCE(5, 0, 0)
    .comm_set_vcis = MPIDI_LITE_comm_set_vcis,
    .insert_upid = MPIDI_LITE_insert_upid,
    .dynamic_sendrecv = MPIDI_LITE_dynamic_sendrecv,
#else
    .init_world = MPIDI_LITE_init_world,
    .post_init = MPIDI_LITE_post_init,
    .comm_get_gpid = MPIDI_LITE_comm_get_gpid,
    .upids_to_gpids = MPIDI_LITE_upids_to_gpids,
#if LITE_HOST_SINCE(4, 2, 0)
    .init_vcis = MPIDI_LITE_init_vcis,
#endif
#endif
#if LITE_HOST_SINCE(4, 3, 0)
    .am_can_do_tag = MPIDI_LITE_am_can_do_tag,
    .am_tag_send = MPIDI_LITE_am_tag_send,
    .am_tag_recv = MPIDI_LITE_am_tag_recv,
#endif
    .progress = MPIDI_LITE_progress,
    .comm_set_hints = MPIDI_LITE_comm_set_hints,
    .am_send_hdr = MPIDI_LITE_am_send_hdr,
    .am_isend = MPIDI_LITE_am_isend,
    .am_send_hdr_reply = MPIDI_LITE_am_send_hdr_reply,
    .am_isend_reply = MPIDI_LITE_am_isend_reply,
    .am_get_data_copy_cb = MPIDI_LITE_am_get_data_copy_cb,
    .am_hdr_max_sz = MPIDI_LITE_am_hdr_max_sz,
    .am_eager_limit = MPIDI_LITE_am_eager_limit,
    .am_eager_buf_limit = MPIDI_LITE_am_eager_buf_limit,
    .am_check_eager = MPIDI_LITE_am_check_eager,
    .get_local_upids = MPIDI_LITE_get_local_upids,
    .dynamic_send = MPIDI_LITE_dynamic_send,
    .dynamic_recv = MPIDI_LITE_dynamic_recv,
    .am_request_init = MPIDI_LITE_am_request_init,
    .am_request_finalize = MPIDI_LITE_am_request_finalize,
    .mpi_win_create_hook = MPIDI_LITE_win_expose_hook,
    .mpi_win_allocate_hook = MPIDI_LITE_win_expose_hook,
    .mpi_win_free_hook = MPIDI_LITE_win_free_hook,
    .rma_win_cmpl_hook = MPIDI_LITE_rma_win_cmpl_hook,
    .rma_win_local_cmpl_hook = MPIDI_LITE_rma_win_local_cmpl_hook,
    .rma_target_cmpl_hook = MPIDI_LITE_rma_target_cmpl_hook,
    .rma_target_local_cmpl_hook = MPIDI_LITE_rma_target_local_cmpl_hook,
    /* nothing to add */
    .mpi_comm_commit_pre_hook = MPIDI_LITE_comm_pre_hook,
    .mpi_comm_commit_post_hook = MPIDI_LITE_comm_post_hook,
    .mpi_comm_free_hook = MPIDI_LITE_comm_free_hook,
    .mpi_win_allocate_shared_hook = MPIDI_LITE_win_hook,
    .mpi_win_create_dynamic_hook = MPIDI_LITE_win_hook,
    .mpi_win_attach_hook = MPIDI_LITE_win_attach_hook,
    .mpi_win_detach_hook = MPIDI_LITE_win_detach_hook,
};

MPIDI_NM_native_funcs_t MPIDI_NM_native_lite_funcs = {
    /* ours */
    .mpi_isend = MPIDI_LITE_mpi_isend,
#if LITE_HOST_BELOW(4, 1, 0)
    .isend_coll = MPIDI_LITE_isend_coll,
    .mpi_issend = MPIDI_LITE_mpi_issend,
#endif
    .mpi_cancel_send = MPIDI_LITE_mpi_cancel_send,
    .mpi_irecv = MPIDI_LITE_mpi_irecv,
    .mpi_imrecv = MPIDI_LITE_mpi_imrecv,
    .mpi_cancel_recv = MPIDI_LITE_mpi_cancel_recv,
    .mpi_psend_init = MPIDI_LITE_mpi_psend_init,
    .mpi_precv_init = MPIDI_LITE_mpi_precv_init,
    .mpi_improbe = MPIDI_LITE_mpi_improbe,
    .mpi_iprobe = MPIDI_LITE_mpi_iprobe,
    .rank_is_local = MPIDI_LITE_rank_is_local,
    .mpi_win_free = MPIDI_LITE_mpi_win_free,
    .mpi_win_complete = MPIDI_LITE_mpi_win_complete,
    .mpi_win_unlock = MPIDI_LITE_mpi_win_unlock,
    .mpi_win_unlock_all = MPIDI_LITE_mpi_win_unlock_all,
    .mpi_put = MPIDI_LITE_mpi_put,
    .mpi_get = MPIDI_LITE_mpi_get,
    .mpi_rput = MPIDI_LITE_mpi_rput,
    .mpi_rget = MPIDI_LITE_mpi_rget,
    /* nothing to add */
    .mpi_type_commit_hook = MPIDI_LITE_type_hook,
    .mpi_type_free_hook = MPIDI_LITE_type_hook,
    .mpi_op_commit_hook = MPIDI_LITE_op_commit_hook,
    .mpi_op_free_hook = MPIDI_LITE_op_free_hook,
    /* ch4's own, by its own name */
    .mpi_alloc_mem = MPIDIG_mpi_alloc_mem,
    .mpi_free_mem = MPIDIG_mpi_free_mem,
    .mpi_win_set_info = MPIDIG_mpi_win_set_info,
    .mpi_win_get_info = MPIDIG_mpi_win_get_info,
    .mpi_win_create = MPIDIG_mpi_win_create,
    .mpi_win_attach = MPIDIG_mpi_win_attach,
    .mpi_win_allocate_shared = MPIDIG_mpi_win_allocate_shared,
    .mpi_win_detach = MPIDIG_mpi_win_detach,
    .mpi_win_allocate = MPIDIG_mpi_win_allocate,
    .mpi_win_create_dynamic = MPIDIG_mpi_win_create_dynamic,
    /* ch4's fallback headers */
    .part_start = MPIDI_NM_part_start,
    .mpi_pready_range = MPIDI_NM_mpi_pready_range,
    .mpi_pready_list = MPIDI_NM_mpi_pready_list,
    .mpi_parrived = MPIDI_NM_mpi_parrived,
    .mpi_win_shared_query = MPIDI_NM_mpi_win_shared_query,
    .mpi_win_start = MPIDI_LITE_mpi_win_start,
    .mpi_win_post = MPIDI_NM_mpi_win_post,
    .mpi_win_wait = MPIDI_LITE_mpi_win_wait,
    .mpi_win_test = MPIDI_NM_mpi_win_test,
    .mpi_win_lock = MPIDI_LITE_mpi_win_lock,
    .mpi_win_fence = MPIDI_LITE_mpi_win_fence,
    .mpi_accumulate = MPIDI_LITE_mpi_accumulate,
    .mpi_win_flush_local = MPIDI_LITE_mpi_win_flush_local,
    .mpi_compare_and_swap = MPIDI_NM_mpi_compare_and_swap,
    .mpi_raccumulate = MPIDI_LITE_mpi_raccumulate,
    .mpi_rget_accumulate = MPIDI_LITE_mpi_rget_accumulate,
    .mpi_fetch_and_op = MPIDI_NM_mpi_fetch_and_op,
    .mpi_win_flush = MPIDI_LITE_mpi_win_flush,
    .mpi_win_flush_local_all = MPIDI_LITE_mpi_win_flush_local_all,
    .mpi_win_sync = MPIDI_NM_mpi_win_sync,
    .mpi_win_flush_all = MPIDI_LITE_mpi_win_flush_all,
    .mpi_get_accumulate = MPIDI_NM_mpi_get_accumulate,
    .mpi_win_lock_all = MPIDI_LITE_mpi_win_lock_all,
    .mpi_barrier = MPIDI_NM_mpi_barrier,
    .mpi_bcast = MPIDI_NM_mpi_bcast,
    .mpi_allreduce = MPIDI_LITE_mpi_allreduce,
    .mpi_allgather = MPIDI_NM_mpi_allgather,
    .mpi_allgatherv = MPIDI_LITE_mpi_allgatherv,
    .mpi_scatter = MPIDI_NM_mpi_scatter,
    .mpi_scatterv = MPIDI_NM_mpi_scatterv,
    .mpi_gather = MPIDI_LITE_mpi_gather,
    .mpi_gatherv = MPIDI_LITE_mpi_gatherv,
    .mpi_alltoall = MPIDI_NM_mpi_alltoall,
    .mpi_alltoallv = MPIDI_LITE_mpi_alltoallv,
    .mpi_alltoallw = MPIDI_LITE_mpi_alltoallw,
    .mpi_reduce = MPIDI_LITE_mpi_reduce,
    .mpi_reduce_scatter = MPIDI_NM_mpi_reduce_scatter,
    .mpi_reduce_scatter_block = MPIDI_NM_mpi_reduce_scatter_block,
    .mpi_scan = MPIDI_LITE_mpi_scan,
    .mpi_exscan = MPIDI_LITE_mpi_exscan,
    .mpi_neighbor_allgather = MPIDI_NM_mpi_neighbor_allgather,
    .mpi_neighbor_allgatherv = MPIDI_NM_mpi_neighbor_allgatherv,
    .mpi_neighbor_alltoallv = MPIDI_NM_mpi_neighbor_alltoallv,
    .mpi_neighbor_alltoallw = MPIDI_NM_mpi_neighbor_alltoallw,
    .mpi_neighbor_alltoall = MPIDI_NM_mpi_neighbor_alltoall,
    .mpi_ineighbor_allgather = MPIDI_NM_mpi_ineighbor_allgather,
    .mpi_ineighbor_allgatherv = MPIDI_NM_mpi_ineighbor_allgatherv,
    .mpi_ineighbor_alltoall = MPIDI_NM_mpi_ineighbor_alltoall,
    .mpi_ineighbor_alltoallv = MPIDI_NM_mpi_ineighbor_alltoallv,
    .mpi_ineighbor_alltoallw = MPIDI_NM_mpi_ineighbor_alltoallw,
    .mpi_ibarrier = MPIDI_NM_mpi_ibarrier,
    .mpi_ibcast = MPIDI_NM_mpi_ibcast,
    .mpi_iallgather = MPIDI_NM_mpi_iallgather,
    .mpi_iallgatherv = MPIDI_NM_mpi_iallgatherv,
    .mpi_iallreduce = MPIDI_NM_mpi_iallreduce,
    .mpi_ialltoall = MPIDI_NM_mpi_ialltoall,
    .mpi_ialltoallv = MPIDI_NM_mpi_ialltoallv,
    .mpi_ialltoallw = MPIDI_NM_mpi_ialltoallw,
    .mpi_iexscan = MPIDI_NM_mpi_iexscan,
    .mpi_igather = MPIDI_NM_mpi_igather,
    .mpi_igatherv = MPIDI_NM_mpi_igatherv,
    .mpi_ireduce_scatter_block = MPIDI_NM_mpi_ireduce_scatter_block,
    .mpi_ireduce_scatter = MPIDI_NM_mpi_ireduce_scatter,
    .mpi_ireduce = MPIDI_NM_mpi_ireduce,
    .mpi_iscan = MPIDI_NM_mpi_iscan,
    .mpi_iscatter = MPIDI_NM_mpi_iscatter,
    .mpi_iscatterv = MPIDI_NM_mpi_iscatterv,
};

int MPIDI_LITE_find_empty_entry(void)
{
    typedef void (*entry)(void);
    const struct {
        const void *table;
        size_t entries;
    } tables[] = {
        {&MPIDI_NM_lite_funcs, sizeof(MPIDI_NM_lite_funcs) / sizeof(entry)},
        {&MPIDI_NM_native_lite_funcs, sizeof(MPIDI_NM_native_lite_funcs) / sizeof(entry)},
    };
    int number = 0;

    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < tables[i].entries; k++, number++) {
            entry function;
            memcpy(&function, (const char *) tables[i].table + k * sizeof(entry), sizeof(entry));
            if (function == NULL)
                return number;
        }
    }
    return -1;
}
