/* The sums of many tensors in one call: the compiled twin of with_numpy.py, loaded by with_kernel.py.

   Every element is widened to double before it is added up, in 16 independent lanes that compilers turn into vector
   code. A tensor is read once, in blocks that stay in the first-level cache; the sum of squared distances from the mean
   is taken from the sum of squares, or by a second look at the block where that would cancel, and merged over blocks by
   Chan's formula. Nothing of Python is used, so the caller's interpreter lock is released meanwhile. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INTERFACE 4
#define LANES 16
#define BLOCK 8192
#define WIDE_BLOCK 4096
/* Below this share of the squares, their difference from the square of the sum has lost too many digits. */
#define CANCELS 1e-3

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#else
#define INLINE static inline
#define EXPORT
#endif

/* Wider vectors are chosen when the code runs, where the compiler can do that. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define CHOOSES 1
#define FOR_AVX2 __attribute__((target("avx2,fma")))
#define FOR_AVX512 __attribute__((target("avx512f,avx2,fma")))
#endif

/* The widest that may be chosen, for tests: 0 as the compiler does it anyway, 1 AVX2, 2 AVX-512. */
#ifndef WIDEST
#define WIDEST 2
#endif

/* In the order of Sums in formulas.py; the product is not computed here. */
enum { N, LOW, HIGH, TOTAL, SQUARES, SPREAD, ABSOLUTE, ABS_SPREAD, ABS_LOW, ABS_HIGH, ZEROS, NANS, INFS, FIELDS };

/* In the order of KINDS in with_kernel.py. */
enum { FLOAT32, FLOAT64, FLOAT16, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, BOOL };

/* As _wanted in with_kernel.py says it. */
enum { SPREAD_WANTED = 1, ABS_SPREAD_WANTED = 2, ABS_LOW_WANTED = 4 };

/* As channels in with_kernel.py says it, and END in channels.py. */
enum { DEAD_WANTED = 1, SATURATED_WANTED = 2 };
#define CHANNEL_END (1.0 / 1024)

/* As in mixed.py. */
#define MIXED_FIRST 0xff51afd7ed558ccdu
#define MIXED_SECOND 0xc4ceb9fe1a85ec53u
#define MIXED_SHIFT 29

/* One block's sums in one pass. A NaN is kept out of the extremes by the comparisons, and put into them afterwards. A
   block without NaN and Inf, which its sum of absolute values tells, is not looked through for them. `with_abs_low` is
   known when this is compiled: few want that, and it costs most. */
