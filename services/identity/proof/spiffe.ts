import { hash } from 'node:crypto'
import { type Clock, glob } from '@plat/core'
import type { Established, Proof, ProofCheck, ProofContext, ProofFailure, ProofVerdict, Unreachable } from './check.ts'
import { SVID_ALGORITHMS, signatureHolds } from './jwt/algorithms.ts'
import { readAssertion, verifyAssertion } from './jwt/assertion.ts'
import { type AssertionKey, readKeySet, signingKeys } from './jwt/keys.ts'
import type { FirstUse } from './parts/first-use.ts'
import { TrustDocument, type TrustParts } from './parts/trust-document.ts'
import { established, failed, isStop, unreachable } from './parts/verdict.ts'
import { type Certificate, readX5c } from './x509/certificate.ts'
import { verifyPath } from './x509/path.ts'
import { leafSpiffeId, parseSpiffeId, type SpiffeId } from './x509/svid.ts'

/** Prefix of the nonce in the bytes that the holder of an X.509-SVID signs, so that the signature has no other meaning. */
export const SPIFFE_PROOF_PREFIX = 'plat-spiffe-proof:'

/** JWT-SVID section 2: `typ` may be absent, `JWT` or `JOSE`. */
const SVID_TYPES: ReadonlySet<string> = new Set(['', 'jwt', 'jose'])

export interface SpiffeSettings {
  /** Files or URLs of SPIFFE bundles by trust domain. */
  readonly bundles: ReadonlyMap<string, string>
  /** One of the `aud` of a JWT-SVID. */
  readonly audience: string
  /** SPIFFE IDs that may prove: `*`, and `{namespace}`, `{agent}`, `{session}` of the mint. */
  readonly ids: readonly string[]
}

/** The keys and authorities of one trust domain (SPIFFE Trust Domain and Bundle, section 4). */
interface Bundle {
  readonly jwtKeys: readonly AssertionKey[]
  readonly authorities: readonly Certificate[]
}

/**
 * Proof by a SPIFFE identity: a JWT-SVID in `token`, or an X.509-SVID whose key the client shows to hold, by the TLS
 * handshake or by a signature over the nonce (`x5c`, `signature`, and its JOSE algorithm in `format`).
 */
export function spiffeCheck(settings: SpiffeSettings, parts: TrustParts & { readonly firstUse: FirstUse }): ProofCheck {
  const bundles = new Map<string, TrustDocument<Bundle>>()
  for (const [domain, location] of settings.bundles) {
    bundles.set(domain, new TrustDocument(location, readBundle, parts))
  }
  const check = new SpiffeCheck(settings, bundles, parts)
  return { name: 'spiffe', nonce: 'optional', verify: (proof, context) => check.verify(proof, context) }
}

/** Throws on what is not a bundle; entries of uses that are not known are passed over. */
function readBundle(bytes: Uint8Array): Bundle {
  const entries = readKeySet(bytes)
  const authorities = entries.flatMap(({ use, x5c }) => {
    if (use !== 'x509-svid' || !Array.isArray(x5c) || x5c.length !== 1 || typeof x5c[0] !== 'string') return []
    const certificate = readX5c(x5c[0])
    return certificate === null ? [] : [certificate]
  })
  return { jwtKeys: signingKeys(entries, ['jwt-svid']), authorities }
}

class SpiffeCheck {
  readonly #settings: SpiffeSettings
  readonly #bundles: ReadonlyMap<string, TrustDocument<Bundle>>
  readonly #clock: Clock
  readonly #firstUse: FirstUse

  constructor(
    settings: SpiffeSettings,
    bundles: ReadonlyMap<string, TrustDocument<Bundle>>,
    { clock, firstUse }: { readonly clock: Clock; readonly firstUse: FirstUse },
  ) {
    this.#settings = settings
    this.#bundles = bundles
    this.#clock = clock
    this.#firstUse = firstUse
  }

  async verify(proof: Proof, context: ProofContext): Promise<ProofVerdict> {
    return proof.token === null ? this.#x509(proof, context) : this.#jwt(proof, context)
  }

