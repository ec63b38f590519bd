/* Inner loops in single precision, for `native.py`: random draws, which take PyTorch 7 to 90 times as long, and two
   passes over rows that an update of a small model feels.

   Draws get a seed of 32 random words from a torch.Generator. Their numbers come in chunks of 8,192. Each chunk mixes
   its place into the seed (Steele's SplitMix64), and takes the result as the whole state of eight streams of Chris
   Doty-Humphrey's SFC64 (PractRand, 2014; also in NumPy) that run side by side in one vector: word 8i + l is word i of
   stream l. So chunks may be drawn on as many cores as PyTorch uses, and the numbers do not depend on how many; and a
   part of a whole, n numbers from number `first` on, is drawn as it is there: what a chunk has before is skipped. Any C
   compiler with GCC's vector types will do; the loops are written so that it makes vectors of them. */

#include "native.h"

#include <math.h>

enum { LANES = 8, BLOCK = 1024, CHUNK = 8 * BLOCK };

typedef uint64_t Words __attribute__((vector_size(8 * LANES)));
typedef struct { Words a, b, c, counter; } Streams;

INLINE Streams streams_of(const uint64_t *seed, int64_t chunk) {
    uint64_t state[4 * LANES];
    Streams s;
    for (int i = 0; i < 4 * LANES; i++) {
        uint64_t z = seed[i] + 0x9e3779b97f4a7c15u * (uint64_t)(chunk + 1);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        state[i] = z ^ (z >> 31);
    }
    memcpy(&s, state, sizeof s);
    return s;
}

INLINE void next_words(Streams *s, void *out, int64_t n_bytes) {
    Words a = s->a, b = s->b, c = s->c, counter = s->counter;
    for (int64_t at = 0; at < n_bytes; at += sizeof(Words)) {
        Words word = a + b + counter;
        counter += 1;
        a = b ^ (b >> 11);
        b = c + (c << 3);
        c = ((c << 24) | (c >> 40)) + word;
        memcpy((char *)out + at, &word, sizeof word);
    }
    s->a = a, s->b = b, s->c = c, s->counter = counter;
}

/* Numbers first to first + n - 1, chunk by chunk: `skip` of a chunk are not wanted, then `left` from `at` on are. */
#define FOR_EACH_CHUNK(first, n, draw)                                                        \
    _Pragma("omp parallel for schedule(static) if ((n) > CHUNK)")                             \
    for (int64_t chunk = (first) / CHUNK; chunk < ((first) + (n) + CHUNK - 1) / CHUNK; chunk++) { \
        int64_t begin = chunk * CHUNK, skip = (first) > begin ? (first)-begin : 0;            \
        int64_t end = (first) + (n) < begin + CHUNK ? (first) + (n) : begin + CHUNK;          \
        int64_t at = begin + skip - (first), left = end - begin - skip;                       \
        draw;                                                                                 \
    }

/* The blocks of a chunk: numbers from..to of a block are wanted, and go to place `i` on. */
#define FOR_EACH_BLOCK(skip, n, next, use)                                                     \
    for (int64_t block = 0; block < (skip) + (n); block += BLOCK) {                            \
        int64_t from = (skip) > block ? (skip)-block : 0;                                      \
        int64_t to = (skip) + (n)-block < BLOCK ? (skip) + (n)-block : BLOCK;                  \
        int64_t i = block + from - (skip);                                                     \
        next;                                                                                  \
        if (from < to) { use; }                                                                \
    }

/* The next words as they are. */
EVERY_PROCESSOR static void words_of(uint64_t *out, int64_t skip, int64_t n, const uint64_t *seed, int64_t chunk) {
    Streams s = streams_of(seed, chunk);
    uint64_t words[BLOCK];
    FOR_EACH_BLOCK(skip, n, next_words(&s, words, sizeof words),
                   memcpy(out + i, words + from, sizeof(uint64_t) * (size_t)(to - from)))
}

void draw_words(uint64_t *out, int64_t first, int64_t n, const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, words_of(out + at, skip, left, seed, chunk))
}

/* u = 2^-24 k with 24 bits k. */
EVERY_PROCESSOR static void uniform_of(float *restrict out, int64_t skip, int64_t n, const uint64_t *seed,
                                       int64_t chunk) {
    Streams s = streams_of(seed, chunk);
    uint32_t words[BLOCK];
    FOR_EACH_BLOCK(skip, n, next_words(&s, words, sizeof words), {
        for (int64_t k = 0; k < to - from; k++) out[i + k] = 0x1p-24f * (float)(int32_t)(words[from + k] >> 8);
    })
}

