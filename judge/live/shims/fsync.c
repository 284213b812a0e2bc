/* A disk that is slow to sync, or one that remembers what it synced: preload this library.
 *
 * Before each fsync, fdatasync and msync it waits as many milliseconds as the file named by TIDEMARK_FSYNC_DELAY holds
 * (read at each call).  After each fsync or fdatasync that succeeded it appends a line "size inode path" to the file
 * named by TIDEMARK_FSYNC_RECORD: how long the file was *before* the call, for only that much is certain to be on the
 * disk.  Truncating every file to its last recorded size is then what a power cut does to the page cache.  The inode
 * names the file, because many are written under another name, synced, and renamed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void wait_a_while(void) {
    const char *path = getenv("TIDEMARK_FSYNC_DELAY");
    char text[16] = {0};
    if (path == NULL) return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    long ms = length > 0 ? atol(text) : 0;
    if (ms > 0) {
        struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
        nanosleep(&pause, NULL);
    }
}

static struct stat before(int file) {
    struct stat about;
    if (fstat(file, &about) != 0) about.st_mode = 0;
    return about;
}

static void record(int synced, struct stat was) {
    const char *log = getenv("TIDEMARK_FSYNC_RECORD");
    char link[64], path[1024], line[1100];
    if (log == NULL || !S_ISREG(was.st_mode)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", synced);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    int bytes = snprintf(line, sizeof line, "%lld %llu %s\n", (long long)was.st_size,
                         (unsigned long long)was.st_ino, path);
    int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (write(file, line, bytes) != bytes) { /* a full disk: what is not recorded counts as lost, which is strict */ }
    close(file);
}

#define SYNC(name)                                                   \
    int name(int file) {                                             \
        static int (*real)(int);                                     \
        if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        struct stat was = before(file);                              \
        wait_a_while();                                              \
        int failed = real(file);                                     \
        if (!failed) record(file, was);                              \
        return failed;                                               \
    }

SYNC(fsync)
SYNC(fdatasync)

int msync(void *start, size_t length, int flags) {
    static int (*real)(void *, size_t, int);
    if (real == NULL) real = (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "msync");
    wait_a_while();
    return real(start, length, flags);
}
