[#] start of __file__
dnl Makes --with-device=ch_lite mean --with-device=ch4:lite. install-device puts this file into src/mpid/ch_lite and lists it before
dnl src/mpid/ch4, whose PREREQ then sees the device that is meant.
dnl MPICH_SUBCFG_BEFORE=src/mpid/ch4

AC_DEFUN([PAC_SUBCFG_PREREQ_]PAC_SUBCFG_AUTO_SUFFIX,[
    if test "$device_name" = "ch_lite" ; then
        device_name=ch4
        device_args="lite${device_args:+:}$device_args"
        with_device="ch4:$device_args"
        DEVICE=$with_device
        devicedir=$use_top_srcdir/src/mpid/ch4
        devicereldir=src/mpid/ch4
        # configure.ac has done this for "ch4" already, by name
        AC_DEFINE([ENABLE_LOCAL_SESSION_INIT], 1, [Define to skip initializing builtin world comm during MPI_Session_init])
    fi
])dnl

AC_DEFUN([PAC_SUBCFG_BODY_]PAC_SUBCFG_AUTO_SUFFIX,[
# nothing to do
])dnl end _BODY

[#] end of __file__
