import { until } from '@plat/testkit/until'
import { TOKEN } from './started.ts'

type Members = Readonly<Record<string, unknown>>

/** Somebody with the admin token, who decides what waits for a person. */
export interface Approver {
  /** Resolves to the pending approval, once there is one. */
  pending(): Promise<Members>
  /** Decides what waits, once something does. */
  decide(verdict: 'approve' | 'deny'): Promise<Members>
}

/** The gateway's `adminAuth.devTokenApprovers` must be on. */
export function approverAt(url: string): Approver {
  const ask = async (path: string, body?: object): Promise<Members> => {
    const response = await fetch(`${url}/v1/approvals${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return Object(await response.json())
  }
  const pending = async (): Promise<Members> => {
    const found: Members[] = []
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
