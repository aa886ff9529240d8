import { hash } from 'node:crypto'
import type { Clock } from '@plat/core'
import { type PublicKey, readPublicJwk } from '@plat/keys'
import { type Jws, parseJws } from '../jws.ts'
import { normalHtu } from './htu.ts'
import type { ReplayStore } from './replay.ts'

/** docs/spec/broker-api.md: DPoP proofs use these. */
export const DPOP_ALGORITHMS = ['EdDSA', 'ES256'] as const

/** Maximum age of a proof, in seconds. */
export const PROOF_WINDOW_SECONDS = 60
/** Maximum clock skew of a proof from the future, in seconds. */
export const PROOF_SKEW_SECONDS = 5
/** Maximum length of a `jti` in characters: it is stored. */
const MAX_JTI_CHARS = 256
/** Maximum length of a proof in characters. A proof contains a key of 32 or 64 bytes and a few claims. */
const MAX_PROOF_CHARS = 4096

/** The request that a proof must match. */
export interface ProvenRequest {
  /** Values of header `DPoP` as received: exactly one is valid. */
  readonly headers: readonly string[]
  /** Upper case. */
  readonly method: string
  /** The intended URL, from the configured public URL, because the client controls its Host header. */
  readonly url: string
  /** The access token of the request, exactly as received; `ath` is its hash. */
  readonly accessToken: string
  /** `required` when the token is presented in a header; when it is in the body, `ath` is verified if present. */
  readonly ath: 'required' | 'optional'
}

/** A verified proof. It is accepted only after `use` found it fresh. */
export interface DpopProof {
  readonly kind: 'proof'
  /** RFC 7638 thumbprint of the key that signed it. */
  readonly jkt: string
  readonly jti: string
  /** Unix seconds. */
  readonly issuedAt: number
}

/** An invalid proof: error `invalid_dpop_proof`. One line for the caller. */
export interface ProofFault {
  readonly kind: 'proofFault'
  /** `replayed`: valid, but used before. */
  readonly why: 'invalid' | 'replayed'
  readonly message: string
}

export interface ProofVerifier {
  /** Checks everything except replay: signature, request, time, token. */
  check(request: ProvenRequest): DpopProof | ProofFault
  /**
   * Uses the proof up. Call it last, when nothing else refuses, so that refused proofs do not fill the store. `caller` has a share of the store: the
   * narrowest verified name, such as the agent of the token.
   */
  use(proof: DpopProof, caller: string): Promise<ProofFault | null>
}

export interface ProofVerifierOptions {
  readonly clock: Clock
  readonly replays: ReplayStore
  /** Age of a proof at most, in seconds. Default `PROOF_WINDOW_SECONDS`. */
  readonly windowSeconds?: number
}

/** A verifier of DPoP proofs (RFC 9449, section 4.3). */
export function createProofVerifier(options: ProofVerifierOptions): ProofVerifier {
  return new DpopVerifier(options)
}

class DpopVerifier implements ProofVerifier {
  readonly #options: ProofVerifierOptions
  readonly #windowSeconds: number

  constructor(options: ProofVerifierOptions) {
    this.#options = options
    this.#windowSeconds = options.windowSeconds ?? PROOF_WINDOW_SECONDS
  }

  check(request: ProvenRequest): DpopProof | ProofFault {
    const [text, second] = request.headers
    if (text === undefined || text === '') return bad('the header DPoP is missing')
    if (second !== undefined) return bad('the header DPoP must come once')
    if (text.length > MAX_PROOF_CHARS) return bad('the proof is too long')
    const jws = parseJws(text)
    if ('kind' in jws) return bad('the proof is not a well-formed compact JWS')
    const key = keyOf(jws)
    if ('kind' in key) return key
    if (!key.algorithm.verify(jws.input, key.key, jws.signature)) return bad('the signature of the proof is wrong')
    return this.#claims(jws.payload, request) ?? this.#timed(jws.payload, key.kid)
  }

  async use({ jkt, jti, issuedAt }: DpopProof, caller: string): Promise<ProofFault | null> {
    // A proof from the near future lives longer: it is stored until its own end, not for a window from now.
    const until = (issuedAt + this.#windowSeconds + PROOF_SKEW_SECONDS) * 1000
    const verdict = await this.#options.replays.use({ jkt, jti, until, caller })
    if (verdict === 'fresh') return null
    if (verdict === 'full') return bad('too many proofs at once: try again later')
    return { ...bad('the proof was used before'), why: 'replayed' }
  }

  #claims(payload: Jws['payload'], request: ProvenRequest): ProofFault | null {
    if (payload.htm !== request.method) return bad('"htm" of the proof is another method')
    const htu = typeof payload.htu === 'string' ? normalHtu(payload.htu) : null
    if (htu === null || htu !== normalHtu(request.url)) return bad('"htu" of the proof is another URL')
    if (payload.ath === undefined) {
      return request.ath === 'optional' ? null : bad('"ath" is missing from the proof')
    }
    if (payload.ath !== hash('sha256', request.accessToken, 'base64url'))
      return bad('"ath" of the proof is another token')
    return null
  }

  #timed({ iat, jti }: Jws['payload'], jkt: string): DpopProof | ProofFault {
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_CHARS || !jti.isWellFormed()) {
      return bad(`"jti" of the proof is missing, or longer than ${MAX_JTI_CHARS} characters`)
    }
    if (typeof iat !== 'number' || !Number.isSafeInteger(iat))
      return bad('"iat" of the proof is missing or not an integer')
    const now = this.#options.clock.now() / 1000
    if (iat > now + PROOF_SKEW_SECONDS) return bad('"iat" of the proof is in the future')
    // `iat` has whole seconds: with a window of 0 a proof of this second is still accepted.
    if (iat < Math.floor(now) - this.#windowSeconds) return bad('"iat" of the proof is too long ago')
    return { kind: 'proof', jkt, jti, issuedAt: iat }
  }
}

/** Returns the key in the header, when the header is that of a proof. */
function keyOf({ header }: Jws): PublicKey | ProofFault {
  if (header.typ !== 'dpop+jwt') return bad('"typ" of the proof must be dpop+jwt')
  if (!DPOP_ALGORITHMS.some((name) => name === header.alg)) {
    return bad(`"alg" of the proof must be one of ${DPOP_ALGORITHMS.join(', ')}`)
  }
  const key = readPublicJwk(header.members.jwk)
  if (key === null) return bad('"jwk" of the proof is not a public key that is accepted')
  // The key determines the algorithm; the header must agree.
  return key.algorithm.name === header.alg ? key : bad('"alg" of the proof is not for the key in "jwk"')
}

function bad(message: string): ProofFault {
  return { kind: 'proofFault', why: 'invalid', message }
}