#define DEFINE_SUM_BLOCK(NAME, T, COUNT, FABS)                                                                         \
    INLINE void NAME##_specials(const T *x, int64_t n, double *out) {                                                  \
        COUNT nans = 0, infs = 0;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            nans += x[i] != x[i];                                                                                      \
            infs += FABS(x[i]) == (T)INFINITY;                                                                         \
        }                                                                                                              \
        out[NANS] = (double)nans;                                                                                      \
        out[INFS] = (double)infs;                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    INLINE void NAME(const T *x, int64_t n, int with_abs_low, double *out) {                                           \
        T low[LANES], high[LANES], abs_low[LANES];                                                                     \
        double total[LANES], squares[LANES], absolute[LANES];                                                          \
        COUNT zeros[LANES];                                                                                            \
        for (int j = 0; j < LANES; j++) {                                                                              \
            low[j] = abs_low[j] = (T)INFINITY;                                                                         \
            high[j] = (T)-INFINITY;                                                                                    \
            total[j] = squares[j] = absolute[j] = 0.0;                                                                 \
            zeros[j] = 0;                                                                                              \
        }                                                                                                              \
        int64_t whole = n / LANES * LANES;                                                                             \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            for (int j = 0; j < LANES; j++) {                                                                          \
                T v = x[i + j], size = FABS(v);                                                                        \
                double wide = (double)v;                                                                               \
                low[j] = v < low[j] ? v : low[j];                                                                      \
                high[j] = v > high[j] ? v : high[j];                                                                   \
                if (with_abs_low)                                                                                      \
                    abs_low[j] = size < abs_low[j] ? size : abs_low[j];                                                \
                zeros[j] += v == (T)0;                                                                                 \
                total[j] += wide;                                                                                      \
                squares[j] += wide * wide;                                                                             \
                absolute[j] += fabs(wide);                                                                             \
            }                                                                                                          \
        for (int64_t i = whole; i < n; i++) {                                                                          \
            T v = x[i], size = FABS(v);                                                                                \
            double wide = (double)v;                                                                                   \
            int j = (int)(i - whole);                                                                                  \
            low[j] = v < low[j] ? v : low[j];                                                                          \
            high[j] = v > high[j] ? v : high[j];                                                                       \
            if (with_abs_low)                                                                                          \
                abs_low[j] = size < abs_low[j] ? size : abs_low[j];                                                    \
            zeros[j] += v == (T)0;                                                                                     \
            total[j] += wide;                                                                                          \
            squares[j] += wide * wide;                                                                                 \
            absolute[j] += fabs(wide);                                                                                 \
        }                                                                                                              \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int j = 0; j < half; j++) {                                                                           \
                low[j] = low[j + half] < low[j] ? low[j + half] : low[j];                                              \
                high[j] = high[j + half] > high[j] ? high[j + half] : high[j];                                         \
                abs_low[j] = abs_low[j + half] < abs_low[j] ? abs_low[j + half] : abs_low[j];                          \
                total[j] += total[j + half];                                                                           \
                squares[j] += squares[j + half];                                                                       \
                absolute[j] += absolute[j + half];                                                                     \
                zeros[j] += zeros[j + half];                                                                           \
            }                                                                                                          \
        out[N] = (double)n;                                                                                            \
        out[LOW] = (double)low[0];                                                                                     \
        out[HIGH] = (double)high[0];                                                                                   \
        out[TOTAL] = total[0];                                                                                         \
        out[SQUARES] = squares[0];                                                                                     \
        out[ABSOLUTE] = absolute[0];                                                                                   \
        out[ABS_LOW] = (double)abs_low[0];                                                                             \
        out[ZEROS] = (double)zeros[0];                                                                                 \
        out[NANS] = out[INFS] = 0.0;                                                                                   \
        if (isnan(absolute[0]))                                                                                        \
            out[LOW] = out[HIGH] = out[ABS_LOW] = NAN;                                                                 \
        if (!isfinite(absolute[0]))                                                                                    \
            NAME##_specials(x, n, out);                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    /* The sum of squared distances from the mean, of the elements or of their absolute values. */                     \
    INLINE double NAME##_spread(const T *x, int64_t n, double total, double squares, int of_sizes) {                   \
        double mean = total / (double)n, spread = squares - total * mean, centred[LANES], rest[LANES];                 \
        if (spread >= CANCELS * squares || !isfinite(total))                                                           \
            return spread;                                                                                             \
        for (int j = 0; j < LANES; j++)                                                                                \
            centred[j] = rest[j] = 0.0;                                                                                \
        int64_t whole = n / LANES * LANES;                                                                             \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            for (int j = 0; j < LANES; j++) {                                                                          \
                double wide = (double)x[i + j], gap = (of_sizes ? fabs(wide) : wide) - mean;                           \
                centred[j] += gap * gap;                                                                               \
                rest[j] += gap;                                                                                        \
            }                                                                                                          \
        for (int64_t i = whole; i < n; i++) {                                                                          \
            double wide = (double)x[i], gap = (of_sizes ? fabs(wide) : wide) - mean;                                   \
            centred[0] += gap * gap;                                                                                   \
            rest[0] += gap;                                                                                            \
        }                                                                                                              \
        for (int j = 1; j < LANES; j++) {                                                                              \
            centred[0] += centred[j];                                                                                  \
            rest[0] += rest[j];                                                                                        \
        }                                                                                                              \
        spread = centred[0] - rest[0] * rest[0] / (double)n;                                                           \
        return spread < 0.0 ? 0.0 : spread;                                                                            \
    }

