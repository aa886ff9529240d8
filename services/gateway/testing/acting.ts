import type { GatewayProcess } from '@plat/testkit/gateway'
import { TOKEN } from './started.ts'

/** Leaves records as fast as a gateway takes them, by its admin API, until it is gone. */
export async function act({ url }: GatewayProcess): Promise<void> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ target: { agent: 'shop/a' } })
  for (;;) {
    const sent = await fetch(`${url}/v1/revocations`, { method: 'POST', headers, body }).catch(() => null)
    if (sent === null) return
  }
}
