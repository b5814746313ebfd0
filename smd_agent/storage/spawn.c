/* Starts a process that the program it is started from never sees, loaded by side_process.py.

   A process between the two starts it and ends at once. Whoever ends without a signal is no child that wait() knows of,
   so that the program is told of neither: the process between ends without one, and the other one is not the program's
   child. Both run in the memory of the calling thread, which waits for that, until the second is another program:
   nothing of the program is copied, and its other threads go on. */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#define INTERFACE 1

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

EXPORT int smd_agent_spawn_interface(void) { return INTERFACE; }

#if defined(__linux__)
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (64 << 10)
#define MOST_FILES 65536

struct job {
    char *const *arguments;
    char *const *environment;
    int from;
    int to;
    int niceness;
    char *stack;
    volatile int error;
};

static void close_from(unsigned first) {
#if defined(SYS_close_range)
    if (!syscall(SYS_close_range, first, ~0U, 0))
        return;
#endif
    struct rlimit limit;
    unsigned end = getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > MOST_FILES ? MOST_FILES : limit.rlim_cur;
    for (unsigned number = first; number < end; number++)
        close((int)number);
}

/* In the process that is started; all signals are blocked until no handler of the program's is left. */
static int become(void *given) {
    struct job *job = given;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &usual, NULL);
    if (dup2(job->from, 0) < 0 || dup2(job->to, 1) < 0 || dup2(job->to, 2) < 0) {
        job->error = errno;
        _exit(127);
    }
    close_from(3);
    setpriority(PRIO_PROCESS, 0, job->niceness);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(job->arguments[0], job->arguments, job->environment);
    job->error = errno;
    _exit(127);
}

/* In the process between. */
static int start(void *given) {
    struct job *job = given;
    setsid();
    if (clone(become, job->stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, job) < 0)
        job->error = errno;
    _exit(0);
}

EXPORT int smd_agent_adopts(void) {
    int adopts = 0;
    /* Processes whose parent has ended become children of one that has asked for them, or of the first one. */
    return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &adopts, 0, 0, 0) && adopts);
}

/* `from` and `to`, which are no standard streams, become its input and its two outputs; all other files are closed.
   Returns 0, or the number of an error. */
EXPORT int smd_agent_spawn(char *const *arguments, char *const *environment, int from, int to, int niceness) {
    struct job job = {arguments, environment, from, to, niceness, NULL, 0};
    sigset_t all, before;
    char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED)
        return errno;
    job.stack = stacks + STACK;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t between = clone(start, stacks + STACK, CLONE_VM | CLONE_VFORK, &job);
    if (between < 0)
        job.error = errno;
    else
        while (waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
            ;
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(stacks, 2 * STACK);
    return job.error;
}
#else
EXPORT int smd_agent_adopts(void) { return 0; }

EXPORT int smd_agent_spawn(char *const *arguments, char *const *environment, int from, int to, int niceness) {
    (void)arguments, (void)environment, (void)from, (void)to, (void)niceness;
    return ENOSYS;
}
#endif
