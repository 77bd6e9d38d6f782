/* Active messages under ch4's fallbacks (one-sided, partitioned, collective helpers):
 * header and data over lite_am_isend, ordered per peer, delivered whole and only in ordinary
 * context, as the handlers touch the host's data. */
#include "lite_impl.h"
#include "lite_rma.h"

/* ---- what comes from a process of another job ----
 *
 * The host's handlers trust what they get: lengths, windows, ranks, and addresses of requests that
 * have gone out with a message and come back. All of that is checked here first. What remains: ch4
 * lets the origin of a put or accumulate name any place by displacement and datatype, so within a
 * window a process of another job is trusted as a rank of the job is. */

/* Whether it is the address of a request of the host's that is in use. Nothing is read before the
 * address is known to be that of a request. */
static bool is_request(const MPIR_Request *req, MPIR_Request_kind_t kind)
{
    const uintptr_t address = (uintptr_t) req;

    for (int pool = 0; pool < MPIR_REQUEST_NUM_POOLS; pool++) {
        const MPIR_Object_alloc_t *mem = &MPIR_Request_mem[pool];
        const size_t size = (size_t) mem->size;
        uintptr_t base = (uintptr_t) mem->direct;
        bool inside = mem->initialized && address >= base &&
                      address - base < size * (size_t) mem->direct_size;
        for (int block = 0; !inside && block < mem->indirect_size; block++) {
            base = (uintptr_t) mem->indirect[block];
            inside = base != 0 && address >= base && address - base < size * REQUEST_NUM_INDICES;
        }
        if (inside)
            return (address - base) % size == 0 && MPIR_Object_get_ref(req) > 0 &&
                   req->kind == kind;
    }
    return false;
}

bool MPIDI_LITE_is_in(MPIR_Comm *comm, int rank, int peer)
{
    return rank >= 0 && rank < comm->remote_size &&
           MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, rank)) == peer;
}

/* The rank that the peer says it is in the window that it names. */
static bool is_at_window(uint64_t id, int rank, int peer)
{
    const MPIR_Win *win = MPIDIU_map_lookup(MPIDI_global.win_map, id);

    return win != NULL && win != MPIDIU_MAP_NOT_FOUND &&
           MPIDI_LITE_is_in(win->comm_ptr, rank, peer);
}

/* A request of a put, get or accumulate, of ours or at our window, in a window with the peer. */
static bool is_access_with(const MPIR_Request *req, int peer)
{
    if (!is_request(req, MPIR_REQUEST_KIND__RMA) || req->u.rma.win == NULL)
        return false;
    MPIR_Comm *comm = req->u.rma.win->comm_ptr;
    for (int rank = 0; rank < comm->remote_size; rank++)
        if (MPIDI_LITE_is_in(comm, rank, peer))
            return true;
    return false;
}

/* A partitioned send to the peer, or receive from it. The host's placeholder for a send that came
 * before its receive has no communicator. */
static bool is_partitioned_with(const MPIR_Request *req, MPIR_Request_kind_t kind, int peer)
{
    if (!is_request(req, kind) || req->comm == NULL)
        return false;
    return MPIDI_LITE_is_in(req->comm,
                            kind == MPIR_REQUEST_KIND__PART_SEND
                                ? MPIDI_PART_REQUEST(req, u.send.dest)
                                : MPIDI_LITE_PART_SOURCE(req),
                            peer);
}

/* Of a flattened datatype that comes behind the header, or as the data. */
static bool is_flattened(int bytes, size_t behind)
{
    return bytes >= 0 && (size_t) bytes == behind;
}

