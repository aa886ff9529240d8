import { AdminError, type AdminRoutes } from '../../admin/index.ts'
import type { ErrorCode } from '../../call/index.ts'
import type { Bundles, RefusalReason } from './bundles.ts'

/** The media type of a bundle (RFC 6713). */
export const BUNDLE_TYPE = 'application/gzip'

const CODES: Readonly<Record<RefusalReason, ErrorCode>> = {
  malformed: 'invalid_request',
  size: 'body_too_large',
  digest: 'invalid_request',
  signature: 'forbidden',
  issuer: 'forbidden',
  time: 'conflict',
  revision: 'conflict',
  content: 'invalid_request',
}

/** `POST /v1/admin/config:bundle`: accepts a bundle as body and responds once it is in force. */
export function createBundleRoutes(bundles: Pick<Bundles, 'take'>, maxBytes: number): AdminRoutes {
  return {
    mount(context) {
      context.takes(BUNDLE_TYPE, maxBytes)
      context.on('POST /v1/admin/config:bundle', async ({ body }) => {
        if (!Buffer.isBuffer(body)) throw new AdminError('unsupported_media_type', `the body must be ${BUNDLE_TYPE}`)
        const result = await bundles.take({ bytes: body, source: 'push', isWhole: true }).catch(() => {
          throw new AdminError('state_unavailable', 'the bundle could not be put into force: the log says why')
        })
        if (result.kind === 'waits') throw new AdminError('conflict', `time: ${result.message}`)
        if (result.kind === 'refused') throw new AdminError(CODES[result.reason], `${result.reason}: ${result.message}`)
        const { issuer, revision, kind } = result
        return { issuer, revision, applied: kind === 'applied' }
      })
    },
  }
}
