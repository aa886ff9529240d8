import { type Clock, LruCache, parseStrict, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import { type Static, Type } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { ExposedAgent } from '../registry.ts'
import { CARD_PATH, LEGACY_VERSION, type RemoteCard } from './card.ts'

/** Maximum size of an agent's card, in bytes. */
const MAX_CARD_BYTES = 256 * 1024
/** Deadline of the request, in milliseconds. */
const CARD_TIMEOUT_MS = 5_000
/** Minimum time between requests after a failure, in milliseconds. */
const RETRY_MS = 10_000
/** Maximum number of cached cards; the least recently used is evicted. */
const CARDS_MAX = 10_000

/** Name of the binding in cards. */
const JSON_RPC = 'JSONRPC'

const modes = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 64 })

/** The used part of a card: other members may be anything. */
const cardSchema = Type.Object({
  supportedInterfaces: Type.Optional(
    Type.Array(Type.Object({ protocolBinding: Type.String(), protocolVersion: Type.String() })),
  ),
  // Members of 0.3, which has one version for all of its transports.
  protocolVersion: Type.Optional(Type.String()),
  preferredTransport: Type.Optional(Type.String()),
  additionalInterfaces: Type.Optional(Type.Array(Type.Object({ transport: Type.String() }))),
  capabilities: Type.Object({
    pushNotifications: Type.Optional(Type.Boolean()),
    extensions: Type.Optional(
      Type.Array(
        Type.Object({
          uri: Type.String({ minLength: 1, maxLength: 1024 }),
          description: Type.Optional(Type.String({ maxLength: 4096 })),
          required: Type.Optional(Type.Boolean()),
        }),
        { maxItems: 64 },
      ),
    ),
  }),
  defaultInputModes: modes,
  defaultOutputModes: modes,
})

/** Compiled for the first card: an uncompiled check of 256 KiB holds the event loop for 60 ms. */
let check: Validator<Record<never, never>, typeof cardSchema> | null = null

interface CachedCard {
  readonly endpoint: string
  readonly card: Promise<RemoteCard | null>
  /** End of validity, in milliseconds since the epoch. */
  until: number
}

export interface RemoteCardsOptions {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** Additional CA bundle in PEM, or null. */
  readonly extraCA: string | null
  /** docs/spec/gateway.md, `cardCacheSeconds`, in milliseconds. */
  readonly cacheMs: number
  readonly clock: Clock
  readonly log: Log
}

/** Cache of the cards that agents serve, with one request per agent at a time. */
export class RemoteCards {
  readonly #options: RemoteCardsOptions
  readonly #cards = new LruCache<string, CachedCard>({ maxEntries: CARDS_MAX })

  constructor(options: RemoteCardsOptions) {
    this.#options = options
  }

  /** Returns null if the agent has no card, or one for another protocol. Never rejects. */
  of(agent: ExposedAgent): Promise<RemoteCard | null> {
    const { clock, cacheMs } = this.#options
    const known = this.#cards.get(agent.server)
    if (known !== undefined && known.endpoint === agent.endpoint && clock.now() < known.until) return known.card
    // Concurrent callers share one request.
    const cached: CachedCard = { endpoint: agent.endpoint, card: this.#read(agent), until: Number.POSITIVE_INFINITY }
    this.#cards.set(agent.server, cached)
    void cached.card.then((card) => {
      cached.until = clock.now() + (card === null ? Math.min(cacheMs, RETRY_MS) : cacheMs)
    })
    return cached.card
  }

  async #read({ server, endpoint, protocolVersion }: ExposedAgent): Promise<RemoteCard | null> {
    const { dialer, extraCA, log } = this.#options
    try {
      const { status, bytes } = await dialer.fetchBytes(new URL(CARD_PATH, endpoint), 'a2a', {
        maxBytes: MAX_CARD_BYTES,
        timeoutMs: CARD_TIMEOUT_MS,
        headers: { accept: 'application/json', 'a2a-version': protocolVersion },
        ...(extraCA !== null && { caPEM: extraCA }),
      })
      if (status !== 200) throw new Error(`the response is ${status}`)
      return verified(bytes, protocolVersion)
    } catch (error) {
      log.debug({ agent: server, error: reasonOf(error) }, 'the card of an agent could not be read')
      return null
    }
  }
}

/** Throws if it is not a card, or of an agent without JSON-RPC of this version. */
function verified(bytes: Uint8Array, version: ExposedAgent['protocolVersion']): RemoteCard {
  const value = parseStrict(bytes)
  check ??= Compile(cardSchema)
  if (!check.Check(value)) throw new Error('not an Agent Card')
  if (!speaks(value, version)) throw new Error(`it names no JSONRPC interface of version ${version}`)
  const { pushNotifications = false, extensions = [] } = value.capabilities
  return {
    pushNotifications,
    extensions: extensions.map(({ uri, description = '', required }) => ({
      uri,
      ...(description !== '' && { description }),
      ...(required === true && { required }),
    })),
    defaultInputModes: value.defaultInputModes,
    defaultOutputModes: value.defaultOutputModes,
  }
}

function speaks(card: Static<typeof cardSchema>, version: ExposedAgent['protocolVersion']): boolean {
  const { supportedInterfaces = [], protocolVersion, preferredTransport = JSON_RPC, additionalInterfaces = [] } = card
  const isNamed = supportedInterfaces.some(
    (one) => one.protocolBinding === JSON_RPC && isOfVersion(one.protocolVersion, version),
  )
  if (isNamed || version !== LEGACY_VERSION) return isNamed
  const transports = [preferredTransport, ...additionalInterfaces.map(({ transport }) => transport)]
  return protocolVersion !== undefined && isOfVersion(protocolVersion, version) && transports.includes(JSON_RPC)
}

/** Cards of 0.3 name the patch version. */
function isOfVersion(named: string, version: ExposedAgent['protocolVersion']): boolean {
  return named === version || (version === LEGACY_VERSION && named.startsWith(`${version}.`))
}