int MPIDI_LITE_am_check(int peer, uint32_t handler, const void *header, size_t header_bytes,
                        uint64_t data_bytes)
{
    bool good = false;

/* Leaves when the header is too short for its type, otherwise names it. */
#define HEADER(type_, name_)                            \
    if (header_bytes < sizeof(type_))                   \
        return LITE_NOT_A_MEMBER;                       \
    const type_ *name_ = header;                        \
    const size_t behind = header_bytes - sizeof(type_); \
    (void) behind

    if (handler == MPIDI_LITE_AM_FIRST_WORDS)
        return MPIDI_LITE_may_carry(header, header_bytes, data_bytes) ? LITE_MEMBER
                                                                      : LITE_NOT_A_MEMBER;
    if (handler == MPIDI_LITE_AM_ACCUMULATE)
        return MPIDI_LITE_may_accumulate(peer, header, header_bytes, data_bytes)
                   ? LITE_MEMBER
                   : LITE_NOT_A_MEMBER;
    if (handler >= MPIDI_AM_HANDLERS_MAX || MPIDIG_global.target_msg_cbs[handler] == NULL)
        return LITE_NOT_A_MEMBER;
    switch (handler) {
    case MPIDIG_PUT_REQ: {
        HEADER(MPIDIG_put_msg_t, put);
        good = is_at_window(put->win_id, put->src_rank, peer) &&
               is_flattened(put->flattened_sz, behind);
        break;
    }
    case MPIDIG_PUT_DT_REQ: {
        HEADER(MPIDIG_put_msg_t, put);
        good = is_at_window(put->win_id, put->src_rank, peer) &&
               is_flattened(put->flattened_sz, data_bytes);
        break;
    }
    case MPIDIG_GET_REQ: {
        HEADER(MPIDIG_get_msg_t, get);
        good = is_at_window(get->win_id, get->src_rank, peer) &&
               is_flattened(get->flattened_sz, data_bytes);
        break;
    }
    case MPIDIG_ACC_REQ:
    case MPIDIG_GET_ACC_REQ: {
        HEADER(MPIDIG_acc_req_msg_t, acc);
        good = is_at_window(acc->win_id, acc->src_rank, peer) &&
               is_flattened(acc->flattened_sz, behind);
        break;
    }
    case MPIDIG_ACC_DT_REQ:
    case MPIDIG_GET_ACC_DT_REQ: {
        HEADER(MPIDIG_acc_req_msg_t, acc);
        good = is_at_window(acc->win_id, acc->src_rank, peer) &&
               is_flattened(acc->flattened_sz, data_bytes);
        break;
    }
    case MPIDIG_CSWAP_REQ: {
        HEADER(MPIDIG_cswap_req_msg_t, cswap);
        good = is_at_window(cswap->win_id, cswap->src_rank, peer);
        break;
    }
    case MPIDIG_PUT_ACK:
    case MPIDIG_CSWAP_ACK:
    case MPIDIG_ACC_ACK:
    case MPIDIG_GET_ACC_ACK:
    case MPIDIG_PUT_DAT_REQ:
    case MPIDIG_ACC_DAT_REQ:
    case MPIDIG_GET_ACC_DAT_REQ: {
        /* each of these is a request's address and nothing else */
        HEADER(MPIDIG_put_ack_msg_t, ack);
        good = is_access_with(ack->preq_ptr, peer);
        break;
    }
    case MPIDIG_GET_ACK: {
        HEADER(MPIDIG_get_ack_msg_t, ack);
        good = is_access_with(ack->greq_ptr, peer);
        break;
    }
    case MPIDIG_PUT_DT_ACK:
    case MPIDIG_ACC_DT_ACK:
    case MPIDIG_GET_ACC_DT_ACK: {
        HEADER(MPIDIG_put_dt_ack_msg_t, ack);
        good = is_access_with(ack->origin_preq_ptr, peer);
        break;
    }
    case MPIDIG_WIN_COMPLETE:
    case MPIDIG_WIN_POST:
    case MPIDIG_WIN_LOCK:
    case MPIDIG_WIN_LOCK_ACK:
    case MPIDIG_WIN_UNLOCK:
    case MPIDIG_WIN_UNLOCK_ACK:
    case MPIDIG_WIN_LOCKALL:
    case MPIDIG_WIN_LOCKALL_ACK:
    case MPIDIG_WIN_UNLOCKALL:
    case MPIDIG_WIN_UNLOCKALL_ACK: {
        HEADER(MPIDIG_win_cntrl_msg_t, control);
        good = is_at_window(control->win_id, (int) control->origin_rank, peer);
        break;
    }
    case MPIDIG_PART_SEND_INIT: {
        HEADER(MPIDIG_part_send_init_msg_t, init);
        return MPIDI_LITE_is_member(peer, init->context_id, init->src_rank);
    }
    case MPIDIG_PART_CTS: {
        HEADER(MPIDIG_part_cts_msg_t, cts);
        good = is_partitioned_with(cts->sreq_ptr, MPIR_REQUEST_KIND__PART_SEND, peer);
        break;
    }
    case MPIDIG_PART_SEND_DATA: {
        HEADER(MPIDIG_part_send_data_msg_t, part);
        /* the host reads as many bytes as were announced */
        good = is_partitioned_with(part->rreq_ptr, MPIR_REQUEST_KIND__PART_RECV, peer) &&
               MPIDIG_PART_REQUEST(part->rreq_ptr, peer_req_ptr) != NULL &&
               (uint64_t) MPIDIG_PART_REQUEST(part->rreq_ptr, u.recv).sdata_size == data_bytes;
        break;
    }
    case MPIDIG_COMM_ABORT:
        if (header_bytes < sizeof(int))
            return LITE_NOT_A_MEMBER;
        return MPIDI_LITE_shares_a_communicator(peer) ? LITE_MEMBER : LITE_NO_COMMUNICATOR;
    default:
        /* ch4's own point to point, which is not in use */
        break;
    }
#undef HEADER
    return good ? LITE_MEMBER : LITE_NOT_A_MEMBER;
}

