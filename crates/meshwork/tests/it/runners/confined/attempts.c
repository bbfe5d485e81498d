/* Attempts to leave a sandbox, as system calls. The arguments are the targets, the output names each attempt and whether it
 * succeeded. Each one runs in a process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Seconds of one attempt, which takes milliseconds. */
#define PATIENCE 10

static char outside[4096], path[8192];
static int victim, key;

static const char *at(const char *name) {
    snprintf(path, sizeof path, "%s/%s", outside, name);
    return path;
}

static const char *of_victim(const char *name) {
    snprintf(path, sizeof path, "/proc/%d/%s", victim, name);
    return path;
}

/* Opens a file, and reads from it if that is what it was opened for. */
static long opens(const char *name, int flags) {
    char byte;
    int file = open(name, flags | O_NONBLOCK | O_NOCTTY, 0600);
    if (file < 0 || (flags & (O_WRONLY | O_RDWR | O_PATH | O_DIRECTORY))) return file;
    return read(file, &byte, 1) == 1 ? 0 : -1;
}

/* A call that got beyond the checks of rights, with arguments for which nothing happens. */
static long reaches(long done) {
    return done < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES) ? -1 : 0;
}

static long in_new(int flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, 0, 0);
    return pid;
}

static long has_socket(int family, int kind, int protocol) { return socket(family, kind, protocol); }

static long reads_by_openat2(void) {
    uint64_t how[3] = {O_RDONLY, 0, 0};
    return syscall(437, AT_FDCWD, at("secret"), how, sizeof how);
}

static long reads_by_reopening(void) {
    char link[64];
    int file = open(at("secret"), O_PATH);
    if (file < 0) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return opens(link, O_RDONLY);
}

static long reads_from_folder(void) {
    if (chdir(outside) < 0) return -1;
    return opens("secret", O_RDONLY);
}

static long executes_outside(void) {
    char *none[] = {NULL};
    return execve(at("program"), none, none);
}

static long binds_outside(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    if (end < 0) return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/bound-%d", outside, getpid());
    return bind(end, (struct sockaddr *)&address, sizeof address);
}

static long changes_mode(int number) { return syscall(number, AT_FDCWD, at("secret"), 0600, 0); }

static long watches_folder(void) { return inotify_add_watch(inotify_init1(0), outside, IN_OPEN); }

static long on_system_file(int command, long argument) {
    int file = open("/usr/bin/env", O_RDONLY);
    return fcntl(file, command, argument);
}

static long watches_system_folder(void) {
    signal(SIGIO, SIG_IGN);
    int file = open("/usr", O_RDONLY | O_DIRECTORY);
    return fcntl(file, F_NOTIFY, 1);
}

static long locks_system_file(void) { return flock(open("/usr/bin/env", O_RDONLY), LOCK_EX | LOCK_NB); }

static long queues_signal(int number, int is_thread) {
    siginfo_t info = {.si_signo = 0, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    return is_thread ? syscall(number, victim, victim, 0, &info) : syscall(number, victim, 0, &info);
}

static long signals_by_descriptor(void) {
    int process = syscall(434, victim, 0);
    return process < 0 ? -1 : syscall(424, process, 0, NULL, 0);
}

static long takes_descriptor(void) {
    int process = syscall(434, victim, 0);
    return process < 0 ? -1 : syscall(438, process, 0, 0);
}

static long advises_memory(void) {
    struct iovec part = {(void *)4096, 4096};
    int process = syscall(434, victim, 0);
    long done = process < 0 ? -1 : syscall(440, process, &part, 1, MADV_COLD, 0);
    return process < 0 ? -1 : reaches(done);
}

static long compares(void) { return syscall(SYS_kcmp, getpid(), victim, 0, 0, 0); }

static long sets_limit(void) {
    struct rlimit limit;
    if (prlimit(victim, RLIMIT_CORE, NULL, &limit) < 0) return -1;
    return prlimit(victim, RLIMIT_CORE, &limit, NULL);
}

static long sets_cpus(void) {
    cpu_set_t cpus;
    if (sched_getaffinity(victim, sizeof cpus, &cpus) < 0) return -1;
    return sched_setaffinity(victim, sizeof cpus, &cpus);
}

static long schedules(int number) {
    struct sched_param parameter = {0};
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t rest[7]; } attributes = {48, .nice = 15};
    if (number == SYS_sched_setscheduler) return sched_setscheduler(victim, SCHED_OTHER, &parameter);
    if (number == SYS_sched_setparam) return sched_setparam(victim, &parameter);
    return syscall(number, victim, &attributes, 0);
}

static long moves_pages(void) {
    void *page = (void *)4096;
    int status;
    return syscall(SYS_move_pages, victim, 1, &page, NULL, &status, 0);
}

static long writes_file(const char *name, const char *text) {
    int file = open(name, O_WRONLY);
    return file < 0 ? -1 : write(file, text, strlen(text));
}

