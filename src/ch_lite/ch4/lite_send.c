/* Native sends: MPI buffers, datatypes and error flags on one side, lite_isend on the other. */
#include "lite_impl.h"

static inline lite_envelope envelope_of(const MPIR_Comm *comm, int attr, int tag)
{
    return (lite_envelope){
        .context = (uint32_t) (comm->context_id + MPIDI_LITE_CONTEXT_OFFSET(attr)),
        .source = comm->rank,
        .tag = tag};
}

/* send_to(), of anything. */
static int send_any(const void *buf, MPI_Aint count, MPI_Datatype datatype, int tag,
                    MPIR_Comm *comm, int attr, const MPIDI_av_entry_t *av, MPIR_Request **request,
                    unsigned flags) __attribute__((noinline));
static int send_any(const void *buf, MPI_Aint count, MPI_Datatype datatype, int tag,
                    MPIR_Comm *comm, int attr, const MPIDI_av_entry_t *av, MPIR_Request **request,
                    unsigned flags)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *sreq = *request;
    void *packed = NULL; /* or the list of pieces */
    struct iovec *pieces = NULL;
    size_t pieces_count = 0;
    lite_request *lite = NULL;
    int dt_contig, code;
    size_t data_sz;
    MPI_Aint dt_true_lb;
    MPIR_Datatype *dt_ptr;

    const int peer = MPIDI_LITE_peer(av);
    const lite_envelope envelope = envelope_of(comm, attr, tag);

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);

    const void *data = MPIR_get_contig_ptr(buf, dt_true_lb);
    const bool on_gpu = MPIDI_LITE_is_gpu_memory(data);
    if (!dt_contig && !on_gpu && data_sz > 0)
        packed = pieces = MPIDI_LITE_pieces(buf, count, datatype, data_sz, &pieces_count);
    if ((!dt_contig || on_gpu) && data_sz > 0 && pieces == NULL) {
        MPI_Aint packed_bytes;
        packed = MPL_malloc(data_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(packed == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
        mpi_errno = MPIDI_LITE_PACK(buf, count, datatype, 0, packed, data_sz, &packed_bytes);
        MPIR_ERR_CHECK(mpi_errno);
        MPIR_Assert(packed_bytes == (MPI_Aint) data_sz);
        data = packed;
    }

    /* The device takes the cookie with the call, so the request must exist before we know whether
     * the send will be pending. */
    if (sreq == NULL) {
        sreq = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__SEND, MPIDI_LITE_VCI, 1);
        MPIR_ERR_CHKANDSTMT(sreq == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
    }

    if (pieces != NULL)
        code = lite_isendv(pieces, pieces_count, data_sz, peer, &envelope, flags, sreq, &lite);
    else
        code = lite_isend(data, data_sz, peer, &envelope, flags, sreq, &lite);
    MPIDI_LITE_CHECK(code, peer);

    if (code == LITE_PENDING) {
        MPIR_Request_add_ref(sreq); /* ours, until it completes */
        MPIDI_LITE_REQUEST(sreq).request = lite;
        MPIDI_LITE_REQUEST(sreq).bounce = packed;
        /* an error that shows up later belongs to this communicator's error handler */
        if (sreq->comm == NULL) {
            sreq->comm = comm;
            MPIR_Comm_add_ref(comm);
        }
    } else {
        MPIR_cc_set(&sreq->cc, 0);
        MPL_free(packed);
    }
    *request = sreq;

fn_exit:
    return mpi_errno;
fn_fail:
    MPL_free(packed);
    if (sreq != NULL && *request == NULL)
        MPIDI_CH4_REQUEST_FREE(sreq);
    goto fn_exit;
}

/* Sends to the process of `av`. On success *request is a pending or a completed request; a given
 * *request is used, as the host's work queues want it. VCI lock held. */
static inline int send_to(const void *buf, MPI_Aint count, MPI_Datatype datatype, int tag,
                          MPIR_Comm *comm, int attr, const MPIDI_av_entry_t *av,
                          MPIR_Request **request, unsigned flags)
{
    int contig;
    size_t bytes;
    MPI_Aint true_lb;
    MPIR_Datatype *type;

    /* Most small ones need no request of their own: the host has one for all that are complete. */
    MPIDI_Datatype_get_info(count, datatype, contig, bytes, type, true_lb);
    const void *data = MPIR_get_contig_ptr(buf, true_lb);
    if (likely(*request == NULL && contig && flags == 0 && !MPIDI_LITE_is_gpu_memory(data))) {
        const lite_envelope envelope = envelope_of(comm, attr, tag);
        const int peer = MPIDI_LITE_peer(av);
        const int code = lite_isend(data, bytes, peer, &envelope, 0, NULL, NULL);
        if (likely(code == LITE_OK)) {
            *request = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);
            return MPI_SUCCESS;
        }
        if (unlikely(code < 0))
            return MPIDI_LITE_error(code, peer, __func__, __LINE__);
    }
    return send_any(buf, count, datatype, tag, comm, attr, av, request, flags);
}