void MPIDI_LITE_am_deliver(int peer, uint32_t handler, const void *header, size_t header_bytes,
                           const void *data, size_t data_bytes, void *arg)
{
    if (handler == MPIDI_LITE_AM_ACCUMULATE) {
        MPIDI_LITE_do_accumulate(header, header_bytes, data, data_bytes);
        return;
    }
    if (unlikely(handler == MPIDI_LITE_AM_FIRST_WORDS)) {
        MPIDI_LITE_hear_first_words(peer, header, header_bytes, data, data_bytes);
        return;
    }
    int attr = 0; /* not local, not asynchronous */

    /* The number has come from the network: it must not index past the table, nor select an empty
     * entry. */
    MPIR_Assertp(handler < MPIDI_AM_HANDLERS_MAX);
    MPIR_Assertp(MPIDIG_global.target_msg_cbs[handler] != NULL);

    MPIDIG_AM_ATTR_SET_VCIS(attr, MPIDI_LITE_VCI, MPIDI_LITE_VCI);
    /* The host's prototype is not const, its handlers only read. */
    MPIDIG_global.target_msg_cbs[handler]((void *) header, (void *) data, (MPI_Aint) data_bytes,
                                          attr, NULL);
}

void MPIDI_LITE_am_send_done(MPIDI_LITE_am_send_t *send)
{
    MPIR_Request *sreq = send->sreq;
    const int handler = send->handler;

    MPL_free(send->packed);
    MPL_free(send);
    /* last: it may free sreq or send the next message */
    if (sreq != NULL)
        MPIDIG_global.origin_cbs[handler](sreq);
}

MPIDI_LITE_am_send_t *MPIDI_LITE_am_copy_to_send(const void *data, size_t bytes)
{
    MPIDI_LITE_am_send_t *send = MPL_calloc(1, sizeof(*send), MPL_MEM_OTHER);

    if (send == NULL)
        return NULL;
    send->packed = MPL_malloc(bytes, MPL_MEM_BUFFER);
    if (send->packed == NULL) {
        MPL_free(send);
        return NULL;
    }
    memcpy(send->packed, data, bytes);
    return send;
}

