import { type Clock, type PoolObserver, watchedPool } from '@plat/core'
import { type OnceSets, StateUnreachableError } from '@plat/state'
import {
  createProofVerifier,
  type DpopProof,
  memoryReplayStore,
  type ProofVerifier,
  type ReplayStore,
  sharedReplayStore,
} from '@plat/tokens'
import { agentOf, type Denial, deny, type Identity, type WireRequest } from '../../call/index.ts'

/** Proofs of all replicas that are remembered at most. */
const MAX_SHARED_PROOFS = 1_000_000
/** How long a used proof is remembered beyond its end, in milliseconds: the clock of another replica may be behind that of the database. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/** Label `outcome` of `plat_gateway_dpop_requests_total`. */
export type DpopOutcome = 'bound' | 'unbound' | 'missing' | 'invalid' | 'replayed'

/** The block `dpop` (docs/spec/gateway.md). */
export interface DpopConfig {
  readonly require: boolean
  readonly maxAgeSeconds: number
  /** Public URL of the gateway; empty: `identity.resourceBaseURL`. */
  readonly publicURL: string
}

/** Credentials of a request. */
export interface PresentedToken {
  readonly token: string
  readonly scheme: 'bearer' | 'dpop'
  /** The header `DPoP` as received. */
  readonly proof: string | undefined
}

/** Refusal of a token without a valid proof. */
export interface DpopRefusal {
  readonly code: 'dpop_required' | 'invalid_dpop_proof' | 'unauthenticated'
  /** `error` of the challenge (RFC 9449, section 7.1). */
  readonly error: 'invalid_token' | 'invalid_dpop_proof'
  readonly message: string
}

export interface DpopGateOptions {
  readonly config: DpopConfig
  readonly resourceBaseURL: string
  readonly clock: Clock
  /** Where replicas share the proofs that were used; absent: there are no others. */
  readonly shared?: Pick<OnceSets, 'set'> | null | undefined
  readonly counted: (outcome: DpopOutcome) => void
  readonly observer?: PoolObserver | undefined
}

/** Requires proof of possession for tokens bound to a key, and for all tokens with `dpop.require` (RFC 9449, section 7). */
export class DpopGate {
  readonly #require: boolean
  /** Without a trailing slash. Empty: unknown, so no proof can be checked, because callers choose the Host header. */
  readonly #publicURL: string
  readonly #proofs: ProofVerifier
  readonly #counted: DpopGateOptions['counted']

  constructor({ config, resourceBaseURL, clock, shared = null, counted, observer }: DpopGateOptions) {
    this.#require = config.require
    this.#publicURL = (config.publicURL || resourceBaseURL).replace(/\/$/, '')
    this.#proofs = createProofVerifier({
      clock,
      replays: replaysOf(memoryReplayStore(clock, watchedPool({ name: 'dpop_proofs', observer })), shared),
      windowSeconds: config.maxAgeSeconds,
    })
    this.#counted = counted
  }

  /** Returns null if the token may be used for this request, and a denial while that is not known. Synchronous for unbound tokens. */
  ask(
    wire: WireRequest,
    presented: PresentedToken,
    identity: Identity,
  ): DpopRefusal | null | Promise<DpopRefusal | Denial | null> {
    const { jkt } = identity
    if (jkt === null) return this.#unbound(wire, presented)
    if (presented.scheme === 'bearer') {
      return this.#refuse('missing', boundAsBearer)
    }
    if (presented.proof === undefined) return this.#refuse('missing', badProof('the header DPoP is missing'))
    if (this.#publicURL === '') return this.#refuse('invalid', noPublicURL)
    const proof = this.#proofs.check({
      headers: [presented.proof],
      method: wire.method,
      url: this.#publicURL + wire.path,
      accessToken: presented.token,
      ath: 'required',
    })
    if (proof.kind === 'proofFault') return this.#refuse('invalid', badProof(proof.message))
    return proof.jkt === jkt ? this.#use(proof, identity) : this.#refuse('invalid', anotherKey)
  }

  /** Browsers cannot send proofs to their proxy, so the egress proxy accepts unbound tokens even if proofs are required. */
  #unbound({ method }: WireRequest, { scheme }: PresentedToken): DpopRefusal | null {
    this.#counted('unbound')
    if (this.#require && method !== 'CONNECT') return mustBeBound
    return scheme === 'dpop' ? notBound : null
  }

  async #use(proof: DpopProof, identity: Identity): Promise<DpopRefusal | Denial | null> {
    const fault = await this.#proofs.use(proof, agentOf(identity)).catch((error: unknown) => {
      if (error instanceof StateUnreachableError) return 'unknown' as const
      throw error
    })
    if (fault === 'unknown') return notKnown
    if (fault !== null) return this.#refuse(fault.why, badProof(fault.message))
    this.#counted('bound')
    return null
  }

  #refuse(outcome: DpopOutcome, refusal: DpopRefusal): DpopRefusal {
    this.#counted(outcome)
    return refusal
  }
}

/** A file-backed gateway has one process, whose memory knows every proof. */
function replaysOf(local: ReplayStore, shared: Pick<OnceSets, 'set'> | null): ReplayStore {
  if (shared === null) return local
  const set = shared.set('dpop', MAX_SHARED_PROOFS)
  return sharedReplayStore(local, {
    insert: (key, value, until, caller) => set.insert(key, value, until + CLOCKS_DIFFER_MS, caller),
  })
}

const notKnown = deny('state_unavailable', 'it is not known whether another replica has seen this DPoP proof')

function badProof(message: string): DpopRefusal {
  return { code: 'invalid_dpop_proof', error: 'invalid_dpop_proof', message }
}

/** A bound token is refused as a bearer token: it may be stolen. */
const boundAsBearer: DpopRefusal = {
  code: 'dpop_required',
  error: 'invalid_token',
  message: 'this token is bound to a key: send it as "Authorization: DPoP <token>" with a proof in the header DPoP',
}

const anotherKey: DpopRefusal = {
  code: 'invalid_dpop_proof',
  error: 'invalid_token',
  message: 'the key of the proof is not the key that the token is bound to',
}

const mustBeBound: DpopRefusal = {
  code: 'dpop_required',
  error: 'invalid_token',
  message: 'a token that is bound to a DPoP key is required here',
}

const notBound: DpopRefusal = {
  code: 'unauthenticated',
  error: 'invalid_token',
  message: 'this token is not bound to a key: send it as "Authorization: Bearer <token>"',
}

const noPublicURL = badProof('no proof can be checked: the gateway needs dpop.publicURL or identity.resourceBaseURL')
