import { type Clock, ExpiringMap, encodeBase64url, type Ids, type PoolObserver, watchedPool } from '@plat/core'
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
    /** Whose agents may use the account; empty: those of namespaces without a tenant. */
    tenant: Type.String(),
    nonce: Type.String(),
    /** PKCE. */
    verifier: Type.String(),
    /** Who has logged in; empty before. */
    user: Type.String(),
    /** What the identity provider gave; null where the provider's grant does not need it. */
    login: Type.Union([
      Type.Object({ idToken: Type.String(), refreshToken: Type.Union([Type.String(), Type.Null()]) }),
      Type.Null(),
    ]),
  },
  { additionalProperties: false },
)

/** What one step of a flow hands to the next. */
export type Flow = Readonly<Static<typeof flowSchema>>

/** Where a flow stands: at the login, at the question whether to go on, at the provider. */
export type Step = 'login' | 'confirm' | 'consent'

/** Seals text for a binding; what was sealed for another one does not open. */
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
 * What a flow knows stands in `state` and in a hidden field, sealed, and bound to the browser that began: nothing is kept here
 * for people who only clicked. A step can be taken once.
 */
export class Flows {
  readonly #sealer: FlowSealer
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #ttlMs: number
  readonly #spent: ExpiringMap<true>

  constructor(options: {
    readonly sealer: FlowSealer
    readonly clock: Clock
    readonly ids: Ids
    readonly ttlMs: number
    readonly observer?: PoolObserver | undefined
  }) {
    this.#sealer = options.sealer
    this.#clock = options.clock
    this.#ids = options.ids
    this.#ttlMs = options.ttlMs
    this.#spent = new ExpiringMap({
      clock: options.clock,
      cap: watchedPool({ name: 'connect_flows', observer: options.observer }),
    })
  }

  /** What nobody can guess: names a browser, a nonce, a verifier. */
  secret(): string {
    return encodeBase64url(this.#ids.random(SECRET_BYTES))
  }

  begin(provider: string, tenant = ''): Flow {
    const expiresAt = this.#clock.now() + this.#ttlMs
    return { ...this.#secrets(), expiresAt, provider, tenant, user: '', login: null }
  }

  /** The next step of the same flow, for this user: with secrets of its own, and no more time. */
  next(flow: Flow, known: Pick<Flow, 'user' | 'login'>): Flow {
    return { ...flow, ...this.#secrets(), ...known }
  }

  seal(step: Step, browser: string, flow: Flow): string {
    return this.#sealer.seal(binding(step, browser), { id: JSON.stringify(flow), target: flow.provider })
  }

  /** Null for what another browser began, for another step, what was changed, and what has expired. */
  open(step: Step, browser: string, text: string): Flow | null {
    const opened = this.#sealer.open(binding(step, browser), text)
    const flow: unknown = opened === null ? null : JSON.parse(opened.id)
    return Check(flowSchema, flow) && this.#clock.now() < flow.expiresAt ? flow : null
  }

  /** Uses a step up, in the share of the user who has logged in. Returns false when it was used before, or the share is used. */
  spend({ id, expiresAt }: Flow, user: string): boolean {
    return this.#spent.insert(id, true, expiresAt, user) === 'inserted'
  }

  #secrets(): Pick<Flow, 'id' | 'nonce' | 'verifier'> {
    return { id: this.secret(), nonce: this.secret(), verifier: this.secret() }
  }
}

function binding(step: Step, browser: string): FlowBinding {
  return { kind: 'connect-flow', tenant: '', session: browser, server: step }
}
