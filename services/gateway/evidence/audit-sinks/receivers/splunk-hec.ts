import type { SinkConfig } from '../config.ts'
import { formatOf, isJson } from '../formats/format.ts'
import { type AuditRecord, textOf, timeOf } from '../formats/words.ts'
import { deliveryOf, type HttpParts, memberAt, post, type ReceiverResponse } from './post.ts'
import type { Receiver } from './receiver.ts'

const EVENT_PATH = '/services/collector/event'
/**
 * Codes of the collector about events: no data, invalid format, missing or empty event, fields that
 * cannot be indexed. All others, such as a missing index, concern the token.
 */
const CONTENT_CODES: ReadonlySet<unknown> = new Set([5, 6, 12, 13, 15])

/** Splunk's HTTP Event Collector. */
export function splunkReceiver(parts: HttpParts): Receiver {
  const { config, material } = parts
  const url = new URL(config.url)
  if (url.pathname === '/') url.pathname = EVENT_PATH
  return {
    write: eventWriter(config),
    async deliver(batch) {
      const headers = { 'content-type': 'application/json', authorization: `Splunk ${await material.token()}` }
      const body = batch.map(({ text }) => text).join('\n')
      return deliveryOf(await post(parts, { url, headers, body }), refusesEvents)
    },
  }
}

function refusesEvents({ status, json }: ReceiverResponse): boolean {
  return status === 413 || (status === 400 && CONTENT_CODES.has(memberAt(json, 'code')))
}

function eventWriter(config: SinkConfig): (record: AuditRecord) => string {
  const { index, source, sourceType, format: name = 'json' } = config
  const format = formatOf(name, config)
  return (record) => {
    const head = JSON.stringify({
      time: timeOf(record) / 1000,
      host: textOf(record, 'replica') ?? undefined,
      source: source || undefined,
      sourcetype: sourceType || undefined,
      index: index || undefined,
    })
    const event = isJson(name) ? format(record) : JSON.stringify(format(record))
    return `${head.slice(0, -1)},"event":${event}}`
  }
}
