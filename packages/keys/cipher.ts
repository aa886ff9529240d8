import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { readKeyFile } from './files.ts'

/** Bytes of the keys that a cipher is made of, and of the keys that it wraps. */
export const CIPHER_KEY_BYTES = 32

/** Something that hides keys. A key in a file answers at once; a remote one will answer a promise. */
export interface Cipher {
  /** RFC 7638 thumbprint of the key as an octet JWK. */
  readonly kid: string
  /** Wraps a key of `CIPHER_KEY_BYTES`. */
  wrap(key: Uint8Array): Uint8Array | Promise<Uint8Array>
  /** Null for what this cipher has not wrapped, and for what was changed since. */
  unwrap(wrapped: Uint8Array): Uint8Array | null | Promise<Uint8Array | null>
}

/**
 * Opens the AES-256 key that a URI or path names: a file of 32 bytes in base64 or hex. Throws one line that names it and never
 * quotes it; schemes other than files are not built.
 */
export async function openCipher(uriOrPath: string): Promise<Cipher> {
  const { file, text } = await readKeyFile(uriOrPath)
  const key = keyBytes(text.trim())
  if (key === null) throw new Error(`${file}: holds no AES-256 key; write ${CIPHER_KEY_BYTES} bytes in base64 or hex`)
  return cipherOf(key)
}

const HEX = /^[0-9a-fA-F]{64}$/
/** 43 characters and the padding; the last one has two unused bits, which are nought. */
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

function keyBytes(text: string): Buffer | null {
  if (HEX.test(text)) return Buffer.from(text, 'hex')
  return BASE64.test(text) ? Buffer.from(text, 'base64') : null
}

const KEY_WRAP = 'id-aes256-wrap'
/** RFC 3394, section 2.2.3.1: what an unwrapped key is told from garbage by. */
const KEY_WRAP_IV = Buffer.alloc(8, 0xa6)

/** AES key wrap (RFC 3394): needs no nonce, and notices every change. */
function cipherOf(secret: Buffer): Cipher {
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
