/* The C API for processes of other jobs (MPI's dynamic processes): names, ports, meeting and
 * parting. Beside ch_lite.h, by whose calls everything else is done: what is called a world rank
 * there may as well be the number of such a process. Called by ch4/lite_spawn.c and lite_init.c;
 * implemented by boot.cpp. Ordinary context. */
#ifndef CH_LITE_JOBS_H_INCLUDED
#define CH_LITE_JOBS_H_INCLUDED

#include "ch_lite/ch_lite.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A process has a universal name, which is public. What jobs do not share is a secret; a port's
 * name is one, made for those who are to connect: who has it can. Over the first connection, made
 * by it, the hosts exchange their processes' names, and any two of them can connect then, by a key
 * that only the two can compute. These calls touch nothing of the host's and need not be serialised
 * by it. */

#define LITE_NAME_BYTES 64  /* of a process */
#define LITE_PORT_BYTES 100 /* of a port; starts with its owner's */
#define LITE_PROOF_BYTES 32

/* How many peers there are numbers for: world ranks first. 0: there is no device. */
int lite_peers(void);
/* The universal name of a peer, oneself included: the same bytes whoever asks. LITE_ERR_ARG: there
 * is no such peer, or it has not said (a caller at a port). */
int lite_name(int peer, void* name);
/* The peer that a name stands for: a world rank, or another number from which on everything works
 * as with one. A process that is new becomes a peer. LITE_ERR_ARG: no name; LITE_ERR_NOMEM;
 * LITE_ERR_PEER_LOST: it was lost, and what was open with it is not yet cleared away. */
int lite_meet(const void* name);

/* Makes a port of ours that other jobs may connect to until it is closed; `id` is the host's number
 * for it, one port each. `port`: LITE_PORT_BYTES, with a fresh key. */
int lite_open_port(uint32_t id, void* port);
void lite_close_port(uint32_t id);
int lite_port_is_open(uint32_t id);
/* The peer that owns the port, as lite_meet; if there is no connection yet, the port's key will
 * make it. `proof` (LITE_PROOF_BYTES): for the host's first message there. */
int lite_meet_at_port(const void* port, void* proof);
/* 1: `peer` has the name of our open port `id`, as its first message shows; 0: not, or there is no
 * such port. */
int lite_check_caller(uint32_t id, int peer, const void* proof);
/* LITE_OK, or LITE_ERR_PEER_LOST with a sentence: whether a message can still come from that peer.
 */
int lite_check_peer(int peer);
/* 1: nothing can be said to the peer any more. It was lost, or its end of the connection is closed,
 * which is known before what it has sent is delivered. 0: as far as the kernel knows, it is there.
 */
int lite_has_left(int peer);
/* The host has nothing more to do with the peer: its end will not be a loss, and its number may be
 * given to another one. A world rank, or one parted from before: nothing happens. */
void lite_part(int peer);

/* Between lite_flush and lite_finalize_quiesce: tells processes of other jobs that are still
 * connected that this one ends, so that they do not take its end for a loss, and gives them a
 * moment (at most 2 s) to do the same, so that nothing on its way to either is lost. */
void lite_finalize_goodbye(void);

#ifdef __cplusplus
}
#endif
#endif
