import { hash } from 'node:crypto'
import { isObject } from '@plat/core'

/** Characters of a token that distinguish it from most others: 72 random bits. */
const FINGERPRINT_CHARS = 13
/** Prime of the hash FNV-1a with 32 bits. */
const FNV_PRIME = 16_777_619

/** A token that may be presented repeatedly: values derived from its text are cached. Untrusted until verified. */
export class PresentedToken {
  readonly text: string
  /** 32 bits of the signature's text, mostly different for other tokens: quickly rules out unknown ones. */
  readonly fingerprint: number
  #digest: string | null = null
  #issuer: string | null | undefined

  constructor(text: string) {
    this.text = text
    this.fingerprint = fingerprintOf(text)
  }

  /** SHA-256 of the whole token, in hexadecimal. */
  get digest(): string {
    this.#digest ??= hash('sha256', this.text, 'hex')
    return this.#digest
  }

  /** Unverified `iss` of the token; null without one. The verifier parses the token again, strictly. */
  get claimedIssuer(): string | null {
    if (this.#issuer === undefined) this.#issuer = issuerOf(this.text)
    return this.#issuer
  }
}

/** Hashes the last characters of the signature: all but the very last are random, whatever the token. */
function fingerprintOf(text: string): number {
  let bits = 0
  for (let at = Math.max(0, text.length - FINGERPRINT_CHARS); at < text.length; at++) {
    bits = Math.imul(bits ^ text.charCodeAt(at), FNV_PRIME)
  }
  return bits
}

function issuerOf(token: string): string | null {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.', 2)[1] ?? '', 'base64url').toString('utf8'))
    return isObject(payload) && typeof payload.iss === 'string' ? payload.iss : null
  } catch {
    return null
  }
}
