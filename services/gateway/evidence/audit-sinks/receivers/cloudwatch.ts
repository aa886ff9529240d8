import type { Clock } from '@plat/core'
import { type AwsCredentials, awsDomain, signAws } from '@plat/http'
import { formatOf } from '../formats/format.ts'
import { timeOf } from '../formats/words.ts'
import { deliveryOf, type HttpParts, memberAt, post, type ReceiverResponse } from './post.ts'
import type { Delivery, Item, Receiver } from './receiver.ts'

/** Maximum time span of the events in one request, in milliseconds. */
const SPAN_MS = 24 * 60 * 60 * 1000
/** Errors about the records; all others concern credentials, the log group or similar. */
const CONTENT_FAULTS = /(?:^|#)(?:InvalidParameterException|SerializationException|ValidationException)$/

export interface CloudWatchParts extends HttpParts {
  readonly clock: Clock
  readonly credentials: () => Promise<AwsCredentials>
}

/** Amazon CloudWatch Logs, PutLogEvents. Group and stream must exist. */
export function cloudWatchReceiver(parts: CloudWatchParts): Receiver {
  const { config, clock, credentials } = parts
  const { region, logGroup: logGroupName, logStream: logStreamName } = config
  const url = new URL(config.url || `https://logs.${region}.${awsDomain(region)}/`)
  return {
    write: formatOf(config.format ?? 'json', config),
    async deliver(batch) {
      const sent = inOrder(withinSpan(batch))
      const logEvents = sent.map(({ record, text }) => ({ timestamp: timeOf(record), message: text }))
      const body = JSON.stringify({ logGroupName, logStreamName, logEvents })
      const headers = signAws(
        {
          method: 'POST',
          url,
          headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'Logs_20140328.PutLogEvents' },
          body,
          region,
          service: 'logs',
          at: clock.now(),
        },
        await credentials(),
      )
      const answer = await post(parts, { url, headers, body })
      const delivery = deliveryOf(answer, refusesEvents)
      return delivery.kind === 'accepted' ? takenOf(answer, sent) : delivery
    },
  }
}

function refusesEvents({ status, json }: ReceiverResponse): boolean {
  const fault = memberAt(json, '__type')
  return status === 413 || (status === 400 && typeof fault === 'string' && CONTENT_FAULTS.test(fault))
}

/** Returns the longest prefix that fits into one request. */
function withinSpan(batch: readonly Item[]): readonly Item[] {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const [count, { record }] of batch.entries()) {
    const at = timeOf(record)
    from = Math.min(from, at)
    to = Math.max(to, at)
    if (to - from >= SPAN_MS) return batch.slice(0, count)
  }
  return batch
}

/** Sorts by time: after a clock was set back records are out of order. */
function inOrder(batch: readonly Item[]): readonly Item[] {
  return batch.toSorted((a, b) => timeOf(a.record) - timeOf(b.record))
}

/** Events too old, or past the group's retention, are rejected within an accepted request. */
function takenOf({ json, description }: ReceiverResponse, sent: readonly Item[]): Delivery {
  if (typeof json !== 'object' || Array.isArray(json))
    return { kind: 'failed', reason: `${description}, but no JSON object` }
  const bound = (name: string) => {
    const value = memberAt(json, 'rejectedLogEventsInfo', name)
    return typeof value === 'number' ? value : null
  }
  const before = Math.max(bound('tooOldLogEventEndIndex') ?? 0, bound('expiredLogEventEndIndex') ?? 0)
  const after = bound('tooNewLogEventStartIndex') ?? sent.length
  const refused = sent.flatMap((item, at) => {
    if (at < before) return [{ item, reason: 'too old for the log group' }]
    return at >= after ? [{ item, reason: 'too new for the log group' }] : []
  })
  return { kind: 'accepted', count: sent.length, refused }
}
