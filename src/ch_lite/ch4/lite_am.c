/* The active-message lane under ch4's fallbacks (one-sided, partitioned, collective helpers): header and data over lite_am_isend, ordered
 * per peer, delivered whole and only in ordinary context, as the handlers touch the host's data. */
#include "lite_impl.h"

void MPIDI_LITE_am_deliver(int peer, uint32_t handler, const void *header, size_t header_bytes,
                           const void *data, size_t data_bytes, void *arg)
{
    if (unlikely(handler == MPIDI_LITE_AM_FIRST_WORDS)) {
        MPIDI_LITE_hear_first_words(peer, header, header_bytes);
        return;
    }
    int attr = 0;               /* not local, not asynchronous */

    /* The number has come from the network: it must not index past the table, nor select an empty entry. */
    MPIR_Assertp(handler < MPIDI_AM_HANDLERS_MAX);
    MPIR_Assertp(MPIDIG_global.target_msg_cbs[handler] != NULL);

    MPIDIG_AM_ATTR_SET_VCIS(attr, MPIDI_LITE_VCI, MPIDI_LITE_VCI);
    /* The host's prototype is not const, its handlers only read. */
    MPIDIG_global.target_msg_cbs[handler] ((void *) header, (void *) data, (MPI_Aint) data_bytes,
                                           attr, NULL);
}

void MPIDI_LITE_am_send_done(MPIDI_LITE_am_send_t * send)
{
    MPIR_Request *sreq = send->sreq;
    const int handler = send->handler;

    MPL_free(send->packed);
    MPL_free(send);
    /* last: it may free sreq or send the next message */
    MPIDIG_global.origin_cbs[handler] (sreq);
}

int MPIDI_LITE_am_isend(int rank, MPIR_Comm * comm, int handler_id, const void *am_hdr,
                        MPI_Aint am_hdr_sz, const void *data, MPI_Aint count,
                        MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request * sreq)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_LITE_am_send_t *send = NULL;
    lite_request *lite = NULL;
    int dt_contig, code;
    size_t data_sz;
    MPI_Aint dt_true_lb;
    MPIR_Datatype *dt_ptr;

    MPIR_FUNC_ENTER;
    MPIR_Assert(src_vci == MPIDI_LITE_VCI && dst_vci == MPIDI_LITE_VCI);

    const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, rank));

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);

    send = MPL_malloc(sizeof(*send), MPL_MEM_OTHER);
    MPIR_ERR_CHKANDJUMP(send == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    send->sreq = sreq;
    send->handler = handler_id;
    send->packed = NULL;

    const void *send_data = MPIR_get_contig_ptr(data, dt_true_lb);
    if (!dt_contig && data_sz > 0) {
        MPI_Aint packed_bytes;
        send->packed = MPL_malloc(data_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(send->packed == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
        mpi_errno =
            MPIR_Typerep_pack(data, count, datatype, 0, send->packed, data_sz, &packed_bytes);
        MPIR_ERR_CHECK(mpi_errno);
        MPIR_Assert(packed_bytes == (MPI_Aint) data_sz);
        send_data = send->packed;
    }

    code = lite_am_isend(peer, (uint32_t) handler_id, am_hdr, (size_t) am_hdr_sz, send_data, data_sz,
                         MPIDI_LITE_am_cookie(send), &lite);
    MPIDI_LITE_CHECK(code, peer);
    if (code == LITE_OK)
        MPIDI_LITE_am_send_done(send);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    if (send)
        MPL_free(send->packed);
    MPL_free(send);
    goto fn_exit;
}

int MPIDI_LITE_am_isend_reply(MPIR_Comm * comm, int rank, int handler_id, const void *am_hdr,
                              MPI_Aint am_hdr_sz, const void *data, MPI_Aint count,
                              MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request * sreq)
{
    return MPIDI_LITE_am_isend(rank, comm, handler_id, am_hdr, am_hdr_sz, data, count, datatype,
                               src_vci, dst_vci, sreq);
}

int MPIDI_LITE_am_send_hdr(int rank, MPIR_Comm * comm, int handler_id, const void *am_hdr,
                           MPI_Aint am_hdr_sz, int src_vci, int dst_vci)
{
    int mpi_errno = MPI_SUCCESS;
    lite_request *lite = NULL;
    int code;

    MPIR_FUNC_ENTER;
    MPIR_Assert(src_vci == MPIDI_LITE_VCI && dst_vci == MPIDI_LITE_VCI);

    const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, rank));
    code = lite_am_isend(peer, (uint32_t) handler_id, am_hdr, (size_t) am_hdr_sz, NULL, 0, NULL, &lite);
    MPIDI_LITE_CHECK(code, peer);
    /* the device copies headers, so there is nothing to wait for */
    MPIR_Assert(code == LITE_OK);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_am_send_hdr_reply(MPIR_Comm * comm, int rank, int handler_id, const void *am_hdr,
                                 MPI_Aint am_hdr_sz, int src_vci, int dst_vci)
{
    return MPIDI_LITE_am_send_hdr(rank, comm, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci);
}

/* Only asked for by the rendezvous of ch4's own point-to-point, which is not in use here; NULL selects its default. */
MPIDIG_recv_data_copy_cb MPIDI_LITE_am_get_data_copy_cb(uint32_t attr)
{
    return NULL;
}

MPI_Aint MPIDI_LITE_am_hdr_max_sz(void)
{
    return LITE_AM_HEADER_MAX;
}

MPI_Aint MPIDI_LITE_am_eager_limit(void)
{
    return MPIDI_LITE_AM_EAGER_BYTES;
}

MPI_Aint MPIDI_LITE_am_eager_buf_limit(void)
{
    return MPIDI_LITE_AM_EAGER_BYTES;
}

bool MPIDI_LITE_am_check_eager(MPI_Aint am_hdr_sz, MPI_Aint data_sz, const void *data,
                               MPI_Aint count, MPI_Datatype datatype, MPIR_Request * sreq)
{
    return am_hdr_sz + data_sz <= MPIDI_LITE_AM_EAGER_BYTES;
}

void MPIDI_LITE_am_request_init(MPIR_Request * req)
{
}

void MPIDI_LITE_am_request_finalize(MPIR_Request * req)
{
}
