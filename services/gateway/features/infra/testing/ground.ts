import { hash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { tempFolder } from '@plat/testkit/folder'
import { wholeLines } from '@plat/testkit/ledger'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../../testing/started.ts'

type Members = Readonly<Record<string, unknown>>

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Members
}

export interface InfraGround {
  readonly url: string
  /** Posts a body to `/v1/infra/<path>`, as a session of `default/assistant` unless `token` says otherwise. */
  post(path: string, body: object | string, token?: string): Promise<Answered>
  /** A token for plans. `change` is laid over its claims. */
  token(change?: Members): string
  /** Asks the admin API. */
  admin(method: string, path: string, body?: object): Promise<Members>
  /** The approval that waits, once one does. */
  pending(): Promise<Members>
  /** The records of the ledger, as soon as one fits. */
  record(fits: (rec: Members) => boolean): Promise<Members>
}

/** A gateway whose `infra` says this. `rules` are those of the policy of `default/assistant`. */
export async function infraGround(
  t: TestContext,
  infra: object = {},
  {
    rules = [{ name: 'all', action: 'allow' }],
    config = {},
  }: { readonly rules?: readonly object[]; readonly config?: object } = {},
): Promise<InfraGround> {
  const dir = tempFolder()
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules })]))
  const auditPath = join(dir, 'audit.jsonl')
  const own = { auditPath, policyFile: join(dir, 'policies.json'), adminAuth: { devTokenApprovers: true } }
  const { gateway, issuer } = await started(t, { ...own, infra: { enabled: true, ...infra }, ...config })
  const token: InfraGround['token'] = (change = {}) => issuer.token({ scope: 'tools:plat-infra', ...change })
  const admin: InfraGround['admin'] = async (method, path, body) => {
    const response = await fetch(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return Object(await response.json())
  }
  const records = (): Members[] => wholeLines(auditPath).map((line) => JSON.parse(line).rec)
  return {
    url: gateway.url,
    token,
    admin,
    async post(path, body, shown = token()) {
      const response = await fetch(`${gateway.url}/v1/infra/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${shown}`, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      return { status: response.status, headers: response.headers, body: Object(await response.json()) }
    },
    async pending() {
      let found: Members | undefined
      await until(async () => {
        const { items } = await admin('GET', '/v1/approvals')
        found = Array.isArray(items) ? items.find(({ state }) => state === 'pending') : undefined
        return found !== undefined
      }, 'an approval')
      return found ?? {}
    },
    async record(fits) {
      await until(() => records().some(fits), 'a record')
      return records().find(fits) ?? {}
    },
  }
}

export function sha256(text: string): string {
  return hash('sha256', text, 'hex')
}
