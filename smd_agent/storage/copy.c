/* Copies large values past the caches, loaded by copying.py. The processor that trains does not look at the copy again,
   so its cache lines need neither be read before they are written over nor take the place of what training uses. */

#include <stdint.h>
#include <string.h>

#define INTERFACE 1
#define AHEAD 512

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

#if defined(__SSE2__)
#include <emmintrin.h>
#define LINE 64
#define PART 16

static void copy(char *to, const char *from, int64_t size) {
    int64_t before = -(intptr_t)to & (LINE - 1);
    if (before > size)
        before = size;
    memcpy(to, from, (size_t)before);
    to += before, from += before, size -= before;
    int64_t whole = size / LINE * LINE;
    for (int64_t i = 0; i < whole; i += LINE) {
        /* Harmless beyond the end. */
        _mm_prefetch(from + i + AHEAD, _MM_HINT_T0);
        for (int j = 0; j < LINE; j += PART)
            _mm_stream_si128((__m128i *)(to + i + j), _mm_loadu_si128((const __m128i *)(from + i + j)));
    }
    /* Whoever is told of the copy afterwards sees it. */
    _mm_sfence();
    memcpy(to + whole, from + whole, (size_t)(size - whole));
}
#else
static void copy(char *to, const char *from, int64_t size) { memcpy(to, from, (size_t)size); }
#endif

EXPORT int smd_agent_copy_interface(void) { return INTERFACE; }

EXPORT void smd_agent_copy(char *to, const char *from, int64_t size) { copy(to, from, size); }
