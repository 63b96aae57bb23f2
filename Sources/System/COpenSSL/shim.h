#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// SSL_OP_* are uint64_t casts behind SSL_OP_BIT(), which the importer skips. Every other macro
// is replaced in Swift by the SSL_ctrl() or BIO_ctrl() call it stands for.
static inline uint64_t rouse_SSL_OP_NO_RENEGOTIATION(void) { return SSL_OP_NO_RENEGOTIATION; }
static inline uint64_t rouse_SSL_OP_NO_COMPRESSION(void) { return SSL_OP_NO_COMPRESSION; }
static inline uint64_t rouse_SSL_OP_NO_TICKET(void) { return SSL_OP_NO_TICKET; }
static inline uint64_t rouse_SSL_OP_CIPHER_SERVER_PREFERENCE(void) {
    return SSL_OP_CIPHER_SERVER_PREFERENCE;
}
static inline uint64_t rouse_SSL_OP_PRIORITIZE_CHACHA(void) { return SSL_OP_PRIORITIZE_CHACHA; }

// XN_FLAG_RFC2253 is an expression of casts.
static inline unsigned long rouse_XN_FLAG_RFC2253(void) { return XN_FLAG_RFC2253; }