void draw_uniform(float *out, int64_t first, int64_t n, const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, uniform_of(out + at, skip, left, seed, chunk))
}

INLINE void compare(float *restrict out, const float *restrict p, int of_field, const float *restrict dither,
                    const int16_t *restrict words, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        float u = dither[k] + 0x1p-16f * (float)words[k];
        out[k] = (of_field ? u * over_sigmoid(p[k]) < 1.0f : u < p[k]) ? 1.0f : 0.0f;
    }
}

/* 1 where 2^-16 (w + 2^15 + u) < p, with 16 bits w for each element and a dither u in [0, 1) of 32 bits for each of the
   1,024 elements of a block, the same for all blocks of a chunk. The dither stops short of 1 by 2^-7, so that the sum
   stays below 1 after rounding: p = 1 always draws 1. */
INLINE void bernoulli_of(float *out, const float *p, int of_field, int64_t skip, int64_t n, const uint64_t *seed,
                         int64_t chunk) {
    Streams s = streams_of(seed, chunk);
    const float width = 0x1p-16f - 0x1p-23f;
    int32_t fine[BLOCK];
    int16_t words[BLOCK];
    float dither[BLOCK];
    next_words(&s, fine, sizeof fine);
    for (int k = 0; k < BLOCK; k++) dither[k] = 0.5f + width * (0.5f + 0x1p-32f * (float)fine[k]);
    FOR_EACH_BLOCK(skip, n, next_words(&s, words, sizeof words), {
        if (to - from < BLOCK) compare(out + i, p + i, of_field, dither + from, words + from, to - from);
        else compare(out + i, p + i, of_field, dither, words, BLOCK);
    })
}

EVERY_PROCESSOR static void of_means(float *out, const float *p, int64_t skip, int64_t n, const uint64_t *seed,
                                     int64_t chunk) {
    bernoulli_of(out, p, 0, skip, n, seed, chunk);
}

EVERY_PROCESSOR static void of_fields(float *out, const float *x, int64_t skip, int64_t n, const uint64_t *seed,
                                      int64_t chunk) {
    bernoulli_of(out, x, 1, skip, n, seed, chunk);
}

void draw_bernoulli(float *out, const float *p, int64_t first, int64_t n, const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, of_means(out + at, p + at, skip, left, seed, chunk))
}

/* The same with p = 1 / (1 + e^-x). */
void draw_bernoulli_of_field(float *out, const float *x, int64_t first, int64_t n, const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, of_fields(out + at, x + at, skip, left, seed, chunk))
}

/* log x for x in (0, 1]: x = 2^e (1 + m) with 1 + m in [sqrt(1/2), sqrt(2)), and Moshier's polynomial in m (Cephes). */
INLINE float logarithm(float x) {
    const uint32_t root_half = 0x3f3504f3;
    int32_t shifted = (int32_t)(as_bits(x) - root_half);
    float e = (float)(shifted >> 23), m = as_float(((uint32_t)shifted & 0x007fffff) + root_half) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    return m * m * (m * p - 0.5f) + m + 0.69314718056f * e;
}

/* Box and Muller: sqrt(-2 log u) times the sine and the cosine of a random angle. u has 31 bits, so that the tails
   reach 6.7 standard deviations; the angle is a whole number of 2^-32 turns, at most an eighth of a turn f off a
   quarter q. */
INLINE void normal_pairs(float *restrict sines, float *restrict cosines, const uint32_t *restrict words) {
    for (int k = 0; k < BLOCK / 2; k++) {
        float u = 0x1p-31f * (float)(int32_t)(words[k] >> 1) + 0x1p-32f;
        float radius = sqrtf(-2.0f * logarithm(u));
        uint32_t angle = words[BLOCK / 2 + k], q = (angle + 0x20000000u) & 0xc0000000u;
        float f = 0x1p-32f * 6.28318530718f * (float)(int32_t)(angle - q), g = f * f;
        float sine = f + f * g * (-1.6666654611e-1f + g * (8.3321608736e-3f - g * 1.9515295891e-4f));
        float cosine =
            1.0f - 0.5f * g + g * g * (4.166664568298827e-2f + g * (2.443315711809948e-5f * g - 1.388731625493765e-3f));
        /* Odd quarters swap sine and cosine; the upper half of the turn negates the one, its middle half the other. */
        uint32_t swap = 0u - ((q >> 30) & 1u), both = (as_bits(sine) ^ as_bits(cosine)) & swap;
        sines[k] = radius * as_float(as_bits(sine) ^ both ^ (q & 0x80000000u));
        cosines[k] = radius * as_float(as_bits(cosine) ^ both ^ ((q + 0x40000000u) & 0x80000000u));
    }
}

