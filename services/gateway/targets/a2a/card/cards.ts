import { createHash } from 'node:crypto'
import { reasonOf } from '@plat/core'
import type { Signer } from '@plat/keys'
import type { Log } from '@plat/process'
import { type Denial, deny } from '../../../call/index.ts'
import type { ExposedAgent } from '../registry.ts'
import { type CardContext, cardOf, PROTOCOL_VERSION, type RemoteCard } from './card.ts'
import type { RemoteCards } from './remote.ts'
import { signedCard } from './sign.ts'

/** Path of the JWK set of signed cards; no namespace can have this name. */
export const KEYS_PATH = '/a2a/.well-known/jwks.json'

export interface CardsOptions {
  readonly remote: Pick<RemoteCards, 'of'>
  /** Null if cards are not signed. */
  readonly signer: Signer | null
  /** docs/spec/gateway.md, `a2a.publicURL`, without a trailing slash; null for the host of the request. */
  readonly publicURL: string | null
  /** Scheme of the gateway's listener, if `publicURL` is null. */
  readonly scheme: 'http' | 'https'
  readonly pushes: boolean
  /** docs/spec/gateway.md, `publicCards`: shared caches may store cards that need no token. */
  readonly isPublic: boolean
  readonly cacheSeconds: number
  readonly log: Pick<Log, 'error'>
}

export interface CardRequest {
  /** Header `Host`. */
  readonly host: string | undefined
  /** Header `If-None-Match`. */
  readonly ifNoneMatch: string | undefined
  /** Version that the client named; empty for none. */
  readonly version: string
}

export interface CardResponse {
  readonly status: 200 | 304
  readonly headers: Readonly<Record<string, string>>
  /** Null for 304. */
  readonly body: Uint8Array | null
}

/** Hosts that may be repeated in cards. */
const HOST = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

interface Written {
  readonly remote: RemoteCard | null
  readonly baseURL: string
  readonly body: Uint8Array
  readonly etag: string
}

/** Serves the cards of exposed agents: identical bytes as long as nothing in them changes. */
export class Cards {
  readonly #options: CardsOptions
  readonly #written = new WeakMap<ExposedAgent, Written>()
  /** For clients of 0.3. */
  readonly #legacy = new WeakMap<ExposedAgent, Written>()

  constructor(options: CardsOptions) {
    this.#options = options
  }

  /** Public keys of card signatures, as a JWK set. */
  get keys(): object {
    const { signer } = this.#options
    return { keys: signer === null ? [] : [{ ...signer.publicJwk, kid: signer.kid, alg: signer.alg, use: 'sig' }] }
  }

  async answer(agent: ExposedAgent, { host, ifNoneMatch, version }: CardRequest): Promise<CardResponse | Denial> {
    const { remote, publicURL, scheme, cacheSeconds, isPublic } = this.#options
    if (publicURL === null && !HOST.test(host ?? '')) return deny('invalid_request', 'header Host names no host')
    const baseURL = publicURL ?? `${scheme}://${host}`
    const isLegacy = version !== PROTOCOL_VERSION
    const context = { baseURL, isLegacy, remote: await remote.of(agent) }
    const written = this.#known(agent, context) ?? (await this.#write(agent, context))
    if (written === null) return deny('state_unavailable', 'the card cannot be signed now')
    const headers = {
      etag: written.etag,
      'cache-control': `${isPublic ? 'public' : 'private'}, max-age=${cacheSeconds}`,
      vary: publicURL === null ? 'Host, A2A-Version' : 'A2A-Version',
    }
    if (ifNoneMatch?.split(',').some((tag) => tag.trim() === written.etag)) return { status: 304, headers, body: null }
    return { status: 200, headers: { 'content-type': 'application/json', ...headers }, body: written.body }
  }

  #known(agent: ExposedAgent, { baseURL, remote, isLegacy }: Omit<CardContext, 'pushes'>): Written | null {
    const known = (isLegacy ? this.#legacy : this.#written).get(agent)
    return known !== undefined && known.remote === remote && known.baseURL === baseURL ? known : null
  }

  /** Resolves to null if the key service does not sign now. */
  async #write(agent: ExposedAgent, context: Omit<CardContext, 'pushes'>): Promise<Written | null> {
    const { baseURL, remote, isLegacy } = context
    const { signer, pushes, log } = this.#options
    const card = cardOf(agent, { ...context, pushes })
    try {
      const signed = signer === null ? card : await signedCard(card, signer, baseURL + KEYS_PATH)
      const body = Buffer.from(JSON.stringify(signed))
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
      const written = { remote, baseURL, body, etag }
      const cache = isLegacy ? this.#legacy : this.#written
      cache.set(agent, written)
      return written
    } catch (error) {
      log.error({ key: 'a2a.cardSigningKey', error: reasonOf(error) }, 'a card of an agent could not be signed')
      return null
    }
  }
}