DEFINE_SUM_BLOCK(sum_floats, float, int32_t, fabsf)
DEFINE_SUM_BLOCK(sum_doubles, double, int64_t, fabs)

INLINE double merged_spread(const double *a, const double *b, int sum, int spread) {
    double gap = b[sum] / b[N] - a[sum] / a[N];
    return a[spread] + b[spread] + a[N] * b[N] / (a[N] + b[N]) * gap * gap;
}

static void merge(double *a, const double *b) {
    a[SPREAD] = merged_spread(a, b, TOTAL, SPREAD);
    a[ABS_SPREAD] = merged_spread(a, b, ABSOLUTE, ABS_SPREAD);
    /* A comparison with a NaN is false, so one on either side has to be asked for. */
    a[LOW] = isnan(a[LOW]) || a[LOW] < b[LOW] ? a[LOW] : b[LOW];
    a[HIGH] = isnan(a[HIGH]) || a[HIGH] > b[HIGH] ? a[HIGH] : b[HIGH];
    a[ABS_LOW] = isnan(a[ABS_LOW]) || a[ABS_LOW] < b[ABS_LOW] ? a[ABS_LOW] : b[ABS_LOW];
    a[N] += b[N];
    a[TOTAL] += b[TOTAL];
    a[SQUARES] += b[SQUARES];
    a[ABSOLUTE] += b[ABSOLUTE];
    a[ZEROS] += b[ZEROS];
    a[NANS] += b[NANS];
    a[INFS] += b[INFS];
}

/* float16 is exact in float; taken apart by hand, for compilers without the type. */
INLINE float from_half(uint16_t bits) {
    uint32_t size = bits & 0x7fffu, sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t normal = (size << 13) + (size >= 0x7c00u ? 0x70000000u : 0x38000000u);
    float tiny = (float)(int32_t)size * 0x1p-24f, out;
    uint32_t small;
    memcpy(&small, &tiny, sizeof small);
    uint32_t all = (size < 0x0400u ? small : normal) | sign;
    memcpy(&out, &all, sizeof out);
    return out;
}

#define WIDEN(T, W, VALUE)                                                                                             \
    do {                                                                                                               \
        const T *from = (const T *)data + start;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T v = from[i];                                                                                             \
            ((W *)scratch)[i] = (W)(VALUE);                                                                            \
        }                                                                                                              \
    } while (0)

/* The block itself where it is of type float or double, else a copy of it as such. */
INLINE const void *widened(const void *data, int64_t start, int64_t n, int kind, void *scratch) {
    switch (kind) {
    case FLOAT32: return (const float *)data + start;
    case FLOAT64: return (const double *)data + start;
    case FLOAT16: WIDEN(uint16_t, float, from_half(v)); break;
    case INT8: WIDEN(int8_t, float, v); break;
    case UINT8: WIDEN(uint8_t, float, v); break;
    case INT16: WIDEN(int16_t, float, v); break;
    case UINT16: WIDEN(uint16_t, float, v); break;
    case INT32: WIDEN(int32_t, double, v); break;
    case UINT32: WIDEN(uint32_t, double, v); break;
    case INT64: WIDEN(int64_t, double, v); break;
    case UINT64: WIDEN(uint64_t, double, v); break;
    default: WIDEN(uint8_t, float, v != 0); break;
    }
    return scratch;
}

/* Whether a block of this kind is looked at as doubles. */
INLINE int is_wide(int kind) { return kind == FLOAT64 || (kind >= INT32 && kind <= UINT64); }