EVERY_PROCESSOR static void normal_of(float *restrict out, int64_t skip, int64_t n, const uint64_t *seed,
                                      int64_t chunk) {
    Streams s = streams_of(seed, chunk);
    uint32_t words[BLOCK];
    float some[BLOCK];
    FOR_EACH_BLOCK(skip, n, next_words(&s, words, sizeof words), {
        float *into = to - from < BLOCK ? some : out + i;
        normal_pairs(into, into + BLOCK / 2, words);
        if (into == some) memcpy(out + i, some + from, sizeof(float) * (size_t)(to - from));
    })
}

void draw_normal(float *out, int64_t first, int64_t n, const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, normal_of(out + at, skip, left, seed, chunk))
}

/* x + step * slope + scale * (a standard normal value): a step of Langevin dynamics in one pass. */
EVERY_PROCESSOR static void step_of(float *restrict out, const float *restrict x, const float *restrict slope,
                                    float step, float scale, int64_t skip, int64_t n, const uint64_t *seed,
                                    int64_t chunk) {
    Streams s = streams_of(seed, chunk);
    uint32_t words[BLOCK];
    float noise[BLOCK];
    FOR_EACH_BLOCK(skip, n, next_words(&s, words, sizeof words), {
        normal_pairs(noise, noise + BLOCK / 2, words);
        for (int64_t k = 0; k < to - from; k++)
            out[i + k] = x[i + k] + step * slope[i + k] + scale * noise[from + k];
    })
}

void draw_step(float *out, const float *x, const float *slope, float step, float scale, int64_t first, int64_t n,
               const uint64_t *seed) {
    FOR_EACH_CHUNK(first, n, step_of(out + at, x + at, slope + at, step, scale, skip, left, seed, chunk))
}

/* Add weight * (the sum of n rows) to `out`, for columns from..to. Rows are summed by 128, so that the error stays that
   of a short sum. */
INLINE void add_rows(float *out, const float *x, int64_t n, int64_t width, int64_t from, int64_t to, float weight) {
    float sum[BLOCK];
    for (int64_t start = 0; start < n; start += 128) {
        int64_t end = start + 128 < n ? start + 128 : n;
        memset(sum, 0, sizeof(float) * (size_t)(to - from));
        for (int64_t i = start; i < end; i++)
            for (int64_t k = from; k < to; k++) sum[k - from] += x[i * width + k];
        for (int64_t k = from; k < to; k++) out[k] += weight * sum[k - from];
    }
}

EVERY_PROCESSOR static void difference_of(float *out, const float *a, int64_t n_a, const float *b, int64_t n_b,
                                          int64_t width, int64_t from, int64_t to) {
    memset(out + from, 0, sizeof(float) * (size_t)(to - from));
    add_rows(out, a, n_a, width, from, to, 1.0f / (float)n_a);
    add_rows(out, b, n_b, width, from, to, -1.0f / (float)n_b);
}

/* The mean of the rows of `a` less that of `b`. */
void mean_difference(float *out, const float *a, int64_t n_a, const float *b, int64_t n_b, int64_t width) {
    enum { COLUMNS = 128 };
#pragma omp parallel for schedule(static) if ((n_a + n_b) * width > CHUNK)
    for (int64_t from = 0; from < width; from += COLUMNS)
        difference_of(out, a, n_a, b, n_b, width, from, from + COLUMNS < width ? from + COLUMNS : width);
}

/* Rows of bytes by their numbers, as floats. They lie anywhere in memory, so those to come are fetched ahead. */
EVERY_PROCESSOR static void rows_of(float *restrict out, const uint8_t *restrict rows, const int64_t *index, int64_t n,
                                    int64_t width) {
    enum { AHEAD = 2 };
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *row = rows + index[i] * width;
        if (i + AHEAD < n)
            for (int64_t k = 0; k < width; k += 64) __builtin_prefetch(rows + index[i + AHEAD] * width + k);
        for (int64_t k = 0; k < width; k++) out[i * width + k] = (float)row[k];
    }
}

