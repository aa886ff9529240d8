import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { readKeyFile } from './files.ts'

/** Length of cipher keys and of the keys that they wrap, in bytes. */
export const CIPHER_KEY_BYTES = 32

/** Wraps keys. A key in a file is synchronous; a remote one returns promises. */
export interface Cipher {
  /** RFC 7638 thumbprint of the key as an octet JWK. */
  readonly kid: string
  /** Wraps a key of `CIPHER_KEY_BYTES`. */
  wrap(key: Uint8Array): Uint8Array | Promise<Uint8Array>
  /** Returns null for bytes that this cipher has not wrapped, or that were modified. */
  unwrap(wrapped: Uint8Array): Uint8Array | null | Promise<Uint8Array | null>
}

/**
 * Opens the AES-256 key that a URI or path names: a file of 32 bytes in base64 or hex. Throws one line that names it and never quotes it; only files
 * are supported.
 */
export async function openCipher(uriOrPath: string): Promise<Cipher> {
  const { file, text } = await readKeyFile(uriOrPath)
  const key = keyBytes(text.trim())
  if (key === null) throw new Error(`${file}: holds no AES-256 key; write ${CIPHER_KEY_BYTES} bytes in base64 or hex`)
  return cipherOf(key)
}

const HEX = /^[0-9a-fA-F]{64}$/
/** 43 characters and the padding; the last one has two unused bits, which are zero. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

function keyBytes(text: string): Buffer | null {
  if (HEX.test(text)) return Buffer.from(text, 'hex')
  return BASE64.test(text) ? Buffer.from(text, 'base64') : null
}

const KEY_WRAP = 'id-aes256-wrap'
/** RFC 3394, section 2.2.3.1: integrity check of an unwrapped key. */
const KEY_WRAP_IV = Buffer.alloc(8, 0xa6)

/** Creates the cipher of a key of `CIPHER_KEY_BYTES`: AES key wrap (RFC 3394), which needs no nonce and detects every change. */
export function cipherOf(secret: Buffer): Cipher {
  return {
    kid: hash('sha256', JSON.stringify({ k: secret.toString('base64url'), kty: 'oct' }), 'base64url'),
    wrap(plain) {
      const cipher = createCipheriv(KEY_WRAP, secret, KEY_WRAP_IV)
      return Buffer.concat([cipher.update(plain), cipher.final()])
    },
    unwrap(wrapped) {
      try {
        const decipher = createDecipheriv(KEY_WRAP, secret, KEY_WRAP_IV)
        const key = Buffer.concat([decipher.update(wrapped), decipher.final()])
        return key.length === CIPHER_KEY_BYTES ? key : null
      } catch {
        return null
      }
    },
  }
}
