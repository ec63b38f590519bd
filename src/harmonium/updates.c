/* Whole updates of a small RBM of binary units by persistent contrastive divergence, for `learning/small_updates.py`.

   With ten rows a batch the five products of an update take less time than the calls around them, so here is all of it,
   one update after the other. Products are made by tiles of ROWS rows and WIDE columns that stay in registers. */

#include "native.h"

#include <math.h>

enum { LANE = 16, VECTORS = 4, WIDE = LANE * VECTORS, ROWS = 5, WEIGHTS = 4, SEED = 32 };

typedef float Lane __attribute__((vector_size(4 * LANE), aligned(4), may_alias));

INLINE const Lane *lanes(const float *x) { return (const Lane *)x; }

/* out = bias + x W for `n_rows` rows, and columns at..at+64. */
INLINE void up_tile(float *out, const float *x, const float *weight, const float *bias, int n_rows, int64_t n_v,
                    int64_t n_h, int64_t at) {
    Lane sum[ROWS][VECTORS];
    for (int r = 0; r < n_rows; r++)
        for (int k = 0; k < VECTORS; k++) sum[r][k] = lanes(bias + at)[k];
    for (int64_t i = 0; i < n_v; i++) {
        const Lane *w = lanes(weight + i * n_h + at);
        for (int r = 0; r < n_rows; r++)
            for (int k = 0; k < VECTORS; k++) sum[r][k] += x[r * n_v + i] * w[k];
    }
    for (int r = 0; r < n_rows; r++)
        for (int k = 0; k < VECTORS; k++) ((Lane *)(out + r * n_h + at))[k] = sum[r][k];
}

/* The fields on the hidden units, c + v W, of n rows. */
EVERY_PROCESSOR static void up(float *out, const float *v, int64_t n, const float *weight, const float *c, int64_t n_v,
                               int64_t n_h) {
    int64_t at = 0, r;
    for (; at + WIDE <= n_h; at += WIDE) {
        for (r = 0; r + ROWS <= n; r += ROWS) up_tile(out + r * n_h, v + r * n_v, weight, c, ROWS, n_v, n_h, at);
        for (; r < n; r++) up_tile(out + r * n_h, v + r * n_v, weight, c, 1, n_v, n_h, at);
    }
    for (r = 0; r < n && at < n_h; r++) {
        for (int64_t j = at; j < n_h; j++) out[r * n_h + j] = c[j];
        for (int64_t i = 0; i < n_v; i++)
            for (int64_t j = at; j < n_h; j++) out[r * n_h + j] += v[r * n_v + i] * weight[i * n_h + j];
    }
}

/* out = bias + h Wᵀ for `n_rows` rows, and columns at..at+n_at: sums along the rows of W. */
INLINE void down_tile(float *out, const float *h, const float *weight, const float *bias, int n_rows, int n_at,
                      int64_t n_v, int64_t n_h, int64_t at) {
    Lane sum[ROWS][WEIGHTS] = {0};
    int64_t j = 0;
    for (; j + LANE <= n_h; j += LANE)
        for (int i = 0; i < n_at; i++)
            for (int r = 0; r < n_rows; r++)
                sum[r][i] += *lanes(h + r * n_h + j) * *lanes(weight + (at + i) * n_h + j);
    for (int r = 0; r < n_rows; r++)
        for (int i = 0; i < n_at; i++) {
            float total = bias[at + i];
            for (int k = 0; k < LANE; k++) total += sum[r][i][k];
            for (int64_t k = j; k < n_h; k++) total += h[r * n_h + k] * weight[(at + i) * n_h + k];
            out[r * n_v + at + i] = total;
        }
}

/* The fields on the visible units, b + h Wᵀ, of n rows. */
EVERY_PROCESSOR static void down(float *out, const float *h, int64_t n, const float *weight, const float *b,
                                 int64_t n_v, int64_t n_h) {
    int64_t at = 0, r;
    for (; at + WEIGHTS <= n_v; at += WEIGHTS) {
        for (r = 0; r + ROWS <= n; r += ROWS)
            down_tile(out + r * n_v, h + r * n_h, weight, b, ROWS, WEIGHTS, n_v, n_h, at);
        for (; r < n; r++) down_tile(out + r * n_v, h + r * n_h, weight, b, 1, WEIGHTS, n_v, n_h, at);
    }
    for (; at < n_v; at++)
        for (r = 0; r < n; r++) down_tile(out + r * n_v, h + r * n_h, weight, b, 1, 1, n_v, n_h, at);
}

EVERY_PROCESSOR static void means(float *restrict x, int64_t n) {
    for (int64_t k = 0; k < n; k++) x[k] = 1.0f / over_sigmoid(x[k]);
}

/* θ moves by `step`, and its average by `share` of the way to it, as `lerp` does: exactly there where that is 1. */
INLINE void move(float *restrict theta, float *restrict average, const float *restrict step, float share, int64_t n) {
    for (int64_t k = 0; k < n; k++) theta[k] += step[k];
    if (average && share < 0.5f)
        for (int64_t k = 0; k < n; k++) average[k] += share * (theta[k] - average[k]);
    else if (average)
        for (int64_t k = 0; k < n; k++) average[k] = theta[k] - (1.0f - share) * (theta[k] - average[k]);
}

typedef struct { const float *v, *h; int64_t n; } Phase;

