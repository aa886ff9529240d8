import { dialFault, isDialError } from '@plat/http'
import { type Denial, deny, UpstreamError } from '../../call/index.ts'

/**
 * Why no answer came from `name`, in words that hold no address and no secret. Throws what is no failure of the upstream: a bug of the
 * gateway, which the runner logs with the decision id and answers as `internal`.
 */
export function failure(name: string, error: unknown): Denial {
  if (!(error instanceof UpstreamError) && !isDialError(error)) throw error
  if (error instanceof UpstreamError && error.code === 'upstream_timeout')
    return deny(error.code, `${name} did not answer in time`)
  const cause = error instanceof UpstreamError ? error.cause : error
  switch (dialFault(cause)) {
    case 'timeout':
      return deny('upstream_timeout', `${name} did not answer in time`)
    case 'blocked':
      return deny('upstream_error', `${name} leads to an address that must not be connected to`)
    case 'residency':
      return deny('residency_denied', `${name} leads to where data must not go`)
    case 'name':
      return deny('upstream_error', `the address of ${name} cannot be resolved`)
    case 'refused':
      return deny('upstream_error', `${name} cannot be reached`)
    case 'busy':
      return deny('rate_limited', `all connections to ${name} that a session may hold are in use`)
    case 'tls':
      return deny('upstream_error', `the certificate of ${name} is not accepted`)
    default:
      return deny('upstream_error', `${name} broke the connection`)
  }
}