INLINE void sum_tensor(const void *data, int64_t size, int kind, int wanted, double *out) {
    _Alignas(64) char scratch[BLOCK * sizeof(float)];
    int wide = is_wide(kind);
    int64_t length = wide ? WIDE_BLOCK : BLOCK;
    for (int64_t start = 0; start < size; start += length) {
        double block[FIELDS];
        double *sums = start == 0 ? out : block;
        int64_t n = size - start < length ? size - start : length;
        const void *x = widened(data, start, n, kind, scratch);
        sums[SPREAD] = sums[ABS_SPREAD] = 0.0;
        if (wide) {
            if (wanted & ABS_LOW_WANTED)
                sum_doubles(x, n, 1, sums);
            else
                sum_doubles(x, n, 0, sums);
            if (wanted & SPREAD_WANTED)
                sums[SPREAD] = sum_doubles_spread(x, n, sums[TOTAL], sums[SQUARES], 0);
            if (wanted & ABS_SPREAD_WANTED)
                sums[ABS_SPREAD] = sum_doubles_spread(x, n, sums[ABSOLUTE], sums[SQUARES], 1);
        } else {
            if (wanted & ABS_LOW_WANTED)
                sum_floats(x, n, 1, sums);
            else
                sum_floats(x, n, 0, sums);
            if (wanted & SPREAD_WANTED)
                sums[SPREAD] = sum_floats_spread(x, n, sums[TOTAL], sums[SQUARES], 0);
            if (wanted & ABS_SPREAD_WANTED)
                sums[ABS_SPREAD] = sum_floats_spread(x, n, sums[ABSOLUTE], sums[SQUARES], 1);
        }
        if (start > 0)
            merge(out, block);
    }
    out[ABS_HIGH] = -out[LOW] > out[HIGH] ? -out[LOW] : out[HIGH];
}

/* Adds each element of a block to its bucket; see histogram.py. What is next to each other often falls into the same
   bucket, so several tables take turns. With FINE bits of the fraction, each power of two has 2**FINE buckets. */
#define TABLES 4
#define HALF(FINE) (128 << (FINE))
#define BUCKETS(FINE) (2 * HALF(FINE) + 4)
#define PARTS 3

#define DEFINE_COUNT_BLOCK(NAME, U, I, FRACTION, ONE)                                                                  \
    INLINE void NAME(const void *x, int64_t n, int fine, int64_t *tables) {                                            \
        const U all = ~(U)0 >> 1, infinity = (U)(2 * (ONE) + 1) << (FRACTION);                                         \
        const I lowest = (I)((ONE) - 64) << fine, highest = ((I)((ONE) + 64) << fine) - 1;                             \
        const I zero = (I)HALF(fine) + 1;                                                                              \
        int16_t places[BLOCK];                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U bits;                                                                                                    \
            memcpy(&bits, (const char *)x + i * (int64_t)sizeof bits, sizeof bits);                                    \
            U size = bits & all;                                                                                       \
            I exponent = (I)(size >> ((FRACTION) - fine)), place = exponent < lowest ? lowest : exponent;              \
            place = (place > highest ? highest : place) - lowest + 1;                                                  \
            place = size == 0 ? 0 : size >= infinity ? zero : place;                                                   \
            place = (I)bits < 0 ? zero - place : zero + place;                                                         \
            places[i] = (int16_t)(size > infinity ? 2 * zero + 1 : place);                                             \
        }                                                                                                              \
        int64_t whole = n / TABLES * TABLES;                                                                           \
        for (int64_t i = 0; i < whole; i += TABLES)                                                                    \
            for (int j = 0; j < TABLES; j++)                                                                           \
                tables[j * BUCKETS(fine) + places[i + j]]++;                                                           \
        for (int64_t i = whole; i < n; i++)                                                                            \
            tables[places[i]]++;                                                                                       \
    }

DEFINE_COUNT_BLOCK(count_floats, uint32_t, int32_t, 23, 127)
DEFINE_COUNT_BLOCK(count_doubles, uint64_t, int64_t, 52, 1023)

