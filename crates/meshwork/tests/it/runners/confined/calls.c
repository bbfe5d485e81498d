/* Makes random system calls with random arguments, in processes of a few hundred calls each. The arguments are the seed of the
 * random numbers, the number of calls, and numbers of processes outside. Prints `calls` and
 * their number so far. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Calls of one process. */
#define CALLS 250
/* Greatest number of a call: some beyond the newest. */
#define NUMBERS 480
/* Seconds after which a process is killed that has blocked its signals. */
#define PATIENCE 2

static uint64_t state;
static volatile long *done;
static char buffer[1 << 16];
static int others[8], number_of_others;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Calls that only end or stop this program, or that wait for the disks of the host. */
static int is_left_out(long number) {
    const long left_out[] = {SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_clone, SYS_sync,
#ifdef SYS_fork
                             SYS_fork, SYS_vfork, SYS_pause, SYS_alarm,
#endif
                             SYS_setitimer, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigsuspend};
    for (unsigned i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (number == left_out[i]) return 1;
    return 0;
}

/* Paths, flags, descriptors, processes, addresses, and numbers of all sizes. */
static long argument(void) {
    static const char *paths[] = {"/", "/proc/self/mem", "/proc/1/environ", "/sys", "/dev/null", "/etc/passwd", ".", "made",
                                  "/proc/sys/kernel/hostname", "/dev/shm/x", "/tmp/x", "../../../.."};
    switch (next() % 12) {
    case 0: return (long)paths[next() % (sizeof paths / sizeof *paths)];
    case 1: return next() % 16;
    case 2: return 1L << next() % 63;
    case 3: return -(long)(next() % 200);
    case 4: return next();
    case 5: return (long)buffer + next() % (sizeof buffer / 2);
    case 6: return number_of_others ? others[next() % number_of_others] : 1;
    case 7: return AT_FDCWD;
    case 8: return next() % 0x10000;
    case 9: return getpid();
    case 10: return 0;
    default: return (long)buffer;
    }
}

static void wakes(int signal) { (void)signal; }

static void call_at_random(void) {
    struct sigaction action = {.sa_handler = wakes};
    /* Calls that wait end early. */
    struct itimerval often = {{0, 5000}, {0, 5000}};
    struct rlimit none = {0, 0}, files = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &files);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < CALLS; i++) {
        long number = next() % NUMBERS;
        if (is_left_out(number)) continue;
        for (unsigned at = 0; at < sizeof buffer; at += 512) buffer[at] = next();
        ++*done;
        syscall(number, argument(), argument(), argument(), argument(), argument(), argument());
    }
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    uint64_t seed = strtoull(arguments[1], NULL, 10);
    long most = atol(arguments[2]);
    for (int i = 3; i < count && number_of_others < 8; i++) others[number_of_others++] = atoi(arguments[i]);
    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    for (int turn = 0; *done < most; turn++) {
        pid_t child = fork();
        if (child == 0) {
            state = (seed + turn) * 0x9e3779b97f4a7c15u | 1;
            setpgid(0, 0);
            call_at_random();
            _exit(0);
        }
        struct timespec patience = {PATIENCE, 0};
        if (child > 0 && waitpid(child, NULL, WNOHANG) == 0) {
            sigtimedwait(&children, NULL, &patience);
            if (waitpid(child, NULL, WNOHANG) == 0) {
                kill(child, SIGKILL);
                waitpid(child, NULL, 0);
            }
        }
        dprintf(1, "calls %ld\n", *done);
    }
    return 0;
}
