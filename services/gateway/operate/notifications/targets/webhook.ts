import { createHmac } from 'node:crypto'
import { linkOf, secretIn, type Target, type TargetParts } from './target.ts'

/** Prefix of a base64 secret (Standard Webhooks); any other text is the key itself. */
const SECRET_PREFIX = 'whsec_'

/** Type `webhook`: JSON as Standard Webhooks has it, signed by HMAC-SHA-256 with `hmacSecretFile`. */
export function webhookTarget({ config, field, consoleURL, clock }: TargetParts): Target {
  return {
    async message(notice) {
      const { id, type, at: timestamp, data } = notice
      const body = JSON.stringify({ type, timestamp, link: linkOf(notice, consoleURL) ?? undefined, data })
      const sentAt = String(Math.floor(clock.now() / 1000))
      const headers = { 'webhook-id': id, 'webhook-timestamp': sentAt }
      if (config.hmacSecretFile === '') return { url: config.url, headers, body }
      const key = webhookKey(await secretIn(`${field}.hmacSecretFile`, config.hmacSecretFile))
      const signature = webhookSignature(key, { id, timestamp: sentAt, body })
      return { url: config.url, headers: { ...headers, 'webhook-signature': signature }, body }
    },
  }
}

export function webhookKey(secret: string): Buffer {
  return secret.startsWith(SECRET_PREFIX)
    ? Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
    : Buffer.from(secret)
}

/** `v1,<base64>` over id, time and body. */
export function webhookSignature(
  key: Uint8Array,
  { id, timestamp, body }: { readonly id: string; readonly timestamp: string; readonly body: string | Uint8Array },
): string {
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return `v1,${mac}`
}