INLINE void count_tensor(const void *data, int64_t size, int kind, int fine, int64_t *out) {
    _Alignas(64) char scratch[BLOCK * sizeof(float)];
    int64_t tables[TABLES * BUCKETS(PARTS)];
    memset(tables, 0, TABLES * BUCKETS(fine) * sizeof *tables);
    int64_t length = is_wide(kind) ? WIDE_BLOCK : BLOCK;
    for (int64_t start = 0; start < size; start += length) {
        int64_t n = size - start < length ? size - start : length;
        const void *x = widened(data, start, n, kind, scratch);
        if (is_wide(kind))
            count_doubles(x, n, fine, tables);
        else
            count_floats(x, n, fine, tables);
    }
    for (int i = 0; i < BUCKETS(fine); i++) {
        out[i] = 0;
        for (int j = 0; j < TABLES; j++)
            out[i] += tables[j * BUCKETS(fine) + i];
    }
}

/* Copies what is neither below `low` nor above `high`, a NaN included, and counts what is below. Most groups of eight
   elements have none and are passed over; in the others no element is branched on, which would be predicted wrongly. */
#define DEFINE_BETWEEN(NAME, T)                                                                                        \
    INLINE int64_t NAME(const T *x, int64_t n, double low, double high, T *out, int64_t *below) {                      \
        T from = (T)low, to = (T)high;                                                                                 \
        uint8_t inside[BLOCK / 8];                                                                                     \
        int64_t found = 0, under = 0;                                                                                  \
        for (int64_t start = 0; start < n; start += sizeof inside) {                                                   \
            int length = n - start < (int64_t)sizeof inside ? (int)(n - start) : (int)sizeof inside;                   \
            const T *block = x + start;                                                                                \
            int block_under = 0;                                                                                       \
            for (int i = 0; i < length; i++)                                                                           \
                block_under += block[i] < from;                                                                        \
            for (int i = 0; i < length; i++)                                                                           \
                inside[i] = !((block[i] < from) | (block[i] > to));                                                    \
            memset(inside + length, 0, sizeof inside - (size_t)length);                                                \
            for (int i = 0; i < length; i += 8) {                                                                      \
                uint64_t any;                                                                                          \
                memcpy(&any, inside + i, sizeof any);                                                                  \
                for (int j = i; any && j < i + 8 && j < length; j++) {                                                 \
                    out[found] = block[j];                                                                             \
                    found += inside[j];                                                                                \
                }                                                                                                      \
            }                                                                                                          \
            under += block_under;                                                                                      \
        }                                                                                                              \
        *below = under;                                                                                                \
        return found;                                                                                                  \
    }

DEFINE_BETWEEN(floats_between, float)
DEFINE_BETWEEN(doubles_between, double)

INLINE int64_t between(const void *x, int64_t n, int kind, double low, double high, void *out, int64_t *below) {
    return kind == FLOAT32 ? floats_between(x, n, low, high, out, below) : doubles_between(x, n, low, high, out, below);
}

/* How many channels of an array of shape (outer, channels, inner) have only zeros, and how many are held at an end of
   their range; see channels.py. `left` takes the channels that are still in question, `high` and `low` what has been
   counted of each. Where `inner` is 1, rows are read as they lie, some at a time, until few channels are left. */
#define ROWS 64