/* Images with their channels innermost, some places at a time, so that what is written stays at hand. */
EVERY_PROCESSOR static void images_of(float *restrict out, const uint8_t *restrict rows, const int64_t *index,
                                      int64_t n, int64_t channels, int64_t places) {
    enum { PLACES = 16 };
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *row = rows + index[i] * channels * places;
        if (i + 1 < n)
            for (int64_t k = 0; k < channels * places; k += 64)
                __builtin_prefetch(rows + index[i + 1] * channels * places + k);
        float *image = out + i * channels * places;
        for (int64_t at = 0; at < places; at += PLACES) {
            int64_t end = at + PLACES < places ? at + PLACES : places;
            for (int64_t c = 0; c < channels; c++)
                for (int64_t k = at; k < end; k++) image[k * channels + c] = (float)row[c * places + k];
        }
    }
}

/* Rows of `channels` times `places` bytes, channels innermost in `out`. A number that is none of the n_rows rows is
   told by its place in `wrong`, and nothing is read. */
void pick_images(float *out, const uint8_t *rows, const int64_t *index, int64_t n, int64_t channels, int64_t places,
               int64_t n_rows, int64_t *wrong) {
    enum { ROWS = 16 };
    int64_t width = channels * places;
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= n_rows) {
            *wrong = i;
            return;
        }
#pragma omp parallel for schedule(static) if (n * width > CHUNK)
    for (int64_t at = 0; at < n; at += ROWS) {
        int64_t left = n - at < ROWS ? n - at : ROWS;
        if (channels == 1) rows_of(out + at * width, rows, index + at, left, width);
        else images_of(out + at * width, rows, index + at, left, channels, places);
    }
}

EVERY_PROCESSOR static int bytes_of(int8_t *restrict out, const float *restrict x, int64_t n) {
    int other = 0;
    for (int64_t k = 0; k < n; k++) {
        int whole = x[k] >= -128.0f && x[k] <= 127.0f ? (int)x[k] : 0;
        out[k] = (int8_t)whole;
        other |= (float)whole != x[k];
    }
    return other;
}

/* Floats as bytes; `other` says whether some are no whole numbers from -128 to 127. */
void as_bytes(int8_t *out, const float *x, int64_t n, int64_t *other) {
    int found = 0;
#pragma omp parallel for schedule(static) reduction(| : found) if (n > 4 * CHUNK)
    for (int64_t at = 0; at < n; at += CHUNK) found |= bytes_of(out + at, x + at, n - at < CHUNK ? n - at : CHUNK);
    *other = found;
}

EVERY_PROCESSOR static void planes_of(float *restrict out, const int32_t *restrict high, const int32_t *restrict low,
                                      double step, int64_t n) {
    for (int64_t k = 0; k < n; k++) out[k] = (float)(step * (256.0 * high[k] + low[k]));
}

/* step * (256 high + low), rounded once: neither product fits 32 bits. */
void join_planes(float *out, const int32_t *high, const int32_t *low, double step, int64_t n) {
#pragma omp parallel for schedule(static) if (n > 4 * CHUNK)
    for (int64_t at = 0; at < n; at += CHUNK)
        planes_of(out + at, high + at, low + at, step, n - at < CHUNK ? n - at : CHUNK);
}

/* x = step * (256 high + low) to the nearest, half to even: step is a power of two, and none of x is beyond 127.5 * 256. */
EVERY_PROCESSOR static void bytes_in_two(int8_t *restrict high, int8_t *restrict low, const float *restrict x,
                                         float over_step, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        float shifted = over_step * x[k] + 0x1.8p23f; /* a whole number in its last bits */
        int32_t whole = (int32_t)(as_bits(shifted) - as_bits(0x1.8p23f));
        int32_t rest = ((whole + 128) & 255) - 128;
        low[k] = (int8_t)rest;
        high[k] = (int8_t)((whole - rest) >> 8);
    }
}

void split_planes(int8_t *high, int8_t *low, const float *x, float over_step, int64_t n) {
#pragma omp parallel for schedule(static) if (n > 4 * CHUNK)
    for (int64_t at = 0; at < n; at += CHUNK)
        bytes_in_two(high + at, low + at, x + at, over_step, n - at < CHUNK ? n - at : CHUNK);
}
