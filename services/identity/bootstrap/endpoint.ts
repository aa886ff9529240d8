import type { IncomingMessage } from 'node:http'
import { peerOf } from '@plat/http'
import { type Endpoint, OAuthError } from '@plat/http/endpoints'
import { type BoundPod, reviewToken } from '../kubernetes/pod.ts'
import { readAssertion } from '../proof/jwt/assertion.ts'
import { isStop } from '../proof/parts/verdict.ts'
import { recordRefused } from '../serve/audit.ts'
import { type BootstrapParts, serve } from './issue.ts'
import { MAX_WAIT_SECONDS, PendingBootstraps } from './pending-bootstraps.ts'
import { NotReadyError, unavailable } from './refusals.ts'

const PATH = '/v1/bootstrap'
const BEARER = /^bearer +([^ ]+)$/i

/** `POST /v1/bootstrap`, on a separate listener. */
export interface Bootstrap {
  readonly endpoint: Endpoint
  /** Ends every long-poll, because the broker is about to stop. */
  drain(): void
}

/** Serves pods that were started without a session and request theirs. */
export function createBootstrap(parts: BootstrapParts): Bootstrap {
  const { api, clock, settings } = parts
  const waits = new PendingBootstraps({
    api,
    clock,
    cap: settings.bootstrapMaxConcurrent,
    observer: parts.pools.of('bootstrap_requests'),
  })
  const handle = (request: IncomingMessage, who: object) =>
    waits.admit(peerOf(request.socket.remoteAddress ?? ''), async () => {
      const waitMs = 1000 * waitSecondsOf(request.url ?? '')
      const bound = await authenticate(parts, request)
      Object.assign(who, { namespace: bound.namespace, pod: bound.pod, podUid: bound.podUid })
      return waits.poll({ pod: bound.podUid, waitMs, socket: request.socket }, () => serve(parts, bound))
    })
  return {
    drain: () => waits.drain(),
    endpoint: {
      path: PATH,
      opensWith: 'request',
      takes: 'any',
      errors: 'oauth',
      isNewWork: true,
      async handle(_body, request) {
        const who = {}
        try {
          return await handle(request, who)
        } catch (error) {
          // Not ready is not a refusal: warm pods get it all the time.
          if (error instanceof OAuthError && !(error instanceof NotReadyError))
            recordRefused(parts, 'bootstrap', error, who)
          throw error
        }
      },
    },
  }
}

/** Whole seconds, capped; 0 when the request names none. */
function waitSecondsOf(url: string): number {
  const at = url.indexOf('?')
  const values = at === -1 ? [] : new URLSearchParams(url.slice(at + 1)).getAll('wait')
  const [wait = '0', another] = values
  if (another !== undefined || !/^\d+$/.test(wait)) {
    throw new OAuthError(400, 'invalid_request', 'wait must be a number of whole seconds, given once')
  }
  return Math.min(Number(wait), MAX_WAIT_SECONDS)
}

async function authenticate({ api, settings }: BootstrapParts, request: IncomingMessage): Promise<BoundPod> {
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
  if (token === undefined) throw invalidToken('the service-account token is missing')
  const jws = readAssertion(token)
  const bound = isStop(jws) ? jws : await reviewToken(api, token, settings.bootstrapAudience)
  if (!isStop(bound)) return bound
  throw bound.kind === 'failed' ? invalidToken(bound.reason) : unavailable(bound.reason)
}

function invalidToken(description: string): OAuthError {
  const challenge = 'Bearer realm="plat-identity", error="invalid_token"'
  return new OAuthError(401, 'invalid_token', description, { 'www-authenticate': challenge })
}
