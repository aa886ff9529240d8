import { ask, textIn } from './ask.ts'
import { readToken } from './file.ts'
import { type TokenSource, TokenUnavailableError } from './source.ts'

/** Whose session is minted: the mint request of the identity broker. */
export interface BrokerOptions {
  /** `https://identity.example.com` */
  readonly identityURL: string
  /** The broker token, or the file that holds it. It mints anything: only servers that start agents may have it, never an agent. */
  readonly brokerToken: string | { readonly file: string }
  readonly namespace: string
  readonly agent: string
  /** Name of the session: every token of this source is for this one. */
  readonly session: string
  /** The user that the agent acts for. */
  readonly user?: string
  readonly groups?: readonly string[]
  readonly principalVerified?: 'requester' | 'trustedCreator' | 'idToken'
  /** `tools:<server>`, `models:<namespace>.<agent>`, `agents:<agent>` */
  readonly scopes: readonly string[]
  readonly tier?: string
  /** 15 minutes when absent. */
  readonly ttlSeconds?: number
  /** Default: the machine's `fetch`. */
  readonly fetch?: typeof globalThis.fetch
}

/**
 * Mints session tokens with the broker token, for a server that runs agents itself.
 *
 * @example
 * const source = broker({
 *   identityURL: 'https://identity.example.com',
 *   brokerToken: { file: '/var/run/secrets/broker-token' },
 *   namespace: 'team', agent: 'assistant', session: crypto.randomUUID(),
 *   user: 'ada', scopes: ['tools:notes'],
 * })
 */
export function broker(options: BrokerOptions): TokenSource {
  const { identityURL, brokerToken, fetch = globalThis.fetch, ...wanted } = options
  const url = `${identityURL.replace(/\/$/, '')}/v1/token`
  return {
    name: `the identity broker at ${new URL(url).origin}`,
    async issue({ jkt, signal }) {
      const secret = typeof brokerToken === 'string' ? brokerToken : await readToken(brokerToken.file)
      if (secret === '') throw new TokenUnavailableError('the broker token is empty')
      const body = { ...wanted, ...(jkt !== null && { dpopJkt: jkt }) }
      const answer = await ask({ fetch, url, headers: { authorization: `Bearer ${secret}` }, body, signal })
      return { token: textIn(answer, 'token') }
    },
  }
}
