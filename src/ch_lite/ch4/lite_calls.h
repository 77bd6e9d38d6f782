/* What the two ways of connecting jobs share: lite_spawn.c (MPICH 4) and lite_spawn5.c (MPICH 5)
 * use lite_calls.c by these names. Unless said otherwise the VCI lock is held. */
#ifndef LITE_CALLS_H_INCLUDED
#define LITE_CALLS_H_INCLUDED

#include "lite_impl.h"

enum {
    MPIDI_LITE_CALL,       /* to a port's owner, with the proof that one has the port's name */
    MPIDI_LITE_ANSWER,     /* MPICH 4: to the caller, who has been accepted */
    MPIDI_LITE_REFUSAL,    /* there is no such port, or it is closed */
    MPIDI_LITE_TAKEN_BACK, /* the caller does not wait any more */
    MPIDI_LITE_EXCHANGE    /* MPICH 5: data of MPIDI_LITE_dynamic_sendrecv */
};

typedef struct {
    uint32_t kind;
    int32_t tag;                  /* the port's; of an exchange: the host's */
    uint64_t call;                /* the sender's of the CALL; 0: an exchange within the job */
    char proof[LITE_PROOF_BYTES]; /* CALL only */
    uint32_t bytes;
    char data[LITE_NAME_BYTES + 64]; /* the host's; of an exchange: a context (uint32_t) */
} MPIDI_LITE_first_words;

/* The host's header begins with two words and ends in a name. */
#define MPIDI_LITE_FIRST_WORDS_MAX ((int) sizeof(((MPIDI_LITE_first_words *) 0)->data))

/* What a thread is in the middle of: the host makes its calls one after the other in one thread,
 * and does not tell in the second what it was that it began with the first. */
typedef struct {
    enum {
        MPIDI_LITE_IDLE,
        MPIDI_LITE_CALLING,  /* has met the port's owner */
        MPIDI_LITE_CALLED,   /* has sent the CALL */
        MPIDI_LITE_ANSWERING /* has taken a CALL */
    } state;
    int peer;
    uint64_t call; /* names the request at its sender */
    char proof[LITE_PROOF_BYTES];
} MPIDI_LITE_conversation_t;

/* LITE_OK or LITE_ERR_*. `data` is copied. */
int MPIDI_LITE_say(int peer, const MPIDI_LITE_first_words *words, const void *data, size_t bytes);

/* The oldest call at the port. */
bool MPIDI_LITE_take_call(int tag, int *from, MPIDI_LITE_first_words *words);
/* What `peer` has said to call number `call` of ours: an ANSWER or a REFUSAL. */
bool MPIDI_LITE_take_answer(int peer, uint64_t call, MPIDI_LITE_first_words *words);
/* The oldest data of that exchange; *data is to be freed by MPL_free. */
bool MPIDI_LITE_take_exchange(int peer, const MPIDI_LITE_first_words *which, void **data,
                              size_t *bytes);
/* Whether the caller that has been accepted does not wait any more. */
bool MPIDI_LITE_is_taken_back(int peer, uint64_t call);
/* Whether a call of the peer waits here. */
bool MPIDI_LITE_has_called(int peer);
/* What has been kept of that call, with the data that came behind it. */
void MPIDI_LITE_forget_call(int peer, uint64_t call);
/* What has been kept of the peer, whose number may be given to another process. */
void MPIDI_LITE_forget_words_of(int peer);

/* A number for a call of ours: two processes that call one another do not use the same. */
uint64_t MPIDI_LITE_new_call(void);

/* A CALL or an ANSWER with the host's header. */
MPIDI_LITE_first_words MPIDI_LITE_make_words(uint32_t kind, int tag,
                                             const MPIDI_LITE_conversation_t *conversation,
                                             const void *header, int bytes);

/* Why the wait for `peer`, or for a call at the port (-1), has to end, or NULL. Any thread. */
const char *MPIDI_LITE_why_not_wait(int tag, int peer, double waited_s, int timeout_s);
/* Why these words make no connection, or NULL. */
const char *MPIDI_LITE_why_not_connect(const MPIDI_LITE_first_words *words, int room);

/* A byte for each of *peers processes, 1 for those of other jobs that wait at a port of ours. To be
 * freed by MPL_free. NULL: no process of another job is known; or no memory, and then the end of
 * those that are in no communicator any more is a loss, no worse. Takes the VCI lock if it is not
 * held. */
char *MPIDI_LITE_find_callers(int *peers);

/* Whether a process of another job may send data of an exchange (lite_spawn5.c). */
bool MPIDI_LITE_exchanges_with(int peer);
/* Whether that call is being connected: the peer's to us, or ours to it. Any thread. */
bool MPIDI_LITE_talks_with(int peer, uint64_t call, bool it_called);
/* The device ends. */
void MPIDI_LITE_forget_expected(void);

#endif /* LITE_CALLS_H_INCLUDED */