int MPIDI_LITE_am_isend(int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr,
                        MPI_Aint am_hdr_sz, const void *data, MPI_Aint count, MPI_Datatype datatype,
                        int src_vci, int dst_vci, MPIR_Request *sreq)
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
    if ((!dt_contig || MPIDI_LITE_is_gpu_memory(send_data)) && data_sz > 0) {
        MPI_Aint packed_bytes;
        send->packed = MPL_malloc(data_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(send->packed == NULL, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
        mpi_errno = MPIDI_LITE_PACK(data, count, datatype, 0, send->packed, data_sz, &packed_bytes);
        MPIR_ERR_CHECK(mpi_errno);
        MPIR_Assert(packed_bytes == (MPI_Aint) data_sz);
        send_data = send->packed;
    }

    code = lite_am_isend(peer, (uint32_t) handler_id, am_hdr, (size_t) am_hdr_sz, send_data,
                         data_sz, MPIDI_LITE_am_cookie(send), &lite);
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

int MPIDI_LITE_am_isend_reply(MPIR_Comm *comm, int rank, int handler_id, const void *am_hdr,
                              MPI_Aint am_hdr_sz, const void *data, MPI_Aint count,
                              MPI_Datatype datatype, int src_vci, int dst_vci, MPIR_Request *sreq)
{
    return MPIDI_LITE_am_isend(rank, comm, handler_id, am_hdr, am_hdr_sz, data, count, datatype,
                               src_vci, dst_vci, sreq);
}

int MPIDI_LITE_am_send_hdr(int rank, MPIR_Comm *comm, int handler_id, const void *am_hdr,
                           MPI_Aint am_hdr_sz, int src_vci, int dst_vci)
{
    int mpi_errno = MPI_SUCCESS;
    lite_request *lite = NULL;
    int code;

    MPIR_FUNC_ENTER;
    MPIR_Assert(src_vci == MPIDI_LITE_VCI && dst_vci == MPIDI_LITE_VCI);

    const int peer = MPIDI_LITE_peer(MPIDIU_comm_rank_to_av(comm, rank));
    code = lite_am_isend(peer, (uint32_t) handler_id, am_hdr, (size_t) am_hdr_sz, NULL, 0, NULL,
                         &lite);
    MPIDI_LITE_CHECK(code, peer);
    /* the device copies headers, so there is nothing to wait for */
    MPIR_Assert(code == LITE_OK);

fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
fn_fail:
    goto fn_exit;
}

int MPIDI_LITE_am_send_hdr_reply(MPIR_Comm *comm, int rank, int handler_id, const void *am_hdr,
                                 MPI_Aint am_hdr_sz, int src_vci, int dst_vci)
{
    return MPIDI_LITE_am_send_hdr(rank, comm, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci);
}

/* Only asked for by the rendezvous of ch4's own point-to-point, which is not in use here; NULL
 * selects its default. */
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
                               MPI_Aint count, MPI_Datatype datatype, MPIR_Request *sreq)
{
    return am_hdr_sz + data_sz <= MPIDI_LITE_AM_EAGER_BYTES;
}

#if LITE_HOST_SINCE(4, 3, 0)
/* The data of an active message by a tagged send of the module: for modules in which that is
 * faster. Ours brings any size as it is. */
bool MPIDI_LITE_am_can_do_tag(MPIDI_LITE_AM_CAN_DO_TAG_PARAMETERS)
{
    return false;
}

int MPIDI_LITE_am_tag_send(int rank, MPIR_Comm *comm, int handler_id, int tag, const void *buf,
                           MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
                           MPIR_Request *sreq)
{
    MPIR_Assert(0);
    return MPI_ERR_INTERN;
}

int MPIDI_LITE_am_tag_recv(int rank, MPIR_Comm *comm, int handler_id, int tag, void *buf,
                           MPI_Aint count, MPI_Datatype datatype, int src_vci, int dst_vci,
                           MPIR_Request *rreq)
{
    MPIR_Assert(0);
    return MPI_ERR_INTERN;
}
#endif

void MPIDI_LITE_am_request_init(MPIR_Request *req)
{
}

void MPIDI_LITE_am_request_finalize(MPIR_Request *req)
{
}
