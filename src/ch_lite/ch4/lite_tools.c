/* The device's knobs and counters as control and performance variables of MPI_T.
 * They are registered at run time, in MPI_Init: the host's own list of control variables is made by
 * its maint/extractcvars, and its macros for performance variables are compiled in by
 * --enable-mpit-pvars only; the functions behind both are always there. */
#include "lite_impl.h"

#define CATEGORY "LITE"

/* The host keeps our pointers to the names, so they are never freed; it copies the rest. */
static char pvar_names[96][40];

static void register_cvars(void)
{
    static char value[LITE_KNOB_VALUE_MAX]; /* too much for a small stack */
    char text[1024];

    for (int i = 0; i < lite_knob_count(); i++) {
        MPIR_T_cvar_value_t in_force;
        lite_knob knob;

        lite_knob_describe(i, &knob);
        in_force.str = lite_knob_value(i, value, sizeof(value));
        snprintf(text, sizeof(text),
                 "%s Allowed: %s. Default: %s. Set by the environment, before MPI_Init.",
                 knob.meaning, knob.allowed, knob.default_value);
        MPIR_T_CVAR_REGISTER_impl(MPI_CHAR, knob.name, NULL, (int) strlen(in_force.str) + 1,
                                  MPI_T_ENUM_NULL, MPI_T_VERBOSITY_USER_BASIC, MPI_T_BIND_NO_OBJECT,
                                  MPI_T_SCOPE_CONSTANT, NULL, NULL, in_force, CATEGORY, text);
    }
}

static void read_pvar(void *addr, void *obj_handle, int count, void *buf)
{
    *(unsigned long long *) buf = lite_counter_read((int) (intptr_t) addr);
}

static void register_pvars(void)
{
    const int max = (int) (sizeof(pvar_names) / sizeof(pvar_names[0]));

    MPIR_Assert(lite_counter_count() <= max);
    for (int i = 0; i < lite_counter_count(); i++) {
        lite_counter counter;
        char text[256];

        lite_counter_describe(i, &counter);
        snprintf(text, sizeof(text), "%s Unit: %s.", counter.meaning, counter.unit);
        snprintf(pvar_names[i], sizeof(pvar_names[i]), "lite_%s", counter.name);
        MPIR_T_PVAR_REGISTER_impl(
            counter.is_level ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER,
            MPI_UNSIGNED_LONG_LONG, pvar_names[i], (void *) (intptr_t) i, 1, MPI_T_ENUM_NULL,
            MPI_T_VERBOSITY_USER_BASIC, MPI_T_BIND_NO_OBJECT,
            MPIR_T_PVAR_FLAG_READONLY | MPIR_T_PVAR_FLAG_CONTINUOUS, read_pvar, NULL, CATEGORY,
            text);
    }
}

void MPIDI_LITE_register_tools(void)
{
    static bool registered = false;

    /* The host makes its tables once in a process: a tool that has ended before MPI_Init, or a
     * session without MPI_T, has taken them along. */
    if (registered || cvar_table == NULL || pvar_table == NULL)
        return;
    registered = true;
    MPIR_T_cat_add_desc(CATEGORY, "The ch_lite device: its environment variables and its counters");
    register_cvars();
    register_pvars();
}
