import { hash } from 'node:crypto'
import { isObject } from './jws.ts'

/** Characters of a token that tell it from most others: 72 random bits. */
const FINGERPRINT_CHARS = 13
/** Of the hash FNV-1a with 32 bits. */
const FNV_PRIME = 16_777_619

/** A token that may be shown more than once: what its text alone says is worked out once. Nothing in it is trusted yet. */
export class PresentedToken {
  readonly text: string
  /** 32 bits of the signature's text. Those of other tokens differ, mostly: good for telling quickly what is not known. */
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

  /** `iss` as the token says it; null: it says none. Whoever verifies the token reads it again, strictly. */
  get claimedIssuer(): string | null {
    if (this.#issuer === undefined) this.#issuer = issuerOf(this.text)
    return this.#issuer
  }
}

/** Of the signature's last characters: all but the very last are random, whatever the token says. */
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
