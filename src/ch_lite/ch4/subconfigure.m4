[#] start of __file__
dnl Configures the ch4 network module `lite`: makes the host use it and builds the embedded package modules/lite.
dnl MPICH_SUBCFG_AFTER=src/mpid/ch4
dnl The PREREQ runs after ch4's (which has read --with-ch4-shmmods) and before every other BODY: the place to correct
dnl what ch4 decides for modules that it does not know.

AC_DEFUN([PAC_SUBCFG_PREREQ_]PAC_SUBCFG_AUTO_SUFFIX,[
    AM_COND_IF([BUILD_CH4],[
        for net in $ch4_netmods ; do
            AS_CASE([$net],[lite],[build_ch4_netmod_lite=yes])
        done
        if test "X$build_ch4_netmod_lite" = "Xyes" ; then
            AC_DEFINE(HAVE_CH4_NETMOD_LITE,1,[lite netmod is built])

            # ch4 asks for an inlined netmod by a macro whose value netmod_impl.h knows for its own modules only; ours would count as 0,
            # which selects stubnm. Without the macro the host calls through the function table.
            CPPFLAGS=`AS_ECHO(["$CPPFLAGS"]) | sed -e 's/-DNETMOD_INLINE=__netmod_inline_lite__//'`
        fi
    ])
    AM_CONDITIONAL([BUILD_CH4_NETMOD_LITE],[test "X$build_ch4_netmod_lite" = "Xyes"])
])dnl

AC_DEFUN([PAC_SUBCFG_BODY_]PAC_SUBCFG_AUTO_SUFFIX,[
AM_COND_IF([BUILD_CH4_NETMOD_LITE],[
    AC_MSG_NOTICE([RUNNING CONFIGURE FOR ch4:lite])

    # One hwloc per library: two of them with different structures behind the same names would be fatal. The one that the host
    # has chosen is used, embedded or not; a host configured without hwloc leaves the choice to the package.
    lite_hwloc_cflags=""
    lite_hwloc_libs=""
    lite_hwloc_program_libs=""
    AS_CASE([$with_hwloc],
            [embedded],
            [lite_hwloc_cflags="-I${main_top_builddir}/modules/hwloc/include -I${use_top_srcdir}/modules/hwloc/include"
             # not empty, as that would mean "not set", but nothing to link: libmpi contains it
             lite_hwloc_libs="-lm"
             # lite-info is no libmpi
             lite_hwloc_program_libs="${main_top_builddir}/modules/hwloc/hwloc/libhwloc_embedded.la"],
            [no],
            [PAC_LIBS_ADD([-lhwloc])],
            [lite_hwloc_libs="-lhwloc"
             if test -n "$with_hwloc_include" ; then
                 lite_hwloc_cflags="-I$with_hwloc_include"
             elif test -n "$with_hwloc" && test "$with_hwloc" != "yes" ; then
                 lite_hwloc_cflags="-I$with_hwloc/include"
             fi
             if test -n "$with_hwloc_lib" ; then
                 lite_hwloc_program_libs="-L$with_hwloc_lib -lhwloc"
             elif test -n "$with_hwloc" && test "$with_hwloc" != "yes" ; then
                 lite_hwloc_program_libs="-L$with_hwloc/lib64 -L$with_hwloc/lib -lhwloc"
             fi])

    # The package is compiled with the user's flags and not with the host's: these are for C, and may contain -DNDEBUG, which would
    # take out assertions that are meant to stay. The host clears CXXFLAGS, so optimisation has to be asked for. VISIBILITY_CFLAGS
    # keeps our names out of libmpi's dynamic symbol table. --with-pic: the objects go into libmpi.so and libmpi.a alike.
    PAC_PUSH_ALL_FLAGS()
    PAC_RESET_ALL_FLAGS()
    CXXFLAGS="-g -O2 $VISIBILITY_CFLAGS $CXXFLAGS"
    CFLAGS="-g -O2 $VISIBILITY_CFLAGS $CFLAGS"
    if test -n "$lite_hwloc_libs" ; then
        PAC_CONFIG_SUBDIR_ARGS([modules/lite],[--enable-embedded --with-pic 'HWLOC_CFLAGS=$lite_hwloc_cflags' 'HWLOC_LIBS=$lite_hwloc_libs' 'HWLOC_PROGRAM_LIBS=$lite_hwloc_program_libs'],[],
                               [AC_MSG_ERROR([ch4:lite: modules/lite does not configure; the reason is above and in modules/lite/config.log])])
    else
        PAC_CONFIG_SUBDIR_ARGS([modules/lite],[--enable-embedded --with-pic],[],
                               [AC_MSG_ERROR([ch4:lite: modules/lite does not configure; the reason is above and in modules/lite/config.log])])
    fi
    PAC_POP_ALL_FLAGS()

    # Which ch_lite this is, for mpichversion and MPI_Get_library_version: behind the user's own --with-custom-version-string.
    lite_version=`sed -n 's/^PACKAGE_VERSION = //p' modules/lite/Makefile`
    lite_wire=`sed -n 's/^.* kWireVersion = \(.*\);/\1/p' $use_top_srcdir/modules/lite/src/mplite/net/frame.h`
    MPICH_CUSTOM_STRING="${MPICH_CUSTOM_STRING:+$MPICH_CUSTOM_STRING; }ch_lite $lite_version, wire version $lite_wire"

    PAC_APPEND_FLAG([-I${use_top_srcdir}/modules/lite/src],[CPPFLAGS])
    # libmpi is linked by the C compiler, and so is a program that uses libmpi.a.
    PAC_LIBS_ADD([-lsodium])
    # The controller's timer: in a library of its own before glibc 2.34.
    AC_CHECK_FUNC([timer_create],[],[PAC_LIBS_ADD([-lrt])])
    PAC_LIBS_ADD([-lstdc++])
])dnl end AM_COND_IF(BUILD_CH4_NETMOD_LITE,...)
])dnl end _BODY

[#] end of __file__
