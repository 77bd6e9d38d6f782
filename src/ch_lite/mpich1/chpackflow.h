/* In place of ch2's chpackflow.h, which lets a sender go on only when each 25 of its packets have
 * been acknowledged, 40 at most: there would be no overlap beyond 40 messages. The channel is a
 * stream with back-pressure of its own, so MPID_PACK_CONTROL stays undefined and there is nothing
 * to declare. */
