## The network module `lite` in the host's build: the glue is compiled into libmpi, the device and the engine come as a
## convenience library from the embedded package modules/lite.

if BUILD_CH4_NETMOD_LITE

noinst_HEADERS     += src/mpid/ch4/netmod/lite/lite_pre.h \
                      src/mpid/ch4/netmod/lite/lite_calls.h \
                      src/mpid/ch4/netmod/lite/lite_coll.h \
                      src/mpid/ch4/netmod/lite/lite_copy.h \
                      src/mpid/ch4/netmod/lite/lite_host.h \
                      src/mpid/ch4/netmod/lite/lite_kernels.h \
                      src/mpid/ch4/netmod/lite/lite_rma.h \
                      src/mpid/ch4/netmod/lite/lite_impl.h

mpi_core_sources   += src/mpid/ch4/netmod/lite/func_table.c \
                      src/mpid/ch4/netmod/lite/lite_accumulate.c \
                      src/mpid/ch4/netmod/lite/lite_allgather.c \
                      src/mpid/ch4/netmod/lite/lite_alltoall.c \
                      src/mpid/ch4/netmod/lite/lite_am.c \
                      src/mpid/ch4/netmod/lite/lite_barrier.c \
                      src/mpid/ch4/netmod/lite/lite_call_lock.c \
                      src/mpid/ch4/netmod/lite/lite_calls.c \
                      src/mpid/ch4/netmod/lite/lite_error.c \
                      src/mpid/ch4/netmod/lite/lite_gather.c \
                      src/mpid/ch4/netmod/lite/lite_hooks.c \
                      src/mpid/ch4/netmod/lite/lite_host_work.c \
                      src/mpid/ch4/netmod/lite/lite_init.c \
                      src/mpid/ch4/netmod/lite/lite_pieces.c \
                      src/mpid/ch4/netmod/lite/lite_probe.c \
                      src/mpid/ch4/netmod/lite/lite_progress.c \
                      src/mpid/ch4/netmod/lite/lite_recv.c \
                      src/mpid/ch4/netmod/lite/lite_rma.c \
                      src/mpid/ch4/netmod/lite/lite_rma_lost.c \
                      src/mpid/ch4/netmod/lite/lite_rma_sync.c \
                      src/mpid/ch4/netmod/lite/lite_chain.c \
                      src/mpid/ch4/netmod/lite/lite_send.c \
                      src/mpid/ch4/netmod/lite/lite_shared_error.c \
                      src/mpid/ch4/netmod/lite/lite_spawn.c \
                      src/mpid/ch4/netmod/lite/lite_spawn5.c \
                      src/mpid/ch4/netmod/lite/lite_tools.c

external_subdirs   += modules/lite
pmpi_convenience_libs += modules/lite/libch_lite_embedded.la

endif