#define DEFINE_CHANNELS(NAME, T, FABS)                                                                                 \
    INLINE int NAME##_all_zero(const T *x, int64_t n) {                                                                \
        for (int64_t start = 0; start < n; start += 256) {                                                             \
            int length = n - start < 256 ? (int)(n - start) : 256, any = 0;                                            \
            for (int i = 0; i < length; i++)                                                                           \
                any |= x[start + i] != (T)0;                                                                           \
            if (any)                                                                                                   \
                return 0;                                                                                              \
        }                                                                                                              \
        return 1;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    INLINE int64_t NAME##_dead(const T *x, int64_t outer, int64_t channels, int64_t inner, int64_t *left,              \
                               int32_t *any) {                                                                         \
        int64_t count = channels, rows = 1;                                                                            \
        for (int64_t c = 0; c < channels; c++)                                                                         \
            left[c] = c;                                                                                               \
        for (int64_t o = 0; o < outer && count > 0; o += rows, rows = inner > 1 ? 1 : ROWS) {                          \
            int64_t end = o + rows < outer ? o + rows : outer, kept = 0;                                               \
            int all = inner == 1 && 4 * count > channels;                                                              \
            if (all) {                                                                                                 \
                memset(any, 0, (size_t)channels * sizeof *any);                                                        \
                for (int64_t r = o; r < end; r++)                                                                      \
                    for (int64_t c = 0; c < channels; c++)                                                             \
                        any[c] |= x[r * channels + c] != (T)0;                                                         \
            }                                                                                                          \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                int64_t c = left[i], zero = all ? !any[c] : 1;                                                         \
                if (!all)                                                                                              \
                    for (int64_t r = o; r < end && zero; r++)                                                          \
                        zero = NAME##_all_zero(x + (r * channels + c) * inner, inner);                                 \
                if (zero)                                                                                              \
                    left[kept++] = c;                                                                                  \
            }                                                                                                          \
            count = kept;                                                                                              \
        }                                                                                                              \
        return count;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    /* Whether an element lies beyond 1 or -1, whether one lies below 0, and whether one is at the end 1. */           \
    INLINE void NAME##_range(const T *x, int64_t n, int *beyond, int *below, int *top) {                               \
        *beyond = *below = *top = 0;                                                                                   \
        for (int64_t start = 0; start < n && !*beyond; start += BLOCK) {                                               \
            int length = n - start < BLOCK ? (int)(n - start) : BLOCK, over = 0, under = 0, at = 0;                    \
            for (int i = 0; i < length; i++) {                                                                         \
                T v = x[start + i];                                                                                    \
                over |= FABS(v) > (T)1;                                                                                \
                under |= v < (T)0;                                                                                     \
                at |= v >= (T)(1.0 - CHANNEL_END);                                                                     \
            }                                                                                                          \
            *beyond |= over;                                                                                           \
            *below |= under;                                                                                           \
            *top |= at;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    INLINE int64_t NAME##_saturated(const T *x, int64_t outer, int64_t channels, int64_t inner, int64_t elsewhere,     \
                                    int64_t *left, int32_t *high, int32_t *low) {                                      \
        int64_t count = channels, rows = 1;                                                                            \
        int beyond = 0, below, top;                                                                                    \
        for (int64_t c = 0; c < channels; c++) {                                                                       \
            left[c] = c;                                                                                               \
            high[c] = low[c] = 0;                                                                                      \
        }                                                                                                              \
        for (int64_t o = 0; o < outer && count > 0; o += rows, rows = inner > 1 ? 1 : ROWS) {                          \
            int64_t end = o + rows < outer ? o + rows : outer, kept = 0;                                               \
            int all = inner == 1 && 4 * count > channels;                                                              \
            if (all)                                                                                                   \
                for (int64_t r = o; r < end; r++)                                                                      \
                    for (int64_t c = 0; c < channels; c++) {                                                           \
                        T v = x[r * channels + c];                                                                     \
                        beyond |= FABS(v) > (T)1;                                                                      \
                        high[c] += FABS(v) >= (T)(1.0 - CHANNEL_END);                                                  \
                        low[c] += (v > (T)0) & (v <= (T)CHANNEL_END);                                                  \
                    }                                                                                                  \
            for (int64_t i = 0; i < count; i++) {                                                                      \
                int64_t c = left[i];                                                                                   \
                if (!all)                                                                                              \
                    for (int64_t r = o; r < end; r++) {                                                                \
                        const T *run = x + (r * channels + c) * inner;                                                 \
                        for (int64_t start = 0; start < inner; start += 256) {                                         \
                            int length = inner - start < 256 ? (int)(inner - start) : 256;                             \
                            int32_t at_one = 0, at_zero = 0, over = 0;                                                 \
                            for (int j = 0; j < length; j++) {                                                         \
                                T v = run[start + j];                                                                  \
                                over |= FABS(v) > (T)1;                                                                \
                                at_one += FABS(v) >= (T)(1.0 - CHANNEL_END);                                           \
                                at_zero += (v > (T)0) & (v <= (T)CHANNEL_END);                                         \
                            }                                                                                          \
                            high[c] += at_one;                                                                         \
                            low[c] += at_zero;                                                                         \
                            beyond |= over;                                                                            \
                            if (r * inner + start + length - high[c] - low[c] > elsewhere)                             \
                                break;                                                                                 \
                        }                                                                                              \
                    }                                                                                                  \
                if (end * inner - high[c] - low[c] <= elsewhere)                                                       \
                    left[kept++] = c;                                                                                  \
            }                                                                                                          \
            count = beyond ? 0 : kept;                                                                                 \
        }                                                                                                              \
        if (count == 0)                                                                                                \
            return 0;                                                                                                  \
        NAME##_range(x, outer * channels * inner, &beyond, &below, &top);                                              \
        int64_t found = 0;                                                                                             \
        for (int64_t i = 0; i < count && !beyond; i++)                                                                 \
            found += outer * inner - high[left[i]] - (below || !top ? 0 : low[left[i]]) <= elsewhere;                  \
        return found;                                                                                                  \
    }

