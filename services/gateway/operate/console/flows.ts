import { type Clock, encodeBase64url, type Ids, parseStrict } from '@plat/core'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const SECRET_BYTES = 32
/** How long a person may take to log in, in milliseconds. */
const LOGIN_MS = 10 * 60_000
/** How long a link of `plat console` can be used, in milliseconds. */
export const LINK_MS = 60_000

const flowSchema = Type.Object(
  {
    nonce: Type.String(),
    verifier: Type.String(),
    redirectURI: Type.String(),
    /** Page to show after the login. */
    to: Type.String(),
    acr: Type.String(),
    maxAge: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
    /** Milliseconds since the epoch. */
    until: Type.Number(),
  },
  { additionalProperties: false },
)
export type SealedFlow = Readonly<Static<typeof flowSchema>>

const linkSchema = Type.Object({ id: Type.String(), until: Type.Number() }, { additionalProperties: false })
export type Link = Readonly<Static<typeof linkSchema>>

interface Binding {
  readonly kind: 'console-login' | 'console-link'
  readonly tenant: string
  readonly session: string
  readonly server: string
}

/** Seals text for a binding, with keys that every replica has. */
export interface Sealer {
  seal(binding: Binding, content: { readonly id: string; readonly target: string }): string
  open(binding: Binding, text: string): { readonly id: string } | null
}

/** States of logins and codes of links: sealed, so that requests without a login use no memory, and any replica can continue. */
export class Flows {
  readonly #sealer: Sealer
  readonly #clock: Clock
  readonly #ids: Ids

  constructor({ sealer, clock, ids }: { readonly sealer: Sealer; readonly clock: Clock; readonly ids: Ids }) {
    this.#sealer = sealer
    this.#clock = clock
    this.#ids = ids
  }

  secret(): string {
    return encodeBase64url(this.#ids.random(SECRET_BYTES))
  }

  /** Returns a new flow and its `state`, which only the browser with this secret can use. */
  begin(browser: string, wanted: Pick<SealedFlow, 'redirectURI' | 'to' | 'acr' | 'maxAge'>) {
    const flow = { ...wanted, nonce: this.secret(), verifier: this.secret(), until: this.#clock.now() + LOGIN_MS }
    return { ...flow, state: this.#seal('console-login', browser, flow) }
  }

  /** Null: of another browser, changed, or too old. */
  open(browser: string, state: string): SealedFlow | null {
    const flow = this.#open('console-login', browser, state)
    return Check(flowSchema, flow) && this.#clock.now() < flow.until ? flow : null
  }

  mint(): { readonly code: string; readonly until: number } {
    const link = { id: this.secret(), until: this.#clock.now() + LINK_MS }
    return { code: this.#seal('console-link', '', link), until: link.until }
  }

  /** Null: not minted here, changed, or too old. */
  link(code: string): Link | null {
    const link = this.#open('console-link', '', code)
    return Check(linkSchema, link) && this.#clock.now() < link.until ? link : null
  }

  #seal(kind: Binding['kind'], session: string, content: object): string {
    return this.#sealer.seal({ kind, tenant: '', session, server: '' }, { id: JSON.stringify(content), target: '' })
  }

  #open(kind: Binding['kind'], session: string, text: string): unknown {
    const opened = this.#sealer.open({ kind, tenant: '', session, server: '' }, text)
    return opened === null ? null : parseStrict(Buffer.from(opened.id))
  }
}
