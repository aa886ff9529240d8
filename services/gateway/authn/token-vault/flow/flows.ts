import { type Clock, encodeBase64url, type Ids, type PoolObserver, watchedPool } from '@plat/core'
import type { OnceSet, OnceSets } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

/** Bytes of every secret of a flow. */
const SECRET_BYTES = 32

const flowSchema = Type.Object(
  {
    id: Type.String(),
    /** Milliseconds since the epoch. */
    expiresAt: Type.Number(),
    provider: Type.String(),
    /** Tenant whose agents may use the account; empty: agents of namespaces without a tenant. */
    tenant: Type.String(),
    nonce: Type.String(),
    /** PKCE. */
    verifier: Type.String(),
    /** The logged-in user; empty before the login. */
    user: Type.String(),
    /** Tokens of the identity provider; null if the provider's grant does not need them. */
    login: Type.Union([
      Type.Object({ idToken: Type.String(), refreshToken: Type.Union([Type.String(), Type.Null()]) }),
      Type.Null(),
    ]),
  },
  { additionalProperties: false },
)

/** State passed from one step of a flow to the next. */
export type Flow = Readonly<Static<typeof flowSchema>>

/** Steps of a flow: login, confirmation form, consent at the provider. */
export type Step = 'login' | 'confirm' | 'consent'

/** Seals text for a binding. It cannot be opened for another binding. */
export interface FlowSealer {
  seal(binding: FlowBinding, content: { readonly id: string; readonly target: string }): string
  open(binding: FlowBinding, text: string): { readonly id: string } | null
}

interface FlowBinding {
  readonly kind: 'connect-flow'
  readonly tenant: string
  readonly session: string
  readonly server: string
}

/**
 * The state of a flow is sealed into `state` and a hidden form field and bound to the browser that began it, so that unauthenticated
 * clicks use no memory here. Each step can be used once.
 */
export class Flows {
  readonly #sealer: FlowSealer
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #ttlMs: number
  readonly #spent: OnceSet

  constructor(options: {
    readonly sealer: FlowSealer
    readonly clock: Clock
    readonly ids: Ids
    readonly ttlMs: number
    readonly once: OnceSets
    readonly observer?: PoolObserver | undefined
  }) {
    this.#sealer = options.sealer
    this.#clock = options.clock
    this.#ids = options.ids
    this.#ttlMs = options.ttlMs
    const cap = watchedPool({ name: 'connect_flows', observer: options.observer })
    this.#spent = options.once.set('connect-flows', cap)
  }

  /** Returns an unguessable value for a browser, nonce or verifier. */
  secret(): string {
    return encodeBase64url(this.#ids.random(SECRET_BYTES))
  }

  begin(provider: string, tenant = ''): Flow {
    const expiresAt = this.#clock.now() + this.#ttlMs
    return { ...this.#secrets(), expiresAt, provider, tenant, user: '', login: null }
  }

  /** Returns the next step of a flow for this user, with new secrets and the same expiry. */
  next(flow: Flow, known: Pick<Flow, 'user' | 'login'>): Flow {
    return { ...flow, ...this.#secrets(), ...known }
  }

  seal(step: Step, browser: string, flow: Flow): string {
    return this.#sealer.seal(binding(step, browser), { id: JSON.stringify(flow), target: flow.provider })
  }

  /** Returns null for flows of another browser or step, and for modified or expired ones. */
  open(step: Step, browser: string, text: string): Flow | null {
    const opened = this.#sealer.open(binding(step, browser), text)
    const flow: unknown = opened === null ? null : JSON.parse(opened.id)
    return Check(flowSchema, flow) && this.#clock.now() < flow.expiresAt ? flow : null
  }

  /**
   * Marks a step as used on all replicas, within the share of the logged-in user. Returns false if it was used before or the share is exhausted.
   * Rejects with StateUnreachableError.
   */
  async spend({ id, expiresAt }: Flow, user: string): Promise<boolean> {
    return (await this.#spent.insert(id, '', expiresAt, user)) === 'inserted'
  }

  #secrets(): Pick<Flow, 'id' | 'nonce' | 'verifier'> {
    return { id: this.secret(), nonce: this.secret(), verifier: this.secret() }
  }
}

function binding(step: Step, browser: string): FlowBinding {
  return { kind: 'connect-flow', tenant: '', session: browser, server: step }
}