DEFINE_CHANNELS(floats, float, fabsf)
DEFINE_CHANNELS(doubles, double, fabs)

INLINE void channels_of(const void *x, int64_t outer, int64_t channels, int64_t inner, int kind, int wanted,
                        int64_t elsewhere, int64_t *left, int32_t *high, int32_t *low, int64_t *out) {
    out[0] = out[1] = 0;
    if (wanted & DEAD_WANTED)
        out[0] = kind == FLOAT32 ? floats_dead(x, outer, channels, inner, left, high)
                                 : doubles_dead(x, outer, channels, inner, left, high);
    if (wanted & SATURATED_WANTED)
        out[1] = kind == FLOAT32 ? floats_saturated(x, outer, channels, inner, elsewhere, left, high, low)
                                 : doubles_saturated(x, outer, channels, inner, elsewhere, left, high, low);
}

/* All of it for one width of vectors. */
#define DEFINE_WIDTH(NAME, TARGET)                                                                                     \
    TARGET static void sum_##NAME(const void *data, int64_t size, int kind, int wanted, double *out) {                 \
        sum_tensor(data, size, kind, wanted, out);                                                                     \
    }                                                                                                                  \
    TARGET static void count_##NAME(const void *data, int64_t size, int kind, int fine, int64_t *out) {                \
        if (fine)                                                                                                      \
            count_tensor(data, size, kind, PARTS, out);                                                                \
        else                                                                                                           \
            count_tensor(data, size, kind, 0, out);                                                                    \
    }                                                                                                                  \
    TARGET static int64_t between_##NAME(const void *x, int64_t n, int kind, double low, double high, void *out,       \
                                         int64_t *below) {                                                             \
        return between(x, n, kind, low, high, out, below);                                                             \
    }                                                                                                                  \
    TARGET static void channels_##NAME(const void *x, int64_t outer, int64_t channels, int64_t inner, int kind,        \
                                       int wanted, int64_t elsewhere, int64_t *left, int32_t *high, int32_t *low,      \
                                       int64_t *out) {                                                                 \
        channels_of(x, outer, channels, inner, kind, wanted, elsewhere, left, high, low, out);                         \
    }

DEFINE_WIDTH(plain, )
#ifdef CHOOSES
DEFINE_WIDTH(avx2, FOR_AVX2)
DEFINE_WIDTH(avx512, FOR_AVX512)
#endif

