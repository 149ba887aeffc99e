/* signals.c: Ctrl-C becomes the library's cancel flag, so that a command ends in order: nothing half-written, the exit code says why.
 *
 * A handler can only reach what is static: the two variables below are the program's one piece of global state, and the flag
 * is never freed, since a signal may come until the end.
 */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>

static st_cancel *flag;
static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    seen = number;
    st_cancel_set(flag); /* may be called from a handler */
}

st_cancel *st_signals_watch(void)
{
    flag = st_cancel_new();
    if (!flag) return NULL;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)(SA_RESTART | SA_RESETHAND); /* the second one kills as usual */
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; /* nohup, background jobs */
        sigaction(numbers[i], &action, NULL);
    }
    return flag;
}

int st_signals_seen(void) { return (int)seen; }