/* Rows at..at+n_at of W, by 64 columns: W += rate (<v h> of the data - <v h> of the chains). */
INLINE void move_rows(float *weight, float *average, Phase data, Phase model, int n_at, int64_t at, int64_t n_v,
                      int64_t n_h, float rate, float share) {
    const Phase phases[2] = {data, model};
    float step[WEIGHTS * WIDE];
    int64_t j = 0;
    for (; j + WIDE <= n_h; j += WIDE) {
        Lane sum[WEIGHTS][VECTORS] = {0};
        for (int p = 0; p < 2; p++) {
            float scale = (p ? -rate : rate) / (float)phases[p].n;
            for (int64_t r = 0; r < phases[p].n; r++) {
                const Lane *h = lanes(phases[p].h + r * n_h + j);
                for (int i = 0; i < n_at; i++)
                    for (int k = 0; k < VECTORS; k++) sum[i][k] += scale * phases[p].v[r * n_v + at + i] * h[k];
            }
        }
        memcpy(step, sum, sizeof step);
        for (int i = 0; i < n_at; i++) {
            int64_t place = (at + i) * n_h + j;
            move(weight + place, average ? average + place : 0, step + i * WIDE, share, WIDE);
        }
    }
    for (int i = 0; i < n_at && j < n_h; i++) {
        int64_t place = (at + i) * n_h + j, left = n_h - j;
        memset(step, 0, sizeof step);
        for (int p = 0; p < 2; p++) {
            float scale = (p ? -rate : rate) / (float)phases[p].n;
            for (int64_t r = 0; r < phases[p].n; r++)
                for (int64_t k = 0; k < left; k++)
                    step[k] += scale * phases[p].v[r * n_v + at + i] * phases[p].h[r * n_h + j + k];
        }
        move(weight + place, average ? average + place : 0, step, share, left);
    }
}

EVERY_PROCESSOR static void move_weight(float *weight, float *average, Phase data, Phase model, int64_t n_v,
                                        int64_t n_h, float rate, float share) {
    int64_t at = 0;
    for (; at + WEIGHTS <= n_v; at += WEIGHTS)
        move_rows(weight, average, data, model, WEIGHTS, at, n_v, n_h, rate, share);
    for (; at < n_v; at++) move_rows(weight, average, data, model, 1, at, n_v, n_h, rate, share);
}

/* rate (<x> of the data - <x> of the chains) of each of n units. */
EVERY_PROCESSOR static void bias_step(float *restrict step, const float *restrict x, int64_t n_x,
                                      const float *restrict y, int64_t n_y, int64_t n, float rate) {
    for (int64_t k = 0; k < n; k++) step[k] = 0.0f;
    for (int64_t r = 0; r < n_x; r++)
        for (int64_t k = 0; k < n; k++) step[k] += rate / (float)n_x * x[r * n + k];
    for (int64_t r = 0; r < n_y; r++)
        for (int64_t k = 0; k < n; k++) step[k] -= rate / (float)n_y * y[r * n + k];
}

EVERY_PROCESSOR static void move_bias(float *bias, float *average, const float *step, float share, int64_t n) {
    move(bias, average, step, share, n);
}

/* Make an update with each `batch` of the `n_rows` rows, fewer in the last, and tell in `done` how many were made: it
   stops before one that is not finite.

   `theta` and `average` are W (n_v × n_h), b and c; without an average its pointers are 0. `chains` are v and h, n_chains
   rows of each; `h_data` and `h_model` get the means of the hidden units of the last update, and `work` has room for
   n_chains × n_v, n_v and n_h numbers. Each update has a share of the average, and 2 n_steps seeds of 32 words. */
void pcd_updates(float *const *theta, float *const *average, const float *shares, float rate, const float *rows,
                 int64_t n_rows, int64_t batch, float *const *chains, int64_t n_chains, int64_t n_steps, int64_t n_v,
                 int64_t n_h, float *h_data, float *h_model, float *work, const uint64_t *seeds, int64_t *done) {
    float *weight = theta[0], *v = chains[0], *h = chains[1], *step_b = work + n_chains * n_v, *step_c = step_b + n_v;
    *done = 0;
    for (int64_t start = 0; start < n_rows; start += batch, ++*done) {
        const float *x = rows + start * n_v, share = average[0] ? shares[*done] : 0.0f;
        int64_t n = n_rows - start < batch ? n_rows - start : batch;
        up(h_data, x, n, weight, theta[2], n_v, n_h);
        means(h_data, n * n_h);
        for (int64_t i = 0; i < n_steps; i++, seeds += 2 * SEED) {
            down(work, h, n_chains, weight, theta[1], n_v, n_h);
            draw_bernoulli_of_field(v, work, 0, n_chains * n_v, seeds);
            up(h_model, v, n_chains, weight, theta[2], n_v, n_h);
            means(h_model, n_chains * n_h);
            draw_bernoulli(h, h_model, 0, n_chains * n_h, seeds + SEED);
        }
        bias_step(step_c, h_data, n, h_model, n_chains, n_h, rate);
        float total = 0.0f;
        for (int64_t k = 0; k < n_h; k++) total += step_c[k];
        if (!isfinite(total)) return;
        bias_step(step_b, x, n, v, n_chains, n_v, rate);
        move_weight(weight, average[0], (Phase){x, h_data, n}, (Phase){v, h_model, n_chains}, n_v, n_h, rate, share);
        move_bias(theta[1], average[1], step_b, share, n_v);
        move_bias(theta[2], average[2], step_c, share, n_h);
    }
}
