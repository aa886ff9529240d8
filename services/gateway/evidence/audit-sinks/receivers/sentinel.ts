import { formatOf } from '../formats/format.ts'
import { textOf } from '../formats/words.ts'
import type { BearerSource } from './post.ts'
import { deliveryOf, type HttpParts, post } from './post.ts'
import type { Receiver } from './receiver.ts'

const API_VERSION = '2023-01-01'

/**
 * Microsoft Sentinel, Logs Ingestion API: a list of objects with the columns `TimeGenerated`, `Seq`, `Hash`, `Kind` and `Record`,
 * as declared by the stream of the data collection rule.
 */
export function sentinelReceiver(parts: HttpParts, bearer: BearerSource): Receiver {
  const { config } = parts
  const path = `/dataCollectionRules/${encodeURIComponent(config.dcrImmutableId)}/streams/${encodeURIComponent(config.streamName)}`
  const url = new URL(`${path}?api-version=${API_VERSION}`, config.url)
  const format = formatOf(config.format ?? 'json', config)
  return {
    write(record) {
      const head = JSON.stringify({
        TimeGenerated: textOf(record, 'at') ?? undefined,
        Seq: record.seq,
        Hash: record.hash,
        Kind: textOf(record, 'kind') ?? undefined,
      })
      return `${head.slice(0, -1)},"Record":${format(record)}}`
    },
    async deliver(batch) {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${await bearer()}` }
      const body = `[${batch.map(({ text }) => text).join(',')}]`
      return deliveryOf(await post(parts, { url, headers, body }))
    },
  }
}
