/* cancel.c: the flag that stops a running call: one atomic int. A lock-free atomic store is all that st_cancel_set does, which
 * is what makes it callable from a signal handler; release and acquire let a caller hand over a reason along with the flag. */
#include <stdatomic.h>
#include <stencil/stencil_base.h>
#include "base/mem.h"

struct st_cancel {
    atomic_int set;
};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "st_cancel_set must be async-signal-safe");

st_cancel *st_cancel_new(void)
{
    st_cancel *flag = st_malloc(sizeof *flag);
    if (flag) atomic_init(&flag->set, 0);
    return flag;
}

void st_cancel_set(st_cancel *flag)
{
    if (flag) atomic_store_explicit(&flag->set, 1, memory_order_release);
}

void st_cancel_reset(st_cancel *flag)
{
    if (flag) atomic_store_explicit(&flag->set, 0, memory_order_release);
}

int st_cancel_is_set(const st_cancel *flag)
{
    /* C11 as first published has no atomic load through a pointer to const, hence the cast. */
    return flag ? atomic_load_explicit(&((st_cancel *)flag)->set, memory_order_acquire) : 0;
}

void st_cancel_free(st_cancel *flag)
{
    st_free(flag);
}
