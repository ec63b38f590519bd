/* What the compiled files share: the choice of a processor, the sigmoid, and the draws that updates need. */

#ifndef HARMONIUM_NATIVE_H
#define HARMONIUM_NATIVE_H

#include <stdint.h>
#include <string.h>

/* GCC compiles a function once for each kind of processor and takes the best at load time; a build that names one
   processor (-march=...) needs no choice. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__AVX2__)
#define EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EVERY_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE float as_float(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
INLINE uint32_t as_bits(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return bits; }

/* 1 / sigmoid(x) = 1 + e^-x: e^-x = 2^k e^f with k whole and |f| < (log 2)/2, and Moshier's polynomial (Cephes). */
INLINE float over_sigmoid(float x) {
    const float to_whole = 0x1.8p23f; /* adding it rounds to a whole number, in the last bits of the sum */
    float y = x < -88.0f ? 88.0f : x > 88.0f ? -88.0f : -x, shifted = 1.44269504089f * y + to_whole;
    float k = shifted - to_whole, f = (y - 0.693359375f * k) + 2.12194440e-4f * k;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    return 1.0f + p * as_float((as_bits(shifted) + 127u) << 23);
}

/* Of `native.c`: 0/1 draws from 32 random words, of given means or fields; `first` is where they stand in the whole. */
void draw_bernoulli(float *out, const float *p, int64_t first, int64_t n, const uint64_t *seed);
void draw_bernoulli_of_field(float *out, const float *x, int64_t first, int64_t n, const uint64_t *seed);

#endif
