import type { JsonObject } from '@plat/core'
import { until } from '@plat/testkit/until'
import { TOKEN } from './started.ts'

/** Somebody with the admin token, who decides what waits for a person. */
export interface Approver {
  /** Resolves to the pending approval, once there is one. */
  pending(): Promise<JsonObject>
  /** Decides what waits, once something does. */
  decide(verdict: 'approve' | 'deny'): Promise<JsonObject>
}

/** The gateway's `adminAuth.devTokenApprovers` must be on. */
export function approverAt(url: string): Approver {
  const ask = async (path: string, body?: object): Promise<JsonObject> => {
    const response = await fetch(`${url}/v1/approvals${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return Object(await response.json())
  }
  const pending = async (): Promise<JsonObject> => {
    const found: JsonObject[] = []
    await until(async () => {
      const { items } = await ask('')
      if (Array.isArray(items)) found.push(...items.filter(({ state }) => state === 'pending'))
      return found.length > 0
    }, 'an approval')
    return found[0] ?? {}
  }
  return {
    pending,
    async decide(verdict) {
      const { id } = await pending()
      return ask(`/${id}/${verdict}`, { reason: 'said the test' })
    },
  }
}