  async #jwt({ token, nonce, x5c }: Proof, context: ProofContext): Promise<ProofVerdict> {
    if (nonce !== null || x5c.length > 0) return failed('a JWT-SVID comes without nonce and x5c')
    const jws = readAssertion(token)
    if (isStop(jws)) return jws
    const { sub } = jws.payload
    const id = typeof sub === 'string' ? parseSpiffeId(sub) : null
    if (id === null || id.path.length === 0) return failed('the "sub" of the token is not a SPIFFE ID of a workload')
    const bundle = this.#bundles.get(id.trustDomain)
    if (bundle === undefined) return failed('the trust domain is not trusted')
    const assertion = await verifyAssertion(jws, {
      keys: {
        read: async () => (await bundle.read())?.jwtKeys ?? null,
        readAgain: async () => (await bundle.readAgain())?.jwtKeys ?? null,
      },
      algorithms: SVID_ALGORITHMS,
      types: SVID_TYPES,
      audience: this.#settings.audience,
      maxLifetimeSeconds: null,
      clock: this.#clock,
    })
    if (isStop(assertion)) return assertion
    const credential = `spiffe ${hash('sha256', jws.input, 'base64')}`
    return (
      this.#agrees(id, context) ??
      (await this.#firstUse.claim(credential, context, assertion.expiresAt)) ??
      proven(id, 'jwt-svid')
    )
  }

  async #x509(proof: Proof, context: ProofContext): Promise<ProofVerdict> {
    const chain = chainOf(proof, context)
    if (isStop(chain)) return chain
    const id = leafSpiffeId(chain.leaf)
    if (typeof id === 'string') return failed(id)
    const bundle = this.#bundles.get(id.trustDomain)
    if (bundle === undefined) return failed('the trust domain is not trusted')
    const authorities = await this.#authorities(bundle)
    if (isStop(authorities)) return authorities
    const now = this.#clock.now()
    const path = verifyPath(chain.leaf, { intermediates: chain.intermediates, anchors: authorities, now })
    if (path.kind === 'no path') return failed(path.reason)
    if (!chain.heldByTls && !signsNonce(chain.leaf, proof)) {
      return failed('neither the connection nor a signature over the nonce shows that the key is held')
    }
    return this.#agrees(id, context) ?? proven(id, 'x509-svid')
  }

  async #authorities(bundle: TrustDocument<Bundle>): Promise<readonly Certificate[] | Unreachable> {
    const document = await bundle.read()
    return document?.authorities ?? unreachable('the bundle of the trust domain cannot be read')
  }

  #agrees({ id }: SpiffeId, { namespace, agent, session }: ProofContext): ProofFailure | null {
    const names: Readonly<Record<string, string>> = { namespace, agent, session }
    const matches = this.#settings.ids.some((pattern) =>
      glob(pattern.replace(/\{(namespace|agent|session)\}/g, (_text, name: string) => names[name] ?? ''))(id),
    )
    return matches ? null : failed('the SPIFFE ID may not prove this session')
  }
}

interface Chain {
  readonly leaf: Certificate
  readonly intermediates: readonly Certificate[]
  /** The client proved in the TLS handshake that it holds the leaf's key. */
  readonly heldByTls: boolean
}

/** The chain of `x5c`, or the client certificate of the connection. */
function chainOf({ x5c, nonce }: Proof, { clientCertificate }: ProofContext): Chain | ProofFailure {
  if (x5c.length === 0 && clientCertificate === null) return failed('it carries neither a token nor a certificate')
  const texts = x5c.length === 0 ? [Buffer.from(clientCertificate ?? []).toString('base64')] : x5c
  const certificates = texts.map(readX5c)
  const [leaf] = certificates
  if (leaf === undefined || leaf === null || certificates.includes(null)) {
    return failed('a certificate of x5c cannot be read: base64 of DER, leaf first')
  }
  const intermediates = certificates.slice(1).filter((each) => each !== null)
  // A nonce means that the proof is by signature: then the connection is not considered.
  const heldByTls = nonce === null && clientCertificate !== null && leaf.x509.raw.equals(clientCertificate)
  return { leaf, intermediates, heldByTls }
}

function signsNonce({ x509 }: Certificate, { nonce, signature, format }: Proof): boolean {
  if (nonce === null || signature === null || format === null) return false
  const bytes = Buffer.from(`${SPIFFE_PROOF_PREFIX}${nonce}`)
  return signatureHolds(format, x509.publicKey, { bytes, signature: Buffer.from(signature, 'base64url') })
}

function proven({ id }: SpiffeId, attestation: 'jwt-svid' | 'x509-svid'): Established {
  return established({ check: 'spiffe', attestation, workload: id })
}
