import { AdminError, type AdminRoutes } from '../../admin/index.ts'
import type { ErrorCode } from '../../call/index.ts'
import type { Collector, RefusalReason } from './collector.ts'

/** The media type of a segment. */
export const SEGMENT_TYPE = 'application/vnd.plat.segment'

const CODES: Readonly<Record<RefusalReason, ErrorCode>> = {
  malformed: 'invalid_request',
  size: 'body_too_large',
  edge: 'forbidden',
  signature: 'forbidden',
  chain: 'invalid_request',
  gap: 'conflict',
  fork: 'conflict',
}

/** `POST /v1/audit/segments`: accepts a segment as body; responds with the receipt. */
export function createCollectorRoutes(collector: Collector, maxSegmentBytes: number): AdminRoutes {
  return {
    mount(context) {
      context.takes(SEGMENT_TYPE, maxSegmentBytes)
      context.on('POST /v1/audit/segments', async ({ body }) => {
        if (!Buffer.isBuffer(body)) throw new AdminError('unsupported_media_type', `the body must be ${SEGMENT_TYPE}`)
        const result = await collector.take(body).catch(() => {
          throw new AdminError('state_unavailable', 'segments cannot be stored now')
        })
        if (result.kind === 'incomplete')
          throw new AdminError('invalid_request', 'the segment is shorter than its seal says')
        if (result.kind === 'refused') throw new AdminError(CODES[result.reason], `${result.reason}: ${result.message}`)
        const { edge, upTo } = result.receipt
        return { edge, upTo, receipt: result.text }
      })
    },
  }
}
