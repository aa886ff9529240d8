import { type Clock, isObject } from '@plat/core'
import { sleep, waitingClock } from '../clock.ts'
import { ask, IdentityRefusedError, type Members, textIn } from './ask.ts'
import { readToken } from './file.ts'
import { type TokenSource, TokenUnavailableError } from './source.ts'

/** Where a projected service-account token is mounted in pods of a warm pool. */
const SERVICE_ACCOUNT_TOKEN = '/var/run/plat/bootstrap/sa-token'

/** Duration of one long poll, in seconds: below the maximum of 25. */
const WAIT_SECONDS = 20

/**
 * Least time between the starts of two polls, in milliseconds. A broker that stops answers at once, and so does one whose poll another process of
 * the pod replaced.
 */
const POLL_EVERY_MS = 1_000

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
 * `session.env` has the session's variables. A response 425 is repeated without end, 503 and lost responses a few times after their `Retry-After`,
 * any other refusal of the broker never.
 *
 * @example
 * const session = await connect({ source: bootstrap({ url: 'https://identity.plat-system.svc:8083' }) })
 */
export function bootstrap(options: BootstrapOptions): TokenSource {
  return bootstrapBy(options, waitingClock)
}

/** As `bootstrap`, with another clock. */
export function bootstrapBy(options: BootstrapOptions, clock: Clock): TokenSource {
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
        const began = clock.monotonic()
        const answer = await poll(signal)
        if (answer === null) {
          await sleep(clock, Math.max(0, began + POLL_EVERY_MS - clock.monotonic()), signal)
          continue
        }
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