static int width(void) {
#ifdef CHOOSES
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        int supported = __builtin_cpu_supports("avx512f") ? 2 : 1;
        return supported < WIDEST ? supported : WIDEST;
    }
#endif
    return 0;
}

/* Which version of this interface the caller has to speak. */
EXPORT int32_t smd_agent_interface(void) { return INTERFACE; }

/* Sums of one tensor: its address, number of elements and element type, and what is wanted. `out` takes FIELDS
   doubles. */
EXPORT void smd_agent_sum(const void *data, int64_t size, int32_t kind, int32_t wanted, double *out) {
    if (size > 0) {
#ifdef CHOOSES
        int vectors = width();
        (vectors == 2 ? sum_avx512 : vectors == 1 ? sum_avx2 : sum_plain)(data, size, kind, wanted, out);
#else
        sum_plain(data, size, kind, wanted, out);
#endif
        return;
    }
    memset(out, 0, FIELDS * sizeof *out);
    out[N] = out[LOW] = out[HIGH] = out[ABS_LOW] = out[ABS_HIGH] = NAN;
}

/* The same of `count` tensors; `out` takes FIELDS doubles for each. */
EXPORT void smd_agent_sums(int64_t count, const void *const *data, const int64_t *sizes, const int32_t *kinds,
                           int32_t wanted, double *out) {
    for (int64_t i = 0; i < count; i++)
        smd_agent_sum(data[i], sizes[i], kinds[i], wanted, out + i * FIELDS);
}

/* The elements of type FLOAT32 or FLOAT64 that are neither below `low` nor above `high`: copied to `out`, which has room
   for n + 1; returns how many, and how many are below. */
EXPORT int64_t smd_agent_between(const void *x, int64_t n, int32_t kind, double low, double high, void *out,
                                 int64_t *below) {
#ifdef CHOOSES
    if (width() > 0)
        return (width() == 2 ? between_avx512 : between_avx2)(x, n, kind, low, high, out, below);
#endif
    return between_plain(x, n, kind, low, high, out, below);
}

/* The histogram of one tensor by sign and power of two, or, if `fine`, by eighths of these; `out` takes BUCKETS(0) or
   BUCKETS(PARTS) numbers. */
EXPORT void smd_agent_count(const void *data, int64_t size, int32_t kind, int32_t fine, int64_t *out) {
#ifdef CHOOSES
    if (width() > 0) {
        (width() == 2 ? count_avx512 : count_avx2)(data, size, kind, fine, out);
        return;
    }
#endif
    count_plain(data, size, kind, fine, out);
}

/* How many of the channels of an array of type FLOAT32 or FLOAT64, of fewer than 2**31 elements and of shape (outer,
   channels, inner), are dead, and how many saturated, where that is wanted: `out` takes both. `elsewhere` elements of a
   saturated one may be at no end. `left`, `high` and `low` have room for a number for each channel. */
EXPORT void smd_agent_channels(const void *x, int64_t outer, int64_t channels, int64_t inner, int32_t kind,
                               int32_t wanted, int64_t elsewhere, int64_t *left, int32_t *high, int32_t *low,
                               int64_t *out) {
#ifdef CHOOSES
    if (width() > 0) {
        (width() == 2 ? channels_avx512 : channels_avx2)(x, outer, channels, inner, kind, wanted, elsewhere, left, high,
                                                         low, out);
        return;
    }
#endif
    channels_plain(x, outer, channels, inner, kind, wanted, elsewhere, left, high, low, out);
}

/* The same as mixed_sum in mixed.py. */
EXPORT int64_t smd_agent_mixed(const int64_t *words, int64_t n) {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t mixed = ((uint64_t)words[i] + (uint64_t)i + 1) * MIXED_FIRST;
        total += (mixed ^ (uint64_t)((int64_t)mixed >> MIXED_SHIFT)) * MIXED_SECOND;
    }
    return (int64_t)total;
}
