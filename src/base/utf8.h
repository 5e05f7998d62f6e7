/* Which bytes are UTF-8. */
#ifndef MERIDIAN_BASE_UTF8_H
#define MERIDIAN_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the sequence at s[0, len), 0 when it is not one (overlong and surrogates included). */
size_t utf8_sequence(const char *s, size_t len);

/* How many bytes at the beginning of s[0, len) are whole sequences. */
size_t utf8_prefix(const char *s, size_t len);

/* Writes a character, at most 4 bytes. How many they are. */
size_t utf8_put(char *out, uint32_t c);

#endif
