import { formatOf, isJson } from '../formats/format.ts'
import { deliveryOf, type HttpParts, post } from './post.ts'
import type { Receiver } from './receiver.ts'

/** Generic HTTP receiver of lines: one record per line, each terminated. */
export function httpReceiver(parts: HttpParts): Receiver {
  const { config, material } = parts
  const { url, format = 'ocsf' } = config
  const contentType = isJson(format) ? 'application/x-ndjson' : 'text/plain; charset=utf-8'
  return {
    write: formatOf(format, config),
    async deliver(batch) {
      const token = await material.token()
      const headers = { 'content-type': contentType, ...(token !== null && { authorization: `Bearer ${token}` }) }
      const body = batch.map(({ text }) => `${text}\n`).join('')
      return deliveryOf(await post(parts, { url: new URL(url), headers, body }))
    },
  }
}
