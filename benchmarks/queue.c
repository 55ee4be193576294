/* The yardstick: what a plain C loop makes of the same queues, with the same statistics.
 *
 * Two xoshiro256++ streams, inverse transforms, a binary heap of waiting jobs, and for each job
 * that leaves three histogram bins (response, waiting, slowdown) and eight running sums.
 * Compiled by speed.py with  cc -O3 -march=native -shared -fPIC.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 64 * 104, FIRST = (1022 - 40) * 64 };

typedef struct { uint64_t s[4]; } stream;

static inline uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next(stream *r) {
    uint64_t *s = r->s, out = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotate(s[3], 45);
    return out;
}

static inline double open_unit(stream *r) { return ((next(r) >> 11) + 0.5) * 0x1p-53; }

static void seed_stream(stream *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) {               /* splitmix64 */
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

typedef struct { double rank, since, waited, size, left; } job;

typedef struct { double sums[8]; int64_t histogram[3][BINS]; } books;

static inline int bin_of(double x) {
    if (x <= 0) return 0;
    int64_t bits; memcpy(&bits, &x, 8);
    int64_t place = (bits >> 46) - FIRST;
    return place < 1 ? 1 : place >= BINS ? BINS - 1 : (int)place;
}

static inline void count(books *b, double waited, double size) {
    double time = waited + size, slowdown = time / size;
    b->sums[0] += 1;
    b->sums[1] += time;     b->sums[2] += time * time;
    b->sums[3] += waited;   b->sums[4] += waited * waited;
    b->sums[5] += slowdown; b->sums[6] += slowdown * slowdown;
    b->sums[7] += size;
    b->histogram[0][bin_of(time)]++;
    b->histogram[1][bin_of(waited)]++;
    b->histogram[2][bin_of(slowdown)]++;
}

static void push(job *heap, int *m, job x) {
    int p = (*m)++;
    while (p > 0) {
        int q = (p - 1) >> 1;
        if (heap[q].rank <= x.rank) break;
        heap[p] = heap[q]; p = q;
    }
    heap[p] = x;
}

static job pop(job *heap, int *m) {
    job top = heap[0], x = heap[--*m];
    int p = 0;
    for (;;) {
        int c = 2 * p + 1;
        if (c >= *m) break;
        if (c + 1 < *m && heap[c + 1].rank < heap[c].rank) c++;
        if (heap[c].rank >= x.rank) break;
        heap[p] = heap[c]; p = c;
    }
    heap[p] = x;
    return top;
}

/* SRPT on n servers, Pareto(alpha, 1) sizes; alpha = 0 stands for exponential sizes of mean 1. */
double srpt(int64_t jobs, int n, double rate, double alpha, uint64_t seed, books *b) {
    stream arrivals, sizes;
    seed_stream(&arrivals, 2 * seed); seed_stream(&sizes, 2 * seed + 1);
    job *heap = malloc(sizeof(job) << 22), *serving = malloc(sizeof(job) * n);
    double *finish = malloc(sizeof(double) * n), now = 0;
    int busy = 0, m = 0;
    for (int64_t i = 0; i < jobs; i++) {
        now += -log(open_unit(&arrivals)) / rate;
        while (busy > 0) {
            int done = 0;
            for (int s = 1; s < busy; s++) if (finish[s] < finish[done]) done = s;
            if (finish[done] > now) break;
            count(b, serving[done].waited, serving[done].size);
            if (m > 0) {
                job x = pop(heap, &m);
                x.waited += finish[done] - x.since;
                finish[done] += x.left; serving[done] = x;
            } else {
                busy--; finish[done] = finish[busy]; serving[done] = serving[busy];
            }
        }
        double u = open_unit(&sizes), size = alpha > 0 ? exp(-log(u) / alpha) : -log(u);
        job x = {size, now, 0, size, size};
        if (busy < n) { finish[busy] = now + size; serving[busy++] = x; continue; }
        int worst = 0;
        for (int s = 1; s < n; s++) if (finish[s] > finish[worst]) worst = s;
        double left = finish[worst] - now;
        if (size < left) {
            job y = serving[worst];
            y.rank = y.left = left; y.since = now;
            push(heap, &m, y);
            finish[worst] = now + size; serving[worst] = x;
        } else push(heap, &m, x);
        if ((i & 0xffff) == 0xffff) {            /* keep the clock short */
            for (int s = 0; s < busy; s++) finish[s] -= now;
            for (int p = 0; p < m; p++) heap[p].since -= now;
            now = 0;
        }
    }
    free(heap); free(serving); free(finish);
    return b->sums[1] / b->sums[0];
}

/* First come, first served on one server, by Lindley's recursion. */
double fcfs(int64_t jobs, double rate, double alpha, uint64_t seed, books *b) {
    stream arrivals, sizes;
    seed_stream(&arrivals, 2 * seed); seed_stream(&sizes, 2 * seed + 1);
    double work = 0;
    for (int64_t i = 0; i < jobs; i++) {
        double gap = -log(open_unit(&arrivals)) / rate, u = open_unit(&sizes);
        double size = alpha > 0 ? exp(-log(u) / alpha) : -log(u);
        work = work > gap ? work - gap : 0;
        count(b, work, size);
        work += size;
    }
    return b->sums[1] / b->sums[0];
}