void MPIDI_LITE_send_done(MPIR_Request *sreq, const lite_status *status)
{
    MPL_free(MPIDI_LITE_REQUEST(sreq).bounce);
    MPIDI_LITE_REQUEST(sreq).bounce = NULL;
    MPIDI_LITE_REQUEST(sreq).request = NULL;
    if (unlikely(status->error < 0))
        sreq->status.MPI_ERROR = MPIDI_LITE_error(status->error, status->peer, __func__, __LINE__);
}

/* A collective tells its failure to the other side in two bits of the tag. They are outside of
 * matching (see init_local), and the receiver finds them in status.MPI_TAG. */

#if LITE_HOST_SINCE(4, 1, 0)
/* One function for all sends, which the bits of `attr` tell apart. */
int MPIDI_LITE_mpi_isend(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                         MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request)
{
    int mpi_errno;
    const unsigned flags = MPIR_PT2PT_ATTR_GET_SYNCFLAG(attr) ? LITE_SEND_SYNC : 0;
    MPIR_FUNC_ENTER;

    if (unlikely(attr & MPIDI_LITE_ATTR_PROC_FAILED))
        MPIR_TAG_SET_PROC_FAILURE_BIT(tag);
    else if (unlikely(attr & MPIDI_LITE_ATTR_FAILED))
        MPIR_TAG_SET_ERROR_BIT(tag);

    MPIDI_LITE_LOCK();
    mpi_errno = send_to(buf, count, datatype, tag, comm, attr, av, request, flags);
    if (mpi_errno == MPI_SUCCESS)
        MPIDI_LITE_SENT(*request);
    MPIDI_LITE_UNLOCK();

    MPIR_FUNC_EXIT;
    return mpi_errno;
}
#else
int MPIDI_LITE_mpi_isend(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                         MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request)
{
    int mpi_errno;
    MPIR_FUNC_ENTER;

    MPIDI_LITE_LOCK();
    mpi_errno = send_to(buf, count, datatype, tag, comm, attr, av, request, 0);
    MPIDI_LITE_UNLOCK();

    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_mpi_issend(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                          MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request)
{
    int mpi_errno;
    MPIR_FUNC_ENTER;

    MPIDI_LITE_LOCK();
    mpi_errno = send_to(buf, count, datatype, tag, comm, attr, av, request, LITE_SEND_SYNC);
    MPIDI_LITE_UNLOCK();

    MPIR_FUNC_EXIT;
    return mpi_errno;
}

int MPIDI_LITE_isend_coll(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                          MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request,
                          MPIR_Errflag_t *errflag)
{
    int mpi_errno;
    MPIR_FUNC_ENTER;

    switch (*errflag) {
    case MPIR_ERR_NONE: break;
    case MPIR_ERR_PROC_FAILED: MPIR_TAG_SET_PROC_FAILURE_BIT(tag); break;
    default: MPIR_TAG_SET_ERROR_BIT(tag);
    }

    MPIDI_LITE_LOCK();
    mpi_errno = send_to(buf, count, datatype, tag, comm, attr, av, request, 0);
    MPIDI_LITE_UNLOCK();

    MPIR_FUNC_EXIT;
    return mpi_errno;
}
#endif

/* No send is cancelled, as in MPICH's other ch4 modules: one that is on its way would need the
 * receiver's consent. MPI_Wait of one that nobody receives (rendezvous, synchronous) waits. */
int MPIDI_LITE_mpi_cancel_send(MPIR_Request *sreq)
{
    return MPI_SUCCESS;
}