static long leaves_group(const char *folder) {
    snprintf(path, sizeof path, "/sys/fs/cgroup/%scgroup.procs", folder);
    return opens(path, O_WRONLY);
}

static long attaches_memory(void) {
    int segment = shmget(key, 1, 0);
    if (segment < 0) return -1;
    return shmat(segment, NULL, SHM_RDONLY) == (void *)-1 ? -1 : 0;
}

static long sends_to_abstract(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    if (end < 0) return -1;
    strcpy(address.sun_path + 1, name);
    return connect(end, (struct sockaddr *)&address, sizeof(sa_family_t) + 1 + strlen(name));
}

static long connects(int family, int kind, int port) {
    struct sockaddr_in six = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(0x7f000001)}};
    int end = socket(family, kind, 0);
    if (end < 0) return -1;
    return connect(end, (struct sockaddr *)&six, sizeof six) < 0 ? -1 : send(end, "x", 1, MSG_NOSIGNAL);
}

static long sends_without_connection(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(0x7f000001)}};
    return sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (struct sockaddr *)&to, sizeof to);
}

static long raises_capability(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{1 << CAP_SYS_ADMIN, 1 << CAP_SYS_ADMIN, 0}, {0, 0, 0}};
    return syscall(SYS_capset, &header, data);
}

static long raises_limit(void) {
    struct rlimit low = {4096, 4096}, high = {8192, 8192};
    setrlimit(RLIMIT_MEMLOCK, &low);
    return setrlimit(RLIMIT_MEMLOCK, &high);
}

static long pushes_input(unsigned long request) {
    char byte = 0;
    return reaches(ioctl(open("/dev/ptmx", O_RDWR | O_NOCTTY), request, &byte));
}

#if defined(__x86_64__)
static long by_old_call(void) {
    long done;
    __asm__ volatile("int $0x80" : "=a"(done) : "a"(20) : "memory");
    return done;
}
static long by_x32(void) { return syscall(0x40000000 + SYS_getpid); }
#else
static long by_old_call(void) { errno = ENOSYS; return -1; }
static long by_x32(void) { errno = ENOSYS; return -1; }
#endif

static long timestamps(void) {
    struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    return utimensat(AT_FDCWD, at("secret"), now, 0);
}

static long message_to_queue(void) {
    struct { long kind; char text[1]; } message = {1, "x"};
    int queue = msgget(key, 0);
    return queue < 0 ? -1 : msgsnd(queue, &message, 1, IPC_NOWAIT);
}

static char name_of_queue[64], abstract_name[108], shared_name[128];
static int tcp, udp;

static struct { const char *name; long (*attempt)(void); } attempts[400];
static int number_of_attempts;

#define ATTEMPT(word, expression) \
    static long try_##word(void) { return (expression); } \
    __attribute__((constructor)) static void add_##word(void) { \
        attempts[number_of_attempts].name = #word; \
        attempts[number_of_attempts++].attempt = try_##word; \
    }

#include "attempts.inc"

/* Makes or removes the IPC objects that the attempts look for. */
static int targets(int is_made) {
    if (is_made) {
        mq_close(mq_open(name_of_queue, O_RDONLY | O_CREAT, 0600, NULL));
        close(open(shared_name, O_RDWR | O_CREAT, 0600));
        return shmget(key, 1, IPC_CREAT | 0600) < 0 || msgget(key, IPC_CREAT | 0600) < 0 ||
               semget(key, 1, IPC_CREAT | 0600) < 0 || write(open(shared_name, O_RDWR), "x", 1) < 0;
    }
    mq_unlink(name_of_queue);
    unlink(shared_name);
    shmctl(shmget(key, 1, 0), IPC_RMID, NULL);
    semctl(semget(key, 1, 0), 0, IPC_RMID);
    return msgctl(msgget(key, 0), IPC_RMID, NULL) < 0;
}

int main(int count, char **arguments) {
    if (count < 8) return 2;
    snprintf(outside, sizeof outside, "%s", arguments[1]);
    victim = atoi(arguments[2]);
    tcp = atoi(arguments[3]);
    udp = atoi(arguments[4]);
    key = atoi(arguments[5]);
    snprintf(abstract_name, sizeof abstract_name, "%s", arguments[6]);
    snprintf(name_of_queue, sizeof name_of_queue, "/%s", arguments[6]);
    snprintf(shared_name, sizeof shared_name, "/dev/shm/%s", arguments[6]);
    if (arguments[7][0] != 't') return targets(arguments[7][0] == 'm');
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < number_of_attempts; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(PATIENCE);
            errno = 0;
            long done = attempts[i].attempt();
            _exit(done >= 0 ? 0 : errno ? errno & 0x7f : 1);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) printf("%s ok\n", attempts[i].name);
        else if (WIFEXITED(status)) printf("%s %s\n", attempts[i].name, strerror(WEXITSTATUS(status)));
        else printf("%s signal %d\n", attempts[i].name, WTERMSIG(status));
    }
    return 0;
}
