/* A wall clock that is wrong, for one process: preload this library.
 *
 * CLOCK_REALTIME (and its coarse twin, gettimeofday, time) is shifted by as many milliseconds as the file named by
 * TIDEMARK_CLOCK_SHIFT holds, read at each call, so that a running process can be set forward, back and to and fro.
 * The monotonic clocks are never touched: only what waits by the wall clock waits wrongly (librdkafka does), which is
 * what a wrong clock is like.
 * Works for CPython and for the JVM, which both ask the kernel through these functions.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long shift_ms(void) {
    const char *path = getenv("TIDEMARK_CLOCK_SHIFT");
    char text[32] = {0};
    if (path == NULL) return 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long ns = (long long)now->tv_sec * 1000000000LL + now->tv_nsec + shift_ms() * 1000000LL;
        now->tv_sec = ns / 1000000000LL;
        now->tv_nsec = ns % 1000000000LL;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (where != NULL) *where = precise.tv_sec;
    return precise.tv_sec;
}
