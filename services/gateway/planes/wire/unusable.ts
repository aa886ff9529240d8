import { type Denial, deny } from '../../call/index.ts'
import type { UpstreamHead } from './exchange.ts'

/** Statuses by which an upstream says that it does not know the gateway. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 407])

/**
 * Heads that say nothing a client may hear: refused credentials are the gateway's own affair, redirects are never followed, errors of a
 * server are its own, and what is encoded cannot be looked at. Null: the answer can be read.
 */
export function unusable(server: string, { status, headers }: UpstreamHead): Denial | null {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return deny('upstream_error', `${server} sent an encoded answer`)
  if (REFUSED.has(status)) return deny('upstream_credential', `${server} does not accept the gateway`)
  const odd = status < 200 || (status >= 300 && status < 400) || status >= 500
  return odd ? deny('upstream_error', `${server} answered ${status}`) : null
}
