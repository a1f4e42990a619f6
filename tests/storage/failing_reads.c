/* Loaded before the C library: one read of files below a folder, counted from 1, fails with EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[4096];
static int wanted, seen;

void fail_read(const char *below, int number) {
    strncpy(folder, below, sizeof folder - 1);
    wanted = number;
    seen = 0;
}

int reads_seen(void) { return seen; }

static int fails(int file) {
    char link[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    if (__sync_add_and_fetch(&seen, 1) != wanted) return 0;
    errno = EIO;
    return 1;
}

#define READ(name, parameters, arguments)                                   \
    ssize_t name parameters {                                               \
        static ssize_t(*real) parameters;                                   \
        if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);               \
        return fails(file) ? -1 : real arguments;                           \
    }

READ(read, (int file, void *to, size_t size), (file, to, size))
READ(pread, (int file, void *to, size_t size, off_t at), (file, to, size, at))
READ(pread64, (int file, void *to, size_t size, off_t at), (file, to, size, at))
READ(preadv, (int file, const struct iovec *to, int count, off_t at), (file, to, count, at))
READ(preadv64, (int file, const struct iovec *to, int count, off_t at), (file, to, count, at))
READ(preadv2, (int file, const struct iovec *to, int count, off_t at, int how), (file, to, count, at, how))
READ(preadv64v2, (int file, const struct iovec *to, int count, off_t at, int how), (file, to, count, at, how))
