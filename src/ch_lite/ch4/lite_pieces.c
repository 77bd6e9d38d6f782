/* Derived datatypes as lists of pieces, for messages that are neither packed nor unpacked. Used by
 * lite_send.c and lite_recv.c. */
#include "lite_impl.h"

/* Leaves out empty pieces and joins neighbours, in place. Returns how many are left; *bytes: what
 * they hold. */
static MPI_Aint compact(struct iovec *pieces, MPI_Aint count, size_t *bytes)
{
    MPI_Aint kept = 0;
    size_t sum = 0;

    for (MPI_Aint i = 0; i < count; i++) {
        const struct iovec piece = pieces[i];
        if (piece.iov_len == 0)
            continue;
        sum += piece.iov_len;
        if (kept > 0 &&
            (char *) pieces[kept - 1].iov_base + pieces[kept - 1].iov_len == piece.iov_base)
            pieces[kept - 1].iov_len += piece.iov_len;
        else
            pieces[kept++] = piece;
    }
    *bytes = sum;
    return kept;
}

/* The host's two datatype engines differ: dataloop counts pieces that it joins afterwards and, for
 * nested types, knows no cheap estimate; yaksa counts what it lists. So the exact count is asked
 * for, and the list is believed only if it holds every byte: a type that comes out otherwise is
 * packed. */
struct iovec *MPIDI_LITE_pieces(const void *buf, MPI_Aint count, MPI_Datatype datatype,
                                size_t bytes, size_t *pieces_count)
{
    struct iovec *pieces = NULL;
    MPI_Aint listed = 0, room = 0;
    size_t held = 0;

    /* one piece that is not contiguous from its true lower bound is rare and small */
    if (bytes < 2 * MPIDI_LITE_PIECE_BYTES_MIN)
        return NULL;
    if (MPIDI_LITE_IOV_LEN(count, datatype, (MPI_Aint) bytes, &room) != MPI_SUCCESS)
        return NULL;
    if (room <= 0 || room > MPIDI_LITE_PIECES_MAX ||
        bytes / (size_t) room < MPIDI_LITE_PIECE_BYTES_MIN)
        return NULL;

    pieces = MPL_malloc((size_t) room * sizeof(*pieces), MPL_MEM_BUFFER);
    if (pieces == NULL)
        return NULL;
    if (MPIR_Typerep_to_iov_offset(buf, count, datatype, 0, pieces, room, &listed) != MPI_SUCCESS ||
        listed > room) {
        MPL_free(pieces);
        return NULL;
    }
    listed = compact(pieces, listed, &held);
    if (held != bytes) {
        MPL_free(pieces);
        return NULL;
    }
    *pieces_count = (size_t) listed;
    return pieces;
}
