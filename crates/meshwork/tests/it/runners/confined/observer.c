// Appends a line to the file LOG for each process that loads it: TAG, `confined` or `outside`, and the command line.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long slurp(const char *path, char *text, long most) {
    int file = open(path, O_RDONLY);
    long length = read(file, text, most - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    return length;
}

__attribute__((constructor)) static void loaded(void) {
    char status[8192], words[512], line[1024];
    slurp("/proc/self/status", status, sizeof status);
    long length = slurp("/proc/self/cmdline", words, sizeof words);
    for (long at = 0; at < length; at++)
        if (words[at] == 0 || words[at] == '\n') words[at] = ' ';
    const char *where = strstr(status, "Seccomp:\t2") ? "confined" : "outside";
    int log = open(LOG, O_WRONLY | O_APPEND);
    int end = snprintf(line, sizeof line, "%s %s %s\n", TAG, where, words);
    if (write(log, line, end) != end) _exit(99);
    close(log);
}

unsigned int la_version(unsigned int version) { return version; }
