/* Native receives: posting, matched receives, cancelling, and what follows when the data is there.
 */
#include "lite_impl.h"

/* Where the device is to put the data, and how much of it: the user's memory, contiguous or in
 * pieces, else a bounce buffer. Fills the request's fields. What the data needs is allocated now,
 * at posting time, as a handler may complete the receive. */
static int prepare_buffer(MPIR_Request *rreq, void *buf, MPI_Aint count, MPI_Datatype datatype,
                          void **data, size_t *bytes, size_t *pieces_count)
{
    int mpi_errno = MPI_SUCCESS;
    int dt_contig;
    size_t data_sz;
    MPI_Aint dt_true_lb;
    MPIR_Datatype *dt_ptr;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);

    MPIDI_LITE_REQUEST(rreq).bounce = NULL;
    MPIDI_LITE_REQUEST(rreq).in_pieces = 0;
    *data = MPIR_get_contig_ptr(buf, dt_true_lb);
    *bytes = data_sz;
    const bool on_gpu = MPIDI_LITE_is_gpu_memory(*data);
    if ((!dt_contig || on_gpu) && data_sz > 0) {
        void *bounce =
            on_gpu ? NULL : MPIDI_LITE_pieces(buf, count, datatype, data_sz, pieces_count);
        MPIDI_LITE_REQUEST(rreq).in_pieces = bounce != NULL;
        if (bounce == NULL)
            bounce = MPL_malloc(data_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(bounce == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
        MPIDI_LITE_REQUEST(rreq).bounce = bounce;
        MPIDI_LITE_REQUEST(rreq).buffer = buf;
        MPIDI_LITE_REQUEST(rreq).count = count;
        MPIDI_LITE_REQUEST(rreq).datatype = datatype;
        /* the user may free the type while the receive is pending */
        MPIR_Datatype_add_ref_if_not_builtin(datatype);
        *data = bounce;
    }

fn_exit:
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

static void release_buffer(MPIR_Request *rreq)
{
    if (MPIDI_LITE_REQUEST(rreq).bounce != NULL) {
        MPL_free(MPIDI_LITE_REQUEST(rreq).bounce);
        MPIDI_LITE_REQUEST(rreq).bounce = NULL;
        MPIDI_LITE_REQUEST(rreq).in_pieces = 0;
        MPIR_Datatype_release_if_not_builtin(MPIDI_LITE_REQUEST(rreq).datatype);
    }
    MPIDI_LITE_REQUEST(rreq).request = NULL;
}

/* Whether a message of so many bytes ends inside of a basic element, of a type whose elements have
 * one size. A pair (MPI_2INT) is two of them. (What the host tells of the elements of a type
 * divides by 0 where a struct has several types of one size.) */
static bool cuts_an_element(MPI_Datatype datatype, MPI_Aint bytes)
{
    MPIR_Datatype *type;

    MPIR_Datatype_get_ptr(datatype, type);
    if (type->builtin_element_size <= 0)
        return false;
    const MPI_Aint element = MPIDI_LITE_IS_PAIR_OF_ONE_SIZE(type->basic_type)
                                 ? type->builtin_element_size / 2
                                 : type->builtin_element_size;
    return bytes % element != 0;
}

void MPIDI_LITE_recv_done(MPIR_Request *rreq, const lite_status *status)
{
    const MPI_Aint bytes = (MPI_Aint) status->bytes;

    rreq->status.MPI_SOURCE = status->source;
    /* with the error bits: MPIC_Recv and its kin look for them there and take them out */
    rreq->status.MPI_TAG = status->tag;
    MPIR_STATUS_SET_COUNT(rreq->status, bytes);

    if (unlikely(status->error < 0))
        rreq->status.MPI_ERROR = MPIDI_LITE_error(status->error, status->peer, __func__, __LINE__);
    else
        rreq->status.MPI_ERROR = MPI_SUCCESS;

    if (likely(MPIDI_LITE_REQUEST(rreq).bounce == NULL)) {
        MPIDI_LITE_REQUEST(rreq).request = NULL;
        return;
    }
    /* a truncated message still delivers what fits, as it does without a derived datatype */
    if (!MPIDI_LITE_REQUEST(rreq).in_pieces && bytes > 0 &&
        (status->error == LITE_OK || status->error == LITE_ERR_TRUNCATE)) {
        MPI_Aint unpacked = 0;
        int mpi_errno = MPIDI_LITE_UNPACK(
            MPIDI_LITE_REQUEST(rreq).bounce, bytes, MPIDI_LITE_REQUEST(rreq).buffer,
            MPIDI_LITE_REQUEST(rreq).count, MPIDI_LITE_REQUEST(rreq).datatype, 0, &unpacked);
        if (rreq->status.MPI_ERROR == MPI_SUCCESS) {
            if (unlikely(mpi_errno != MPI_SUCCESS))
                rreq->status.MPI_ERROR = mpi_errno;
            else if (unlikely(unpacked != bytes))
                /* the message ends inside of a basic element of the type */
                MPIR_ERR_SET(rreq->status.MPI_ERROR, MPI_ERR_TYPE, "**dtypemismatch");
        }
    }
    /* In pieces the data is where it belongs already; and so are the bytes of a basic element that
     * a short message cuts, which unpacking leaves out. The error is the same. */
    if (MPIDI_LITE_REQUEST(rreq).in_pieces && rreq->status.MPI_ERROR == MPI_SUCCESS &&
        unlikely(cuts_an_element(MPIDI_LITE_REQUEST(rreq).datatype, bytes)))
        MPIR_ERR_SET(rreq->status.MPI_ERROR, MPI_ERR_TYPE, "**dtypemismatch");
    release_buffer(rreq);
}

int MPIDI_LITE_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                         MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av, MPIR_Request **request,
                         MPIR_Request *partner)
{
    int mpi_errno = MPI_SUCCESS;
    int buffer_errno;
    MPIR_Request *rreq = *request;
    void *data;
    size_t bytes, pieces_count = 0;
    lite_request *lite = NULL;
    lite_status status;
    int code;

    MPIR_FUNC_ENTER;
    /* the host holds the lock already when it posts the second half of an any-source receive */
    MPIDI_LITE_LOCK_RECV(partner);

    const int peer = MPIDI_LITE_peer(av);
    const lite_envelope envelope = MPIDI_LITE_recv_envelope(rank, tag, comm, attr);

    if (rreq == NULL) {
        rreq = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__RECV, MPIDI_LITE_VCI, 1);
        MPIR_ERR_CHKANDSTMT(rreq == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
    }
    buffer_errno = prepare_buffer(rreq, buf, count, datatype, &data, &bytes, &pieces_count);
    /* before it can be drained, and when nothing can fail any more that would take it back */
    MPIDI_REQUEST_SET_LOCAL(rreq, 0, partner);

    if (unlikely(buffer_errno != MPI_SUCCESS))
        code = LITE_ERR_NOMEM;
    else if (MPIDI_LITE_REQUEST(rreq).in_pieces)
        code = lite_irecvv(data, pieces_count, bytes, peer, &envelope, rreq, &status, &lite);
    else
        code = lite_irecv(data, bytes, peer, &envelope, rreq, &status, &lite);
    if (unlikely(code < 0)) {
        /* MPI_Irecv of this host takes the handle of the request before it looks at the error, so
         * there has to be one: the error is reported where the user waits. */
        status.error = code;
        status.source = envelope.source == LITE_ANY_SOURCE ? MPI_PROC_NULL : envelope.source;
        status.tag = tag;
        status.peer = peer;
        status.bytes = 0;
    }

    /* Keeps the context id from being given to another communicator whose messages would match this
     * receive, and says whose error handler an error belongs to that is found when the user waits.
     */
    if ((code == LITE_PENDING || status.error < 0 || MPIDI_LITE_REQUEST(rreq).bounce != NULL) &&
        rreq->comm == NULL) {
        rreq->comm = comm;
        MPIR_Comm_add_ref(comm);
    }
    if (code == LITE_PENDING) {
        MPIR_Request_add_ref(rreq); /* ours, until it completes */
        MPIDI_LITE_REQUEST(rreq).request = lite;
    } else {
        MPIDI_LITE_recv_done(rreq, &status);
        if (unlikely(buffer_errno != MPI_SUCCESS)) /* the device has no sentence for it */
            rreq->status.MPI_ERROR = buffer_errno;
        if (likely(partner == NULL))
            MPIR_cc_set(&rreq->cc, 0);
        else
            MPIDI_LITE_complete_later(rreq);
    }
    *request = rreq;

fn_exit:
    MPIDI_LITE_UNLOCK_RECV(partner);
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

/* `message` came from improbe with two references, the user's and ours, and becomes the receive's
 * request. */
int MPIDI_LITE_mpi_imrecv(void *buf, MPI_Aint count, MPI_Datatype datatype, MPIR_Request *message)
{
    int mpi_errno = MPI_SUCCESS;
    void *data;
    size_t bytes, pieces_count = 0;
    lite_request *lite = NULL;
    lite_status status;
    int code;

    MPIR_FUNC_ENTER;
    MPIDI_LITE_LOCK();

    mpi_errno = prepare_buffer(message, buf, count, datatype, &data, &bytes, &pieces_count);
    MPIR_ERR_CHECK(mpi_errno);

    if (MPIDI_LITE_REQUEST(message).in_pieces)
        code = lite_imrecvv(MPIDI_LITE_REQUEST(message).message, data, pieces_count, bytes, message,
                            &status, &lite);
    else
        code =
            lite_imrecv(MPIDI_LITE_REQUEST(message).message, data, bytes, message, &status, &lite);
    if (unlikely(code == LITE_ERR_NOMEM)) {
        release_buffer(message);
        mpi_errno = MPIDI_LITE_error(code, -1, __func__, __LINE__);
        goto fn_fail;
    }
    MPIDI_LITE_REQUEST(message).message = NULL;
    if (code == LITE_PENDING) {
        MPIDI_LITE_REQUEST(message).request = lite;
    } else {
        if (unlikely(code < 0)) {
            /* The message is gone. The request is already the user's, so the error is reported
             * where he waits for it. */
            status.error = code;
            status.source = message->status.MPI_SOURCE;
            status.tag = message->status.MPI_TAG;
            status.peer = -1;
            status.bytes = 0;
        }
        MPIDI_LITE_recv_done(message, &status);
        MPIDI_LITE_COMPLETE(message);
    }

fn_exit:
    MPIDI_LITE_UNLOCK();
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    /* The user still has the message, and may try again: the host takes it for one by this. */
    message->kind = MPIR_REQUEST_KIND__MPROBE;
    goto fn_exit;
}

/* ---- any-source receives beside shared memory ----
 *
 * The host posts such a receive twice, first in shared memory, then here, each request the other's
 * partner; the user has the one in shared memory. Who takes it is decided by the device, in its
 * gate: a match here, in the handler as well, is final, and shared memory asks by lite_cancel_recv
 * before it takes a message. So the handler needs nothing of the host's: until the completion is
 * drained, the partner may stand in the host's queue, where it can match nothing. The host's marks,
 * all under its lock: a partner with the cancel bit is out of the host's queue
 * (MPIDI_anysrc_try_cancel_partner). */

#ifndef MPIDI_CH4_DIRECT_NETMOD
void MPIDI_LITE_settle_partner(MPIR_Request *rreq)
{
    int is_cancelled;

    if (likely(MPIDI_LITE_PARTNER(rreq) == NULL))
        return;
    MPIDI_anysrc_try_cancel_partner(rreq, &is_cancelled);
    MPIR_Assert(is_cancelled);
    /* The user's reference to ours goes with the partner, unless MPI_Cancel, which came after the
     * match, has dropped it. */
    if (MPIR_Object_get_ref(rreq) == 1)
        MPIR_Request_add_ref(rreq);
    MPIDI_anysrc_free_partner(rreq);
}
#endif

#ifndef MPIDI_CH4_DIRECT_NETMOD
static MPIR_Request *complete_later = NULL; /* chained by their field `buffer` */

void MPIDI_LITE_complete_later(MPIR_Request *rreq)
{
    MPIR_Request_add_ref(rreq); /* ours, until it completes */
    MPIDI_LITE_REQUEST(rreq).buffer = complete_later;
    complete_later = rreq;
    LITE_HOT_SET(skip, 0);
}

bool MPIDI_LITE_complete_now(void)
{
    if (likely(complete_later == NULL))
        return false;
    while (complete_later != NULL) {
        MPIR_Request *rreq = complete_later;
        complete_later = MPIDI_LITE_REQUEST(rreq).buffer;
        MPIDI_LITE_settle_partner(rreq);
        MPIDI_LITE_COMPLETE(rreq);
    }
    return true;
}
#endif

/* The caller holds the VCI lock: MPI_Cancel (MPIDI_cancel_recv_safe), or shared memory with a
 * message for our partner. */
int MPIDI_LITE_mpi_cancel_recv(MPIDI_LITE_CANCEL_RECV_PARAMETERS)
{
    MPIR_FUNC_ENTER;

    /* Cancelling one that has been matched does nothing: it completes as usual, maybe it already
     * waits to be drained. */
    if (!MPIR_Request_is_complete(rreq)) {
        if (MPIDI_LITE_REQUEST(rreq).request != NULL &&
            lite_cancel_recv(MPIDI_LITE_REQUEST(rreq).request) == 1) {
            release_buffer(rreq);
            MPIR_STATUS_SET_CANCEL_BIT(rreq->status, TRUE);
            MPIR_STATUS_SET_COUNT(rreq->status, 0);
            MPIDI_LITE_COMPLETE(rreq);
        }
#ifndef MPIDI_CH4_DIRECT_NETMOD
        else if (MPIDI_LITE_PARTNER(rreq) != NULL) {
            /* Takes the partner out of the host's queue, so that MPI_Cancel does not complete it as
             * cancelled: it waits for our completion. */
            MPIR_Request *partner = MPIDI_LITE_PARTNER(rreq);
            int is_cancelled;
            MPIDI_anysrc_try_cancel_partner(rreq, &is_cancelled);
            MPIDI_LITE_KEEP_FROM_CANCEL(partner);
        }
#endif
    }

    MPIR_FUNC_EXIT;
    return MPI_SUCCESS;
}
