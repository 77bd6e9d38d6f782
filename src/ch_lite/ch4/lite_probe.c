/* Native probe and matched probe. */
#include "lite_impl.h"

/* MPI_ERROR stays as it is: these calls are not among those that may write it. */
static void set_status(MPI_Status *status, const lite_status *lite)
{
    const MPI_Aint bytes = (MPI_Aint) lite->bytes;
    status->MPI_SOURCE = lite->source;
    status->MPI_TAG = lite->tag;
    MPIR_STATUS_SET_COUNT(*status, bytes);
    MPIR_STATUS_SET_CANCEL_BIT(*status, FALSE);
}

int MPIDI_LITE_mpi_iprobe(int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                          int *flag, MPI_Status *status)
{
    int mpi_errno = MPI_SUCCESS;
    lite_status lite;

    MPIR_FUNC_ENTER;
    MPIDI_LITE_LOCK();

    const int peer = MPIDI_LITE_peer(av);
    const lite_envelope envelope = MPIDI_LITE_recv_envelope(source, tag, comm, attr);
    const int found = lite_iprobe(peer, &envelope, &lite);
    MPIDI_LITE_CHECK(found, peer);

    if (found && status != MPI_STATUS_IGNORE)
        set_status(status, &lite);
    *flag = found;

fn_exit:
    MPIDI_LITE_UNLOCK();
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_mpi_improbe(int source, int tag, MPIR_Comm *comm, int attr, MPIDI_av_entry_t *av,
                           int *flag, MPIR_Request **message, MPI_Status *status)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *req = NULL;
    lite_message *detached = NULL;
    lite_status lite;

    MPIR_FUNC_ENTER;
    MPIDI_LITE_LOCK();

    const int peer = MPIDI_LITE_peer(av);
    const lite_envelope envelope = MPIDI_LITE_recv_envelope(source, tag, comm, attr);
    const int found = lite_improbe(peer, &envelope, &lite, &detached);
    MPIDI_LITE_CHECK(found, peer);

    if (found) {
        /* two references: the user's, and ours until MPI_Mrecv is complete */
        req = MPIR_Request_create_from_pool(MPIR_REQUEST_KIND__MPROBE, MPIDI_LITE_VCI, 2);
        MPIR_ERR_CHKANDSTMT(req == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
        MPIDI_LITE_REQUEST(req).request = NULL;
        MPIDI_LITE_REQUEST(req).bounce = NULL;
        MPIDI_LITE_REQUEST(req).message = detached;
        req->comm = comm;
        MPIR_Comm_add_ref(comm);
        set_status(&req->status, &lite);
        if (status != MPI_STATUS_IGNORE)
            set_status(status, &lite);
    }
    *flag = found;
    *message = req;

fn_exit:
    MPIDI_LITE_UNLOCK();
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}
