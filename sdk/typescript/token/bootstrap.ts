import { isObject } from '@plat/core'
import { ask, IdentityRefusedError, type Members, textIn } from './ask.ts'
import { readToken } from './file.ts'
import { type TokenSource, TokenUnavailableError } from './source.ts'

/** Where a projected service-account token is mounted in pods of a warm pool. */
const SERVICE_ACCOUNT_TOKEN = '/var/run/plat/bootstrap/sa-token'

/** Duration of one long poll, in seconds: below the maximum of 25. */
const WAIT_SECONDS = 20

export interface BootstrapOptions {
  /** Address of the bootstrap listener, `https://identity.example.com:8083`. */
  readonly url: string
  /** Default: `/var/run/plat/bootstrap/sa-token`. It is read for each request, since it rotates. */
  readonly serviceAccountTokenFile?: string
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch
}

/**
 * Tokens for a pod of a warm pool: waits until a session adopts the pod, and requests a new token before each one expires.
 * `session.env` has the session's variables.
 *
 * @example
 * const session = await connect({ source: bootstrap({ url: 'https://identity.plat-system.svc:8083' }) })
 */
export function bootstrap(options: BootstrapOptions): TokenSource {
  const { serviceAccountTokenFile = SERVICE_ACCOUNT_TOKEN, fetch = globalThis.fetch } = options
  const url = `${options.url.replace(/\/$/, '')}/v1/bootstrap?wait=${WAIT_SECONDS}`
  const poll = async (signal: AbortSignal): Promise<Members | null> => {
    const headers = { authorization: `Bearer ${await readToken(serviceAccountTokenFile)}` }
    try {
      return await ask({ fetch, url, headers, signal, waitMs: WAIT_SECONDS * 1000 })
    } catch (error) {
      // Too early: not adopted or not prepared yet. The broker has waited before it responded.
      if (error instanceof IdentityRefusedError && error.status === 425) return null
      throw error
    }
  }
  return {
    name: `the bootstrap endpoint at ${new URL(url).origin}`,
    async issue({ signal }) {
      for (;;) {
        signal.throwIfAborted()
        const answer = await poll(signal)
        if (answer === null) continue
        if (answer.attested === true)
          throw new TokenUnavailableError('the session is attested: it redeems a release instead')
        return { token: textIn(answer, 'token'), env: textsIn(answer.env) }
      }
    },
  }
}

function textsIn(value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) => (typeof text === 'string' ? [[name, text]] : [])),
  )
}
