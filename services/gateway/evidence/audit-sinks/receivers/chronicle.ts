import type { SinkConfig } from '../config.ts'
import { formatOf } from '../formats/format.ts'
import { udm } from '../formats/udm.ts'
import { type AuditRecord, textOf } from '../formats/words.ts'
import type { BearerSource } from './post.ts'
import { deliveryOf, type HttpParts, post } from './post.ts'
import type { Receiver } from './receiver.ts'

/** The host for all regions. */
const GLOBAL_HOST = 'chronicle.googleapis.com'

/** Google Security Operations API: raw logs of a log type, or events of the Unified Data Model. */
export function chronicleReceiver(parts: HttpParts, bearer: BearerSource): Receiver {
  const { config } = parts
  const isUdm = config.chronicleMode === 'udm'
  const url = importUrl(config)
  return {
    write: isUdm ? (record) => `{"udm":${udm(record)}}` : logWriter(config),
    async deliver(batch) {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${await bearer()}` }
      const list = batch.map(({ text }) => text).join(',')
      const body = `{"inlineSource":{"${isUdm ? 'events' : 'logs'}":[${list}]}}`
      return deliveryOf(await post(parts, { url, headers, body }))
    },
  }
}

/** `url` names the instance: `https://<host>/v1alpha/projects/<p>/locations/<l>/instances/<i>`. */
export function importUrl({ url: base, region, chronicleMode, logType }: SinkConfig): URL {
  const url = new URL(base)
  if (region !== '' && url.hostname === GLOBAL_HOST) url.hostname = `${region}-${GLOBAL_HOST}`
  const instance = url.pathname.replace(/\/$/, '')
  const method = chronicleMode === 'udm' ? 'events:import' : `logTypes/${encodeURIComponent(logType)}/logs:import`
  url.pathname = `${instance}/${method}`
  return url
}

function logWriter(config: SinkConfig): (record: AuditRecord) => string {
  const format = formatOf(config.format ?? 'json', config)
  return (record) => {
    const at = textOf(record, 'at') ?? undefined
    const data = Buffer.from(format(record)).toString('base64')
    return JSON.stringify({ data, logEntryTime: at, collectionTime: at })
  }
}
